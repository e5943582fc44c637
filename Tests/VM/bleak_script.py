#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What people write with bleak, to compare with: it stays connected to one radio, and tells when the link is lost and
when the radio answers again.

    bleak_script.py ADDRESS [--passkey N]

It connects with bleak-retry-connector, at once after each loss; a device that is not bonded is paired with. Events:
`ready` and `lost` (both with `at`, wall clock), `reached` (as many numbered pushes as the command `expect N` said).
"""
import argparse
import asyncio
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "Rigs", "common")]

from bleak import BleakClient, BleakScanner              # noqa: E402
from bleak_retry_connector import establish_connection   # noqa: E402

from central import APP_START, RX, TX, Agent             # noqa: E402
from machine import Bus                                  # noqa: E402
from rigio import event, read_commands                   # noqa: E402

DEVICE_QUERY = b"\x16\x03"


class Script:
    def __init__(self, options):
        self.options = options
        self.pushes, self.expected = 0, -1
        self.answer = asyncio.Queue()
        self.lost = asyncio.Event()

    def notified(self, _, value):
        if value[0] == 0x88:
            self.pushes += 1
            if self.pushes == self.expected:
                event("reached", pushes=self.pushes)
        elif value[0] < 0x80:
            self.answer.put_nowait(bytes(value))

    def disconnected(self, _):
        event("lost", at=time.time())
        self.lost.set()

    def command(self, words):
        if words[0] != "expect":
            raise ValueError("expect N")
        self.pushes, self.expected = 0, int(words[1])

    async def link(self, device):
        """Until the radio has answered what every host asks first."""
        self.lost.clear()
        client = await establish_connection(BleakClient, device, device.name or device.address,
                                            disconnected_callback=self.disconnected)
        await client.start_notify(TX, self.notified)
        for question in (APP_START, DEVICE_QUERY):
            await client.write_gatt_char(RX, question, response=True)
            await asyncio.wait_for(self.answer.get(), 10)
        event("ready", at=time.time())
        await self.lost.wait()

    async def main(self):
        device = await BleakScanner.find_device_by_address(self.options.address, timeout=30)
        if self.options.passkey is not None:
            async with Bus() as bus:
                agent = await Agent(self.options.passkey).register(bus)
                async with BleakClient(device, pair=True):
                    await agent.unregister(bus)
        commands = read_commands(self.command)
        while commands is not None:
            try:
                await self.link(device)
            except Exception as error:
                event("failed", error=f"{type(error).__name__}: {error}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("address")
parser.add_argument("--passkey", type=int)
asyncio.run(Script(parser.parse_args()).main())
