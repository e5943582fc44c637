# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Controllers of the module `hci` as such: what they are, what is recorded of them, and what becomes of those that
cannot be used. Real adapters are for Tests/VM."""
import asyncio
import os
import stat

import btsnoop
from bumble import hci
from bluetooth import ble
from host import Host, device, equal, eventually

PIN = "123456"


class _Air:
    """A controller on a Unix socket, and the radio `Roof`, which echoes."""

    @classmethod
    async def make(cls, rig, *options):
        self = cls()
        self.rig = rig
        self.path = rig.path("hci")
        self.port = f"unix:{self.path}"
        self.radio = await rig.start("radio", "hci/ble_radio.py", "--hci", f"unix-server:{self.path}",
                                     *ble(name="Roof"), *options)
        await self.radio.event("ready")
        return self

    def device(self, **keys):
        return device("roof", "hci", options={"name": "Roof"}, controller=self.port, bond_dir=self.rig.scratch.name,
                      protocol="none", pin=PIN, **keys)


async def info_tells_what_a_controller_is_with_and_without_a_daemon(rig):
    air = await _Air.make(rig)
    host = Host(rig)
    host.configure(air.device())
    alone = (await host.json("hci", "info", air.port, "--config", host.config))["adapter"]
    equal((alone["controller"], alone["in_use"], alone["commands"]), (air.port, False, "legacy"))
    # Bumble's has the feature without the commands.
    assert any("extended advertising" in each for each in alone["quirks"]), alone
    assert {"encryption", "data-length-extension"} <= set(alone["features"]), alone
    assert alone["buffers"]["count"] > 0 and alone["buffers"]["length"] >= 27, alone

    await host.start()
    await host.ready("roof")
    used = (await host.json("hci", "info", air.port))["adapter"]
    equal(used, {**alone, "in_use": True}, "what the daemon tells")
    equal((await host.devices())["roof"]["state"], "ready")
    status, out, error = await host.cli("hci", "info", air.port)
    equal(status, 0, error)
    assert out.startswith("controller") and ", in use" in out and "encryption" in out, out
    equal(await host.stop(), 0)


async def info_says_why_a_controller_cannot_be_used(rig):
    host = Host(rig)
    host.configure()
    for port, status, words in (
            (f"unix:{rig.path('nobody')}", 69, "cannot be opened"), ("tcp:127.0.0.1:1", 69, "nobody listens"),
            ("hci4711", 69, "hci4711"), ("usb:1", 64, "is no controller; for example hci1")):
        ended, out, error = await host.cli("hci", "info", port, "--config", host.config)
        equal((ended, out), (status, ""), error)
        assert words in error, error
    # One that takes all and says nothing.
    silent = await asyncio.start_unix_server(lambda *_: None, rig.path("silent"))
    ended, _, error = await host.cli("hci", "info", f"unix:{rig.path('silent')}", "--config", host.config)
    silent.close()
    equal(ended, 69, error)
    assert "does not answer" in error, error


async def a_controller_that_is_not_there_is_told_once_and_waited_for(rig):
    host = Host(rig)
    air = _Air()
    air.rig, air.port = rig, f"unix:{rig.path('hci')}"
    host.configure(air.device())
    await host.start()

    async def why():
        waiting = (await host.devices())["roof"]["waiting"]
        return waiting and waiting["why"] == "adapter" and "cannot be opened" in waiting["text"] + str(
            (await host.devices())["roof"]["last_error"])
    await eventually(why, "roof waits for its adapter and says why")
    await asyncio.sleep(4)
    lines = [line for line in host.process.errors if "the controller cannot be used" in line]
    equal(len([line for line in lines if "debug" not in line.lower()]), 1, f"lines: {lines}")
    air = await _Air.make(rig)
    await host.ready("roof")
    # Lost and back: opened soon, and told anew.
    for number in range(3):
        await air.radio.command("unplug 0")
        await host.events.event("link.down", device="roof")
        await air.radio.command("plug 0")
        await host.ready("roof")
    equal(await host.stop(), 0)


async def what_is_recorded_is_what_other_readers_read(rig):
    air = await _Air.make(rig)
    path = rig.path("capture")
    host = Host(rig)
    host.configure(air.device(capture=path))
    for number in range(2):
        await host.start()
        await host.ready("roof")
        await air.radio.command("burst 50 20 Roof")
        equal(await host.stop(), 0)
    for name in (path, path + ".1"):
        equal(stat.S_IMODE(os.stat(name).st_mode), 0o600, "mode")
        records = btsnoop.read(name)
        equal({each.drops for each in records}, {0}, "drops")
        assert isinstance(records[0].packet, hci.HCI_Reset_Command), records[0]
        for each in records:
            is_data = isinstance(each.packet, hci.HCI_AclDataPacket)
            equal(each.is_control, not is_data, "flag of control")
            if not is_data:
                equal(each.from_controller, isinstance(each.packet, hci.HCI_Event), "direction")
        ways = {each.from_controller for each in records if isinstance(each.packet, hci.HCI_AclDataPacket)}
        equal(ways, {True, False}, "ways of data")
        times = [each.time for each in records]
        assert times == sorted(times), "times"
        rig.note(f"{len(records)} packets in {os.path.getsize(name)} bytes")
