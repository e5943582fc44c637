# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A daemon with BLE radios behind a stand-in for bluetoothd (Tests/Rigs/dbus)."""
from bluetooth import ble
from host import Host, device, equal, eventually, share

ROOF, BARN = "C0:11:22:33:44:55", "C0:11:22:33:44:66"
PIN = "123456"


def bluez(name="roof", address=ROOF, **keys):
    """A device of module `bluez` whose frames are not MeshCore's: they go to the bus as they are."""
    return device(name, "bluez", address=address, **{"protocol": "none", **keys})


class Air:
    """One daemon, one bluetoothd, radios in the air. The radio `Roof` echoes what it is sent and bursts when told to."""

    @classmethod
    async def make(cls, rig, *radios, **bluetooth):
        self = cls()
        self.rig = rig
        radios = radios or (ble(name="Roof", address=ROOF),)
        self.bluetooth = await rig.bluez(*[word for words in radios for word in words], **bluetooth)
        self.bluez, self.radio = self.bluetooth.bluez, self.bluetooth.radio
        self.host = Host(rig, env=self.bluetooth.environment)
        return self

    @classmethod
    async def bound(cls, rig, *radios, config=None, **keys):
        """With the device `roof`, ready."""
        self = await cls.make(rig, *radios)
        self.host.configure(*(config or [bluez(pin=PIN, **keys)]))
        await self.host.start()
        await self.host.ready("roof")
        return self

    async def tell(self, whom, command):
        """A command for `radio` or `bluez`."""
        return await self.bluetooth.command(f"{whom} {command}")

    async def frames(self):
        """What comes from now on."""
        return await self.host.listen("--type", "frame.rx")

    async def down(self, name="roof"):
        """The next end of the device's link, or attempt."""
        return (await self.host.events.event("link.down", device=name))["data"]

    async def waiting(self, why, name="roof"):
        return (await self.host.events.event("link.waiting", device=name, where=lambda each: each["data"]["why"] == why)
                )["data"]

    async def state(self, name="roof"):
        return (await self.host.devices())[name]

    def calls(self, member, since=0, address=None):
        return self.bluetooth.calls(member, since, address)

    async def burst(self, tap, count, length=20, radio="Roof"):
        """So many numbered frames from the radio, complete, once each and in their order."""
        before = tap.count("frame.rx")
        await self.tell("radio", f"burst {count} {length} {radio}")
        await tap.until(lambda: tap.count("frame.rx") >= before + count, f"{count} frames")
        numbers = [int.from_bytes(bytes.fromhex(each["data"]["hex"])[1:3], "little")
                   for each in tap.all("frame.rx")[before:]]
        equal(numbers, list(range(count)), "numbers of the frames")


def once(values):
    """Whether each value is there once."""
    return len(values) == len(set(values))


__all__ = ["Air", "BARN", "PIN", "ROOF", "ble", "bluez", "equal", "eventually", "once", "share"]
