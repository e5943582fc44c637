# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion radio on TCP (`rigs/radios`, or a real one) behind a frame link such as BLE.

One write of the link is one frame: it goes out as `<` len16le payload. Each `>` frame that comes back is handed to
`on_frame`. The TCP side is opened when the first frame is sent (or by `open`), and again after it was lost.
"""
import asyncio

LARGEST_FRAME = 512      # the firmware's limit is 176; forks send more


class CompanionBridge:
    def __init__(self, address, on_frame, log):
        """`address` is HOST:PORT, `on_frame(payload)` a coroutine function, `log(event, **fields)` a function."""
        host, _, port = address.rpartition(":")
        self.host, self.port = host or "127.0.0.1", int(port)
        self.on_frame, self.log = on_frame, log
        self.writer = self.pump = None
        self.opening = asyncio.Lock()

    async def open(self):
        async with self.opening:
            if self.writer is None:
                reader, self.writer = await asyncio.open_connection(self.host, self.port)
                self.pump = asyncio.get_running_loop().create_task(self._read(reader, self.writer))
                self.log("bridge_open", peer=f"{self.host}:{self.port}")

    async def send(self, payload):
        """Forward one frame; False (and an event) when no radio can be reached."""
        for attempt in (1, 2):           # the second attempt is for a connection that died unnoticed
            try:
                await self.open()
                self.writer.write(b"<" + len(payload).to_bytes(2, "little") + payload)
                await self.writer.drain()
                return True
            except OSError as error:
                self.close()
                self.log("bridge_error", attempt=attempt, error=str(error))
        return False

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.pump.cancel()
            self.writer = self.pump = None
            self.log("bridge_closed")

    async def _read(self, reader, writer):
        try:
            while True:
                if await reader.readexactly(1) != b">":
                    self.log("bridge_noise")     # resynchronise on the next marker
                    continue
                length = int.from_bytes(await reader.readexactly(2), "little")
                if not 0 < length <= LARGEST_FRAME:
                    self.log("bridge_noise", length=length)
                    continue
                await self.on_frame(await reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            pass
        if self.writer is writer:
            self.close()
