#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A companion radio behind a Unix socket: one that listens on TCP, each frame behind its length.

    bridge.py PATH HOST:PORT

A frame is its length in two bytes (little-endian) and its bytes; one to the radio has '<' before it there, and one from the
radio '>'. Each connection to PATH is one to the radio.
"""
import asyncio
import contextlib
import os
import sys


async def carry(reader, writer, theirs, ours):
    """Frames that begin with `theirs` in one direction, with `ours` behind it."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            start = await reader.readexactly(len(theirs) + 2)
            if start[:len(theirs)] != theirs:
                break
            length = start[len(theirs):]
            writer.write(ours + length + await reader.readexactly(int.from_bytes(length, "little")))
            await writer.drain()
    writer.close()


async def serve(host, port, reader, writer):
    try:
        from_radio, to_radio = await asyncio.open_connection(host, port)
    except OSError as error:
        print(f"no radio: {error}", file=sys.stderr)
        return writer.close()
    await asyncio.gather(carry(reader, to_radio, b"", b"<"), carry(from_radio, writer, b">", b""))


async def main(path, address):
    host, _, port = address.rpartition(":")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server = await asyncio.start_unix_server(lambda *ends: serve(host, int(port), *ends), path)
    print(f"the radio at {address} is at {path}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
