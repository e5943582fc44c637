# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A daemon that owns a Bluetooth controller, and BLE radios in its air (Tests/Rigs/hci). No bluetoothd."""
import os

from ble_worlds import BARN, PIN, ROOF, Air, ble
from host import Host, device, equal, eventually, share


class Dongle(Air):
    """One daemon, one controller on a socket, radios in the air. What the radios do is told by `radio`."""

    @classmethod
    async def make(cls, rig, *radios, port="unix", options=()):
        """`port` is unix, tcp or pty; `options` are those of hci/ble_radio.py for the controller or all radios."""
        self = cls()
        self.rig = rig
        spec = {"unix": f"unix-server:{rig.path('hci')}", "tcp": "tcp-server:127.0.0.1:0",
                "pty": f"pty:{rig.path('tty')}"}[port]
        radios = radios or (ble(name="Roof", address=ROOF),)
        self.radio = await rig.start("radio", "hci/ble_radio.py", "--hci", spec, *options,
                                     *[word for words in radios for word in words])
        told = (await self.radio.event("hci_ready"))["spec"]
        self.port = told.replace("-server:", ":").replace("pty:", "h4:")
        await self.radio.event("ready")
        self.host = Host(rig)
        self.bonds = rig.path("bonds")
        os.makedirs(self.bonds, exist_ok=True)
        return self

    @classmethod
    async def bound(cls, rig, *radios, port="unix", options=(), **keys):
        """With the device `roof`, ready."""
        self = await cls.make(rig, *radios, port=port, options=options)
        self.host.configure(self.hci(**{"pin": PIN, **keys}))
        await self.host.start()
        await self.host.ready("roof")
        return self

    def hci(self, name="roof", address=ROOF, **keys):
        """A device of module `hci` whose frames are not MeshCore's: they go to the bus as they are."""
        by = {} if "options" in keys else {"address": address}
        return device(name, "hci", **by, **{"protocol": "none", "controller": self.port, "bond_dir": self.bonds, **keys})

    async def tell(self, whom, command):
        assert whom == "radio", whom
        return await self.radio.command(command)


__all__ = ["BARN", "Dongle", "PIN", "ROOF", "ble", "equal", "eventually", "share"]
