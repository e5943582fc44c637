#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A stand-in for bluetoothd: org.bluez on a private system bus, with a real LE host below it, so that MTU, ATT errors,
passkey pairing, bonds and lost links are real.

    DBUS_SYSTEM_BUS_ADDRESS=unix:path=... fakebluez.py tcp-client:127.0.0.1:9701      (a controller of ../hci)

`start` beside this file runs bus, radios and facade together. Each controller is an adapter, hci0, hci1, ... A line of a
command may end with the name of one; without it the command is for all of them (`connect`, `disconnect`: for hci0).

Events: `call` (n, member, path, client) and `answer` (n, error) for each method call that is more than reading,
`agent` for each question to an agent, `up` and `down`.

Commands on standard input:
    restart [S]              stopped and started again: links drop with signals, the name is away for S (0.5) seconds
    crash [S]                killed: the bus connection breaks, no signal; comes back after S (0.5) seconds
    crash stay / come-back   the same in two parts
    power on|off             as another program or a person would
    rfkill on|off            blocked: Powered goes off and cannot be set
    adapter remove|add       the dongle is pulled / plugged in again; bonds are kept
    removedev [ADDRESS]      devices go from the tree (all without ADDRESS), bonds with them
    unbond [ADDRESS]         the host's side of the bond is lost
    connect ADDRESS          the link is set up by somebody else
    disconnect ADDRESS       and ended by somebody else
    fail TARGET ERROR N|P% [TEXT]  the next N calls of TARGET (or that share of them) fail. TARGET is Device1.Connect,
                             or Connect, or *; with @PART (hci1, an address) only of such objects. ERROR is InProgress
                             (of org.bluez.Error) or a full name
    delay TARGET S N|P%      they are answered S seconds later
    hang TARGET N|P%         they are never answered; a hanging Connect ends with Disconnect
    abort N|P%               Connect gets as far as Connected=true, then le-connection-abort-by-local
    early-resolved S         ServicesResolved comes S seconds before the objects do; 0 ends it
    no-resolve on|off        ServicesResolved never comes
    deaf on|off              the search hears nothing, until it is begun anew
    duplicate on|off         each notification is told twice
    keep-gatt on|off         bonded devices keep their GATT objects while disconnected
    old on|off               as BlueZ 5.66: no signal Disconnected, and a bond that the radio has lost fails Connect with
                             le-connection-abort-by-local
    clear                    ends all of fail ... old
"""
import argparse
import asyncio
import logging
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

from bumble import hci                                                 # noqa: E402
from bumble.device import Device, DeviceConfiguration                  # noqa: E402
from bumble.keys import MemoryKeyStore                                 # noqa: E402
from bumble.transport import open_transport                            # noqa: E402

from adapter import Adapter, AgentManager                              # noqa: E402
from faults import Faults                                              # noqa: E402
from objects import Tree                                               # noqa: E402
from rigio import event, read_commands                                 # noqa: E402


class Facade:
    def __init__(self, radios, temporary):
        self.faults = Faults()
        self.tree = Tree(self.faults)
        self.agents = AgentManager(self.tree)
        self.adapters = [Adapter(self.tree, index, radio, self.agents, self.faults, temporary)
                         for index, radio in enumerate(radios)]

    async def come_up(self):
        await self.tree.connect()
        self.agents.export()
        for adapter in self.adapters:
            adapter.export()
        event("up", name=self.tree.bus.unique_name, adapters=[adapter.address for adapter in self.adapters])

    async def go_down(self):
        await self.tree.disconnect()
        for adapter in self.adapters:
            await adapter.withdraw()
        event("down")

    def choose(self, words):
        """The adapter that the last word names, and the words without it; all adapters when none is named."""
        chosen = [adapter for adapter in self.adapters if words and words[-1] == adapter.name]
        return (chosen, words[:-1]) if chosen else (self.adapters, words)

    async def command(self, words):
        if self.faults.command(words):
            return
        word, rest = words[0].replace("-", "_"), words[1:]
        if word in ("restart", "crash", "come_back"):
            await getattr(self, word)(*rest)
            return
        adapters, rest = self.choose(rest)
        if word in ("connect", "disconnect"):    # of one device, on one adapter
            device = adapters[0].device(rest[0])
            await (device.connect() if word == "connect" else device.drop())
        elif word in ("power", "rfkill", "adapter", "removedev", "unbond"):
            for adapter in adapters:
                await getattr(self, word)(adapter, *rest)
        else:
            raise ValueError("unknown command")

    # all of bluetoothd ------------------------------------------------------------------------------------------------
    async def restart(self, seconds="0.5"):
        for adapter in self.adapters:
            for device in list(adapter.devices.values()):
                await device.drop()
        await self.crash(seconds)

    async def crash(self, seconds="0.5"):
        await self.go_down()
        if seconds != "stay":
            await asyncio.sleep(float(seconds))
            await self.come_up()

    async def come_back(self):
        await self.come_up()

    # an adapter -------------------------------------------------------------------------------------------------------
    async def power(self, adapter, on):
        await adapter.power(on == "on")

    async def rfkill(self, adapter, on):
        await adapter.block(on == "on")

    async def adapter(self, adapter, what):
        if what == "remove":
            await adapter.withdraw()
        else:
            adapter.export()

    async def removedev(self, adapter, *addresses):
        for device in [each for each in adapter.devices.values() if not addresses or each.address in addresses]:
            await adapter.remove(device)

    async def unbond(self, adapter, *addresses):
        for device in [each for each in adapter.devices.values() if not addresses or each.address in addresses]:
            await device.unbond()


async def le_host(transport_name, index):
    """Bumble's LE host on a controller."""
    transport = await open_transport(transport_name)
    radio = Device.from_config_with_hci(
        DeviceConfiguration(name="facade", address=hci.Address(f"C0:00:00:00:00:{2 + index:02X}")), transport.source,
        transport.sink)
    await radio.power_on()
    radio.keystore = MemoryKeyStore()
    return radio


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hci", nargs="+", help="Bumble transport of a controller; the first becomes hci0")
    parser.add_argument("--temporary", type=float, default=30, metavar="SECONDS",
                        help="how long a device that was only seen is remembered")
    parser.add_argument("--debug", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, stream=sys.stderr)
    facade = Facade([await le_host(name, index) for index, name in enumerate(options.hci)], options.temporary)
    await facade.come_up()
    tasks = [read_commands(facade.command), *(asyncio.ensure_future(each.sweep()) for each in facade.adapters)]
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    for task in filter(None, tasks):
        task.cancel()
    await facade.go_down()

if __name__ == "__main__":
    asyncio.run(main())
