# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion client of few words, for tests that care about single frames."""
import asyncio

from harness import PATIENCE

APP_START = b"\x01\x03      rig"
GET_TIME = b"\x05"
GET_BATTERY = b"\x14"
AWAY = b"\x01\x04"            # what a host answers while its radio is away


class Client:
    """Frames in both directions; replies (below 0x80) and pushes are told apart."""

    @classmethod
    async def connect(cls, address):
        """To a port of this machine, or the path of a Unix socket."""
        self = cls()
        opened = asyncio.open_unix_connection(address) if isinstance(address, str) \
            else asyncio.open_connection("127.0.0.1", address)
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
            return await asyncio.wait_for(self.reader.readexactly(int.from_bytes(head[1:], "little")), PATIENCE)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def ask(self, payload):
        """The reply to a command; pushes that come before it are dropped."""
        self.send(payload)
        while (reply := await self.frame()) is not None and reply[0] >= 0x80:
            pass
        return reply

    async def ended(self):
        """Wait for the end of the connection."""
        while await self.frame() is not None:
            pass

    async def close(self):
        self.writer.transport.abort()
