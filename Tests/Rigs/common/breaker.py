# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A radio's TCP server that can be stopped at an exact point of the conversation, and started again.

It stands before a radio: what a host sends goes through to it and back, frame by frame, until the point it was armed
for has come. Then the connection ends and nothing listens any more, until `serve`.
"""
import asyncio

from harness import reserved_port

POINTS = ("greeting", "between greetings", "mid-header", "mid-frame", "command sent", "answered", "idle")
HANDSHAKE = (0x01, 0x16)      # APP_START, DEVICE_QUERY


def frames(buffer, marker):
    """Take whole frames from the front of a bytearray."""
    while len(buffer) >= 3:
        if buffer[0] != marker:
            del buffer[0]
            continue
        size = 3 + int.from_bytes(buffer[1:3], "little")
        if len(buffer) < size:
            return
        frame = bytes(buffer[:size])
        del buffer[:size]
        yield frame


class Breaker:
    """`port` is where a host finds the radio. `accepted` counts its connections, `commands` are codes it sent."""

    def __init__(self, radio_port):
        self.radio_port = radio_port
        self.place = reserved_port()
        self.port = self.place.getsockname()[1]
        self.server = None
        self.writers = set()
        self.accepted = 0
        self.commands = []
        self.point = None
        self.broken = asyncio.Event()
        self.joined = asyncio.Condition()

    async def serve(self):
        if self.server is None:
            self.server = await asyncio.start_server(self._host, "127.0.0.1", self.port)
        return self

    def stop(self):
        """Nothing listens, and connections end."""
        if self.server is not None:
            self.server.close()
            self.server = None
        for writer in list(self.writers):
            writer.transport.abort()

    async def close(self):
        self.stop()
        self.place.close()
        await asyncio.sleep(0)

    def arm(self, point):
        """Stop as soon as the conversation is at `point`, one of POINTS; `broken` is set then."""
        assert point in POINTS, point
        self.broken.clear()
        self.point = point
        if point == "idle":
            self._break()

    def _break(self):
        self.point = None
        self.stop()
        self.broken.set()

    async def connection(self, number):
        """Wait until there were so many connections."""
        async with self.joined:
            await self.joined.wait_for(lambda: self.accepted >= number)

    async def _host(self, reader, writer):
        async with self.joined:
            self.accepted += 1
            self.joined.notify_all()
        self.writers.add(writer)
        radio_writer = None
        try:
            radio_reader, radio_writer = await asyncio.open_connection("127.0.0.1", self.radio_port)
            asked = []                            # codes that the radio has not answered yet
            await asyncio.wait([asyncio.ensure_future(self._up(reader, radio_writer, asked)),
                                asyncio.ensure_future(self._down(radio_reader, writer, asked))],
                               return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            self.writers.discard(writer)
            for each in (writer, radio_writer):
                if each is not None:
                    each.transport.abort()

    async def _up(self, reader, radio, asked):
        buffer, greetings = bytearray(), 0
        while chunk := await self._read(reader):
            buffer += chunk
            for frame in frames(buffer, ord("<")):
                code = frame[3] if len(frame) > 3 else None
                self.commands.append(code)
                asked.append(code)
                if code in HANDSHAKE:
                    greetings += 1
                    if self.point == ("greeting", "between greetings")[min(greetings, 2) - 1]:
                        return self._break()
                radio.write(frame)
                if self.point == "command sent" and code not in HANDSHAKE:
                    return self._break()

    async def _down(self, reader, host, asked):
        buffer = bytearray()
        while chunk := await self._read(reader):
            buffer += chunk
            for frame in frames(buffer, ord(">")):
                is_reply = len(frame) > 3 and frame[3] < 0x80
                code = asked.pop(0) if is_reply and asked else None
                if self.point == "mid-header":
                    return await self._last(host, frame[:2])
                if self.point == "mid-frame" and len(frame) > 6:
                    return await self._last(host, frame[:len(frame) // 2])
                host.write(frame)
                if self.point == "answered" and code is not None and code not in HANDSHAKE:
                    return await self._last(host, b"")

    async def _last(self, host, part):
        """Give out the part of a frame, and be gone: this end is closed, not reset, so that the part arrives."""
        host.write(part)
        host.close()
        self.writers.discard(host)
        self._break()

    @staticmethod
    async def _read(reader):
        try:
            return await reader.read(65536)
        except OSError:
            return b""
