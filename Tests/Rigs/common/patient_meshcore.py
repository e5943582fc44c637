#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""meshcore_py for machines that stand still at times; as a program, meshcore-cli.

Two things make the library lose answers where everything waits for processor time. It gives up after what it thinks an
answer takes, which says nothing of the host or the radio. And it begins to wait for the mesh's answer when it has seen the
receipt, so that an answer that was read together with the receipt has gone by.
"""
import asyncio
import sys

if __name__ == "__main__":
    # Behind what is installed: the package meshcore_cli is called like a file here.
    sys.path.append(sys.path.pop(0))

from harness import PATIENCE                             # noqa: E402
import meshcore.meshcore                                 # noqa: E402
from meshcore import MeshCore                            # noqa: E402
from meshcore.commands import CommandHandler             # noqa: E402
from meshcore.events import EventDispatcher, EventType   # noqa: E402
from meshcore.reader import MessageReader                # noqa: E402

# So many turns of the loop after a frame, whoever waited for it has gone on, and waits for what comes next.
TURNS = 20


class _Reader(MessageReader):
    """Takes a frame when those who waited for the one before have gone on."""

    def __init__(self, dispatcher):
        super().__init__(dispatcher)
        self.turn = asyncio.Lock()

    async def handle_rx(self, data):
        async with self.turn:
            await super().handle_rx(data)
            for _ in range(TURNS):
                await asyncio.sleep(0)


class _Dispatcher(EventDispatcher):
    async def dispatch(self, event):
        if event.type == EventType.MSG_SENT:      # whose estimate the library's times are made from
            event.payload["suggested_timeout"] = max(event.payload["suggested_timeout"], int(PATIENCE * 1000))
        await super().dispatch(event)

    async def wait_for_event(self, event_type, attribute_filters=None, timeout=None):
        return await super().wait_for_event(event_type, attribute_filters, max(timeout or 0, PATIENCE))


def _patient(send):
    async def with_patience(self, data, expected_events=None, timeout=None, **options):
        return await send(self, data, expected_events, max(timeout or 0, PATIENCE), **options)
    return with_patience


meshcore.meshcore.EventDispatcher = _Dispatcher
meshcore.meshcore.MessageReader = _Reader
CommandHandler.send = _patient(CommandHandler.send)
CommandHandler.get_contacts.__defaults__ = (0, PATIENCE)


async def connect(port):
    """A client of a port of this machine that has been greeted."""
    client = await asyncio.wait_for(MeshCore.create_tcp("127.0.0.1", port, default_timeout=PATIENCE), 2 * PATIENCE)
    assert client is not None, "meshcore_py got no answer to its greeting"
    return client


if __name__ == "__main__":
    from meshcore_cli.meshcore_cli import cli
    cli()
