# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Controllers and radios that fail, with the module hci on a controller of Bumble's. R25 and its like are the requirements of the
handbook's page BluetoothStack."""
import asyncio
import os
import signal

from ble_faults import short
from host import Host, device, equal

PIN, ROOF = "123456", "C0:11:22:33:44:55"
REPEATS = int(os.environ.get("MESHHOST_BLE_FAULTS", "20"))


class Dongle:
    """One daemon and the controller it owns, with the radio `Roof` in the air."""

    @classmethod
    async def make(cls, rig, companion=False, **keys):
        """With `companion` the radio is one of MeshCore's, which the host greets; else it echoes, and bursts when told to."""
        self = cls()
        self.rig, self.options, self.path = rig, [], rig.path("hci")
        if companion:
            self.options = ["--bridge", f"127.0.0.1:{(await rig.radios('--count', '1')).ports[0]}"]
        else:
            keys["protocol"] = "none"
        await self.plug_in()
        self.host = Host(rig)
        bonds = rig.path("bonds")
        os.mkdir(bonds, 0o700)
        self.host.configure(device("roof", "hci", address=ROOF, pin=PIN, controller=f"unix:{self.path}",
                                   bond_dir=bonds, **keys))
        return self

    @classmethod
    async def bound(cls, rig, **keys):
        self = await cls.make(rig, **keys)
        await self.host.start()
        await self.host.ready("roof")
        return self

    async def plug_in(self):
        """A new process is a new dongle, and a new radio that knows nobody."""
        self.radio = await self.rig.start("radio", "hci/ble_radio.py", "--hci", f"unix-server:{self.path}", "--name", "Roof",
                                          *self.options)
        await self.radio.event("ready")

    async def down(self):
        return (await self.host.events.event("link.down", device="roof"))["data"]

    async def burst(self, count):
        """So many numbered frames from the radio, complete, once each and in their order."""
        tap = await self.host.listen("--type", "frame.rx")
        await self.radio.command(f"burst {count} 20")
        await tap.until(lambda: tap.count("frame.rx") >= count, f"{count} frames")
        numbers = [int.from_bytes(bytes.fromhex(each["data"]["hex"])[1:3], "little") for each in tap.all("frame.rx")]
        equal(numbers, list(range(count)), "numbers of the frames")
        await tap.stop()


async def _comes_and_goes(rig, away, back, repeats=REPEATS, says="", **keys):
    """Something fails and works again: the link's end has a reason, and it is back."""
    dongle = await Dongle.bound(rig, **keys)
    for _ in range(repeats):
        dongle.host.events.mark()
        await away(dongle)
        end = await dongle.down()
        assert end["message"] and end["disposition"] == "transient", end
        assert says in end["message"], end
        await back(dongle)
        await dongle.host.ready("roof")
    if "companion" not in keys:
        await dongle.burst(10)


def _tell(command):
    async def tell(dongle):
        await dongle.radio.command(command)
    return tell


async def _nothing(_):
    pass


async def a_radio_that_hangs_up_is_called_again(rig):
    await _comes_and_goes(rig, _tell("terminate"), _nothing, says="ended the link")


async def a_radio_out_of_range_is_found_again(rig):
    await _comes_and_goes(rig, _tell("gone"), _tell("back"), says="heard")


async def a_radio_that_vanishes_is_given_up_with_its_supervision_timeout(rig):
    async def vanish(dongle):
        await dongle.radio.command("vanish")
        await dongle.radio.command("timeout")
    await _comes_and_goes(rig, vanish, _nothing, says="heard")


async def r26_a_controller_that_reports_a_hardware_error_is_reset(rig):
    await _comes_and_goes(rig, _tell("hwerror"), _nothing)


async def a_dongle_that_is_pulled_and_put_back_is_used_again(rig):
    await _comes_and_goes(rig, _tell("unplug"), _tell("plug"), says=f"unix:{rig.path('hci')}")


async def a_controller_whose_process_dies_is_waited_for(rig):
    # The radio dies with it and has lost its bond, as a radio that was flashed anew.
    async def die(dongle):
        await dongle.radio.stop(signal.SIGKILL)

    async def live(dongle):
        await dongle.plug_in()
    await _comes_and_goes(rig, die, live, repeats=min(REPEATS, 3), companion=True, stale_bond_repairs=10)


async def r26_a_controller_that_says_nothing_any_more_is_reset(rig):
    dongle = await Dongle.bound(rig)
    for _ in range(min(REPEATS, 3)):
        await dongle.radio.command("mute")
        # A command that nobody answers shows it.
        equal((await dongle.host.cli("device", "roof", "reconnect"))[0], 0)
        await dongle.host.events.event("link.waiting", device="roof", where=lambda each: each["data"]["why"] == "adapter")
        await dongle.radio.command("unmute")
        await dongle.host.ready("roof")
    await dongle.burst(10)


async def credits_that_are_withheld_end_no_link(rig):
    dongle = await Dongle.bound(rig)
    await dongle.radio.command("stall")
    await dongle.burst(10)
    await dongle.radio.command("unstall")
    equal(dongle.host.events.count("link.down"), 0, "ends of the link")
    # And a link that ends meanwhile takes its own with it.
    await dongle.radio.command("stall")
    dongle.host.events.mark()
    await dongle.radio.command("linkloss")
    await dongle.down()
    await dongle.radio.command("unstall")
    await dongle.host.ready("roof")
    await dongle.burst(10)


async def r25_an_attempt_at_a_radio_that_is_not_there_ends_and_names_its_phase(rig):
    dongle = await Dongle.make(rig, **short("connect"))
    await dongle.radio.command("adv off")
    await dongle.host.start()
    end = await dongle.down()
    equal((end["code"], end["disposition"]), ("link.timeout", "transient"), str(end))
    assert "connecting" in end["message"] and ROOF in end["message"], end
    await dongle.radio.command("adv on")
    await dongle.host.ready("roof")


async def r30_a_radio_that_has_lost_its_bond_is_paired_with_anew(rig):
    dongle = await Dongle.bound(rig, companion=True, stale_bond_repairs=1)
    await dongle.radio.command("forget")
    await dongle.radio.command("terminate")
    await dongle.down()
    await dongle.host.ready("roof")
    equal(dongle.radio.count("paired"), 2, "pairings")


async def r30_without_leave_a_person_is_asked_for(rig):
    dongle = await Dongle.bound(rig)
    await dongle.radio.command("forget")
    await dongle.radio.command("terminate")
    end = await dongle.host.events.event("link.down", where=lambda each: each["data"]["disposition"] != "transient")
    equal(end["data"]["code"], "link.authentication-failed", str(end))


async def r30_another_pin_is_said(rig):
    dongle = await Dongle.make(rig)
    await dongle.radio.command("passkey 654321")
    await dongle.host.start()
    end = await dongle.down()
    assert "PIN" in end["message"] or "pin" in end["message"], end
    equal(end["code"], "link.authentication-failed", str(end))


async def a_daemon_that_is_killed_in_traffic_leaves_a_controller_that_can_be_used(rig):
    dongle = await Dongle.bound(rig)
    for _ in range(3):
        burst = asyncio.ensure_future(dongle.radio.command("pace 2000 200 500"))
        await asyncio.sleep(0.3)
        dongle.host.process.kill(signal.SIGKILL)
        await dongle.host.process.ended()
        await burst
        await dongle.host.start()
        await dongle.host.ready("roof")
    await dongle.burst(10)
