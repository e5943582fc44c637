#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion radio behind a serial port that speaks KISS: one that listens on TCP, and a pseudo-terminal.

    bridge.py LINK HOST:PORT

LINK becomes a symbolic link to the terminal. A frame to the radio is '<', its length in two bytes (little-endian) and its
bytes; one from the radio begins with '>'.
"""
import asyncio
import contextlib
import os
import pty
import sys
import tty

END, ESCAPE = b"\xc0", b"\xdb"


def encoded(frame):
    return END + b"\0" + frame.replace(ESCAPE, b"\xdb\xdd").replace(END, b"\xdb\xdc") + END


def decoded(part):
    """The payload of what stood between two FENDs; None for what is no data frame."""
    if part[:1] != b"\0":
        return None
    return part[1:].replace(b"\xdb\xdc", END).replace(b"\xdb\xdd", ESCAPE)


async def to_radio(master, writer):
    loop, came, buffer = asyncio.get_running_loop(), asyncio.Queue(), b""
    loop.add_reader(master, lambda: came.put_nowait(os.read(master, 4096)))
    while True:
        *parts, buffer = (buffer + await came.get()).split(END)
        for payload in filter(None, map(decoded, parts)):
            writer.write(b"<" + len(payload).to_bytes(2, "little") + payload)


async def from_radio(master, reader):
    with contextlib.suppress(asyncio.IncompleteReadError):
        while (start := await reader.readexactly(3))[:1] == b">":
            frame = encoded(await reader.readexactly(int.from_bytes(start[1:], "little")))
            # Blocking: a terminal that nobody reads holds the radio back.
            while frame:
                frame = frame[os.write(master, frame):]


async def main(link, address):
    host, _, port = address.rpartition(":")
    # The other end stays open here, so that the terminal outlives the hosts that come and go.
    master, slave = pty.openpty()
    tty.setraw(slave)
    reader, writer = await asyncio.open_connection(host, int(port))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(os.ttyname(slave), link)
    print(f"the radio at {address} is at {link}", flush=True)
    tasks = [asyncio.create_task(to_radio(master, writer)), asyncio.create_task(from_radio(master, reader))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        os.unlink(link)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
