#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A host made with Bumble, to compare with: it connects to the one radio in the air, listens to it, and counts.

    bumble_host.py TRANSPORT        such as unix:PATH

Event `ready` when the radio is listened to; command `count` is answered with how many notifications have come.
"""
import asyncio
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "Rigs", "common"))

from bumble.core import UUID                             # noqa: E402
from bumble.device import Device, Peer                   # noqa: E402
from bumble.transport import open_transport              # noqa: E402

from rigio import event, read_commands                   # noqa: E402

SERVICE, TX = (UUID(f"6E40000{number}-B5A3-F393-E0A9-E50E24DCCA9E") for number in (1, 3))


async def main():
    count = 0

    def notified(_):
        nonlocal count
        count += 1

    async with await open_transport(sys.argv[1]) as transport:
        device = Device.with_hci("Host", "C0:00:00:00:00:01", transport.source, transport.sink)
        await device.power_on()
        found = asyncio.get_running_loop().create_future()
        device.on("advertisement", lambda seen: found.done() or found.set_result(seen.address))
        await device.start_scanning()
        address = await found
        await device.stop_scanning()
        peer = Peer(await device.connect(address))
        await peer.request_mtu(517)
        await peer.discover_services([SERVICE])
        service, = peer.get_services_by_uuid(SERVICE)
        await service.discover_characteristics()
        transmit, = service.get_characteristics_by_uuid(TX)
        await transmit.subscribe(notified)
        commands = read_commands(lambda words: {"count": count})
        event("ready")
        await commands


asyncio.run(main())
