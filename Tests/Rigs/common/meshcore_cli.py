# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Runs meshcore-cli, the reference companion client, and returns what it printed as JSON values."""
import asyncio
import json
import os
import sys

from harness import PATIENCE

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patient_meshcore.py")


async def meshcore_cli(scratch, *words, timeout=2 * PATIENCE, env=None):
    """`words` as on its command line. Its own files go to `scratch`."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, "-j", *map(str, words), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": scratch, **(env or {})})
    try:
        out, err = await asyncio.wait_for(child.communicate(), timeout)
    except asyncio.TimeoutError:
        child.kill()
        await child.wait()
        raise TimeoutError(f"meshcore-cli {words}") from None
    values, text, decoder = [], out.decode(errors="replace"), json.JSONDecoder()
    while (start := min((i for i in (text.find("{"), text.find("[")) if i >= 0), default=-1)) >= 0:
        try:
            value, end = decoder.raw_decode(text[start:])
        except ValueError:
            text = text[start + 1:]
            continue
        values.append(value)
        text = text[start + end:]
    if not values:
        raise RuntimeError(f"meshcore-cli {words}: {out.decode()[-200:]} {err.decode()[-300:]}")
    return values
