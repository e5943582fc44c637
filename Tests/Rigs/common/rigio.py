# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""How every rig program talks: one JSON object per line on standard output, one command per line on standard input."""
import asyncio
import inspect
import json
import os
import time

_START = time.monotonic()


def event(name, /, **fields):
    """Print one event. `t` is seconds since the program started."""
    print(json.dumps({"t": round(time.monotonic() - _START, 4), "ev": name, **fields}), flush=True)


def read_commands(handle):
    """Call `handle(words)` for each line of standard input, in order.

    Each line is answered by {"ev": "command", "cmd": LINE, "ok": true|false}, with `error` when it failed. A rig
    without standard input, or with a closed one, simply takes no commands.
    """
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue()

    async def work():
        while True:
            line = await lines.get()
            try:
                result = handle(line.split())
                if inspect.isawaitable(result):
                    result = await result
                event("command", cmd=line, ok=True, **(result or {}))
            except Exception as error:
                event("command", cmd=line, ok=False, error=f"{type(error).__name__}: {error}")

    pending = bytearray()

    def readable():
        chunk = os.read(0, 65536)
        if not chunk:
            loop.remove_reader(0)
            return
        pending.extend(chunk)
        while b"\n" in pending:
            line, _, rest = bytes(pending).partition(b"\n")
            pending[:] = rest
            if line.strip():
                lines.put_nowait(line.decode().strip())

    try:
        loop.add_reader(0, readable)
    except (OSError, ValueError):   # closed, /dev/null or a plain file: nothing to wait for
        return None
    return loop.create_task(work())
