#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion radio behind a Unix datagram socket: one that listens on TCP, a frame a datagram.

    bridge.py PATH HOST:PORT

Serves whoever sent the last datagram. A frame to the radio is '<', its length in two bytes (little-endian) and its bytes; one
from the radio begins with '>'.
"""
import asyncio
import contextlib
import os
import socket
import sys


class Bridge(asyncio.DatagramProtocol):
    def __init__(self, host, port):
        self.host, self.port = host, port
        self.transport = self.client = self.writer = self.reading = None
        self.frames = asyncio.Queue(256)               # from the client; what finds no room is lost
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        if addr != self.client:
            self.client = addr                         # another host, or the same anew: a session of its own
            with contextlib.suppress(asyncio.QueueFull):
                self.frames.put_nowait(None)
        with contextlib.suppress(asyncio.QueueFull):
            self.frames.put_nowait(data)

    def error_received(self, exc):
        """The client has gone."""

    async def run(self):
        while True:
            frame = await self.frames.get()
            if frame is None or self.writer is None:
                await self.open()
            if frame:
                self.writer.write(b"<" + len(frame).to_bytes(2, "little") + frame)

    async def open(self):
        if self.reading:
            self.reading.cancel()
            self.writer.close()
        reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.reading = asyncio.create_task(self.read(reader, self.client))

    async def read(self, reader, client):
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                start = await reader.readexactly(3)
                if start[:1] != b">":
                    break
                self.transport.sendto(await reader.readexactly(int.from_bytes(start[1:], "little")), client)
        self.over.set_result("the radio has closed the connection")


async def main(path, address):
    host, _, port = address.rpartition(":")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    loop = asyncio.get_running_loop()
    device = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    device.setblocking(False)
    device.bind(path)
    _, bridge = await loop.create_datagram_endpoint(lambda: Bridge(host, int(port)), sock=device)
    print(f"the radio at {address} is at {path}", flush=True)
    running = asyncio.create_task(bridge.run())
    # Without its radio there is no device: the socket goes, and the host learns it with its next frame.
    await asyncio.wait([running, bridge.over], return_when=asyncio.FIRST_COMPLETED)
    os.unlink(path)
    sys.exit(bridge.over.result() if bridge.over.done() else f"{running.exception()}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
