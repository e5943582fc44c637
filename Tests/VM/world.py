# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What is in the air of the machine: three radios on controllers of their own, and companions behind them.

| radio | controller | | behind it |
|---|---|---|---|
| Roof | hci1 | passkey 123456 | openhop-core companion `Radio 0` |
| Yard | hci2 | passkey 123456 | burst_radio |
| Free | hci3 | no pairing | openhop-core companion `Radio 1` |

They live as long as the machine, since Python starts slowly in it; `reset` makes them as new.
"""
import asyncio
import contextlib
import itertools
import signal

import machine
from bluetooth import ble
from harness import PATIENCE

ROOF, YARD, FREE = "C0:11:22:33:44:55", "C0:11:22:33:44:56", "C0:11:22:33:44:57"
NAMES = {ROOF: "MeshCore-Roof", YARD: "MeshCore-Yard", FREE: "MeshCore-Free"}
PASSKEY = 123456

# Firmware waits 60 ms between notifications. Less, for the sake of time; beyond 300 a second the kernel drops them.
GAP_MS = 5


class World:
    """`radios` are the companions, `burst` the fast one, `air` the BLE radios, `bus` sees bluetoothd's objects."""

    def __init__(self, rig, repeats):
        self.rig, self.repeats = rig, repeats

    async def start(self):
        self.bus = await machine.Bus().__aenter__()
        self.rig.closers.append(self.bus.__aexit__)
        self.radios, self.burst = await asyncio.gather(self.rig.radios("--count", 2), self.rig.burst())
        behind = {ROOF: self.radios.ports[0], YARD: self.burst.port, FREE: self.radios.ports[1]}
        kinds = {ROOF: {"like": "esp32"}, YARD: {"like": "nrf52", "legacy": 0}, FREE: {"security": "none"}}
        radios = [ble(name=NAMES[address], address=address, hci=f"hci-socket:{number}", bridge=behind[address],
                      repeat_ms=250, unused_s=20, **kinds[address], gap_ms=GAP_MS) for number, address in enumerate(NAMES, 1)]
        self.air = await self.rig.start("air", "hci/ble_radio.py", *itertools.chain(*radios))
        await self.air.event("ready", timeout=120)
        return self

    async def tell(self, command, address=None, timeout=None):
        """A command of ble_radio.py, to one radio or to all."""
        return await self.air.command(f"{command} {NAMES[address]}" if address else command, timeout)

    @contextlib.asynccontextmanager
    async def other(self, address, settings):
        """Another radio, such as `security=justworks`, in the place of one that nobody is connected to."""
        await self.air.command(f"become {settings} {NAMES[address]}")
        try:
            yield
        finally:
            await self.air.command(f"become - {NAMES[address]}")

    async def radio_event(self, name, address, timeout=None, **fields):
        return await self.air.event(name, timeout, radio=NAMES[address], **fields)

    def told(self, name, address, **fields):
        """How often a radio told of an event since the test began."""
        return self.air.count(name, self.begin, radio=NAMES[address], **fields)

    async def reset(self):
        """Everything on and in range, nobody connected or bonded, and links can be made."""
        try:
            await self._reset()
        except Exception as error:                # what the test before left is broken beyond that
            self.rig.note(f"controllers and bluetoothd anew: {type(error).__name__}: {error}")
            await self._renew()
            await self._reset()

    async def _try_a_link(self):
        """At times btvirt makes no link from an adapter any more, whoever asks for one, until it is started anew: once in some
        dozens of tests. That is no test's business."""
        await self.bus.call(machine.ADAPTER, "Adapter1.StartDiscovery")
        await self.until(lambda: self.bus.device(FREE), "the radio is heard", 30)
        await self.bus.call(machine.ADAPTER, "Adapter1.StopDiscovery")
        await self.bus.call(machine.path(FREE), "Device1.Connect", timeout=30)
        await self.bus.call(machine.path(FREE), "Device1.Disconnect", timeout=30)
        await self.until(lambda: self._is_left(FREE), "the radio is left alone", 30)
        await self.bus.remove(FREE)

    async def _is_left(self, address):
        return self.told("disconnected", address) >= self.told("connected", address) > 0

    async def _renew(self):
        with contextlib.suppress(OSError):
            await asyncio.wait_for(machine.bluetoothd_stop(signal.SIGKILL), 10)
        await machine.shell("controllers_stop")
        await self.tell("shut")
        await machine.shell("controllers_start && bluetoothd_start")
        await self.tell("reopen")

    async def _reset(self):
        if not (await self.bus.objects()).get(machine.ADAPTER):
            with contextlib.suppress(OSError):
                await asyncio.wait_for(machine.bluetoothd_stop(), 10)
            await machine.bluetoothd_start()
        await machine.power(True)
        await self.tell(f"passkey {PASSKEY}")
        for address in NAMES:
            await self.bus.remove(address)
        await self.tell("forget")
        for command in ("gone", "back"):
            await self.tell(command)
        self.begin = self.air.mark()              # what a trial link tells is not the test's
        await self._try_a_link()
        self.begin = self.air.mark()

    async def until(self, condition, what, timeout=PATIENCE):
        """For what no event tells: look again until it holds."""
        deadline = asyncio.get_running_loop().time() + timeout
        while not (result := await condition()):
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"never: {what}")
            await asyncio.sleep(0.1)
        return result
