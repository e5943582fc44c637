# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion client of few words, for tests that care about single frames."""
import asyncio
import collections
import socket
import struct

from harness import PATIENCE

APP_START = b"\x01\x03      rig"
GET_TIME = b"\x05"
GET_BATTERY = b"\x14"
GET_STATS = b"\x38\x01"      # of the radio; no host can answer it from memory
SYNC_NEXT = b"\x0a"
NO_MORE = b"\x0a"
AWAY = b"\x01\x04"            # what a host answers while its radio is away
MESSAGES = {0x07: 13, 0x08: 8, 0x10: 16, 0x11: 11}      # codes of messages, and where their text begins


def app_start(name):
    return b"\x01\x03      " + name.encode()


def is_message(frame):
    return frame[0] in MESSAGES or frame[0] == 0x1b


def text(frame):
    """The text of a message frame; without the author's prefix that signed ones have."""
    begin = MESSAGES[frame[0]]
    signed = frame[0] in (0x07, 0x10) and frame[begin - 5] == 2
    return frame[begin + 4 * signed:].decode()


class Client:
    """Frames in both directions; replies (below 0x80) and pushes are told apart."""

    @classmethod
    async def connect(cls, address):
        """To a port of this machine, `HOST:PORT`, or the path of a Unix socket."""
        self = cls()
        self.pushes, self.history = collections.deque(), []
        if isinstance(address, int):
            opened = asyncio.open_connection("127.0.0.1", address)
        elif "/" in address:
            opened = asyncio.open_unix_connection(address)
        else:
            opened = asyncio.open_connection(*address.rsplit(":", 1))
        self.reader, self.writer = await asyncio.wait_for(opened, PATIENCE)
        return self

    def send(self, payload):
        self.writer.write(b"<" + len(payload).to_bytes(2, "little") + payload)

    async def frame(self):
        """The next frame; None when the other side has ended the connection."""
        try:
            head = await asyncio.wait_for(self.reader.readexactly(3), PATIENCE)
            if head[:1] != b">":
                raise AssertionError(f"not a frame: {head.hex()}")
            payload = await asyncio.wait_for(self.reader.readexactly(int.from_bytes(head[1:], "little")), PATIENCE)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self.history.append(payload)
        return payload

    async def reply(self):
        """The next reply; None at the end. Pushes that come before it are kept for `push`."""
        while (frame := await self.frame()) is not None and frame[0] >= 0x80:
            self.pushes.append(frame)
        return frame

    async def ask(self, payload):
        """The reply to a command."""
        self.send(payload)
        return await self.reply()

    async def push(self, *codes, where=None):
        """The next push with one of these codes, kept or to come; those before it are dropped."""
        while True:
            frame = self.pushes.popleft() if self.pushes else await self.frame()
            if frame is None:
                raise AssertionError(f"the connection ended before a push {bytes(codes).hex(' ')}")
            if frame[0] < 0x80:
                raise AssertionError(f"a reply that nobody asked for: {frame.hex()}")
            if frame[0] in codes and (where is None or where(frame)):
                return frame

    @property
    def replies(self):
        """All that came and is no push."""
        return [frame for frame in self.history if frame[0] < 0x80]

    # what takes more than one frame

    async def greet(self, name="rig", version=None):
        """APP_START, and DEVICE_QUERY where a version is given."""
        reply = await self.ask(app_start(name))
        assert reply is not None and reply[0] == 5, f"answer to APP_START: {reply}"
        if version is not None:
            reply = await self.ask(bytes([22, version]))
            assert reply is not None and reply[0] == 13, f"answer to DEVICE_QUERY: {reply}"
        return self

    async def contacts(self, since=None):
        """GET_CONTACTS: the total, the rows, the newest change."""
        self.send(b"\x04" + (b"" if since is None else struct.pack("<I", since)))
        start = await self.reply()
        assert start is not None and start[0] == 2, f"beginning of the contacts: {start}"
        rows = []
        while (frame := await self.reply()) is not None and frame[0] == 3:
            rows.append(frame)
        assert frame is not None and frame[0] == 4, f"end of the contacts: {frame}"
        return int.from_bytes(start[1:5], "little"), rows, int.from_bytes(frame[1:5], "little")

    async def mail(self):
        """Messages until there are no more."""
        messages = []
        while (frame := await self.ask(SYNC_NEXT)) != NO_MORE:
            assert frame is not None and is_message(frame), f"no message: {frame}"
            messages.append(frame)
        return messages

    # ends

    async def ended(self):
        """Wait for the end of the connection."""
        while await self.frame() is not None:
            pass

    async def close(self):
        """At once. The kernel tells the other side whether something was left unread."""
        self.writer.transport.abort()

    async def reset(self):
        """At once, and as a crash of the machine would look: by a reset, never in good order."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        await asyncio.sleep(0)                    # the transport closes its socket in the loop's next turn

    async def leave(self):
        """In good order: everything was read, also what was on its way. Else the kernel would tell of a reset."""
        if self.writer.can_write_eof():           # TLS has an end of its own
            self.writer.write_eof()
            await self.ended()
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass
