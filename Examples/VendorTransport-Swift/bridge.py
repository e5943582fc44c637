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
import signal
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
            await write(master, encoded(await reader.readexactly(int.from_bytes(start[1:], "little"))))


async def write(master, data):
    """Waits while the terminal is full: one that nobody reads holds the radio back."""
    loop, room = asyncio.get_running_loop(), asyncio.Event()
    while data:
        try:
            data = data[os.write(master, data):]
        except BlockingIOError:
            room.clear()
            loop.add_writer(master, room.set)
            try:
                await room.wait()
            finally:
                loop.remove_writer(master)


async def main(link, address):
    host, _, port = address.rpartition(":")
    # The other end stays open here, so that the terminal outlives the hosts that come and go.
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    # The link goes with the bridge, as a port goes with its device.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    reader, writer = await asyncio.open_connection(host, int(port))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(os.ttyname(slave), link)
    print(f"the radio at {address} is at {link}", flush=True)
    tasks = [asyncio.create_task(to_radio(master, writer)), asyncio.create_task(from_radio(master, reader))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        print("the radio has closed the connection", flush=True)
    finally:
        os.unlink(link)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(*sys.argv[1:]))
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
