# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Pairing through bluetoothd, unattended. R1 and its like are the requirements of the handbook's page BlueZ."""
import asyncio
import signal
import sys

from ble_worlds import PIN, ROOF, Air, ble, bluez, equal, eventually
from harness import PATIENCE, RIGS

sys.path.insert(0, f"{RIGS}/dbus")
from client import Client                                # noqa: E402


async def r1_a_fresh_radio_is_paired_with_its_pin_and_asked_once(rig):
    air = await Air.bound(rig)
    equal(air.calls("Pair"), 1, "pairings")
    equal(air.bluez.count("agent", member="RequestPasskey"), 1, "questions for the passkey")
    equal(air.radio.all("paired")[-1]["authenticated"], True, "authenticated bond")
    # At once and with the first attempt; how soon, tests of the virtual machine tell (vm_pairing).
    equal((air.host.events.count("link.down"), air.host.events.count("link.connecting")), (0, 1), "failures, attempts")
    await air.burst(await air.frames(), 50)


async def r1_the_second_start_uses_the_bond_without_a_question(rig):
    air = await Air.bound(rig)
    equal(await air.host.stop(), 0, "exit status")
    await air.host.start()
    await air.host.ready("roof")
    equal((air.calls("Pair"), air.bluez.count("agent")), (1, 1), "pairings and questions in both runs")


async def r1_a_radio_with_legacy_pairing_is_paired_too(rig):
    air = await Air.bound(rig, ble(name="Roof", address=ROOF, like="nrf52"))
    equal(air.calls("Pair"), 1, "pairings")
    await air.burst(await air.frames(), 50)


async def a_wrong_pin_is_tried_once_and_needs_a_person(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin="111111"))
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.authentication-failed", "permanent"))
    assert "PIN" in end["message"], end
    equal((await air.waiting("blocked"))["code"], "link.authentication-failed")
    equal((air.calls("Pair"), air.bluez.count("agent")), (1, 1), "pairings and questions")
    # With the right one in the config it goes on, without a restart.
    air.host.configure(bluez(pin=PIN))
    equal((await air.host.cli("reload"))[0], 0)
    await air.host.ready("roof")


async def a_radio_that_wants_a_pin_that_nobody_configured_says_so(rig):
    air = await Air.make(rig, ble(name="Roof", address=ROOF, tx_protected=1))
    air.host.configure(bluez())
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.authentication-failed", "permanent"))
    assert "pin" in end["message"], end


async def r2_a_bond_without_the_passkey_is_made_anew(rig):
    # An ESP32 lets anybody subscribe; only the first write shows that the bond is not good enough.
    radios = await rig.radios("--count", 1)
    air = await Air.make(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]))
    async with Client(air.bluetooth.address) as other:
        await other.find(ROOF)
        await other.use_agent(0, "NoInputNoOutput")             # which makes it Just Works
        await other.connect(ROOF)
        await other.call(other.path(ROOF), "Device1.Pair")
        await other.disconnect(ROOF)
    equal(air.radio.all("paired")[-1]["authenticated"], False, "authenticated bond")
    air.host.configure(bluez(pin=PIN, protocol="companion"))
    await air.host.start()
    await air.host.ready("roof")
    equal([each["authenticated"] for each in air.radio.all("paired")], [False, True], "bonds")
    equal((air.calls("RemoveDevice"), air.calls("Pair")), (1, 2), "bonds removed, pairings of both programs")


async def r2_a_write_that_stays_in_progress_is_given_up_at_its_deadline(rig):
    # 5 s unless the configuration says otherwise (BlueZSettingsTests, BLELinkStateMachineTests).
    radios = await rig.radios("--count", 1)
    air = await Air.make(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]))
    await air.tell("bluez", "fail GattCharacteristic1.WriteValue InProgress 100000")
    air.host.configure(bluez(pin=PIN, protocol="companion", write_timeout="1s"))
    await air.host.start()
    await air.down()
    await air.down()
    calls = [each["member"] for each in air.bluez.all("call")]
    # What is in progress is asked for again until then, and not a time after the link has ended.
    first, end = calls.index("WriteValue"), calls.index("Disconnect")
    assert calls[first:end].count("WriteValue") > 1, calls
    again = calls.index("Connect", end)
    equal(calls[end:again].count("WriteValue"), 0, "writes between two links")
    await air.tell("bluez", "clear")
    await air.host.ready("roof")
    equal(air.calls("Pair"), 1, "pairings")


async def r8_a_radio_that_needs_no_pairing_is_not_paired(rig):
    air = await Air.bound(rig, ble(name="Roof", address=ROOF, security="none"), config=[bluez()])
    await air.burst(await air.frames(), 20)
    equal((air.calls("Pair"), air.bluez.count("agent")), (0, 0), "pairings and questions")


async def r30_a_radio_that_lost_its_bond_is_paired_anew_where_that_is_allowed(rig):
    air = await Air.bound(rig, stale_bond_repairs=1)
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    await air.down()
    await air.host.ready("roof")
    equal((air.calls("Pair"), air.radio.count("paired")), (2, 2), "pairings")
    await air.burst(await air.frames(), 20)


async def r30_a_radio_that_lost_its_bond_waits_for_a_person_otherwise(rig):
    air = await Air.bound(rig)
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    why = await air.waiting("blocked")
    equal(why["code"], "link.authentication-failed")
    assert "unpair" in why["text"], why
    equal(air.calls("Pair"), 1, "pairings")
    status, out, err = await air.host.cli("unpair", "roof")
    equal(status, 0, err or out)
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    equal(air.calls("Pair"), 2, "pairings")


async def r30_a_link_that_ends_with_a_mic_failure_is_a_lost_link_and_no_lost_bond(rig):
    # Bonds may be made anew here; old bluetoothds do not say why a link ended.
    air = await Air.bound(rig, stale_bond_repairs=1)
    for old in ("off", "on"):
        await air.tell("bluez", f"old {old}")
        for _ in range(3):
            air.host.events.mark()
            await air.tell("radio", "micfail Roof")
            end = await air.down()
            equal(end["disposition"], "transient", str(end))
            assert "unpair" not in end["message"] and "keys" not in end["message"], end
            await air.host.ready("roof")
    equal({each["reason"] for each in air.radio.all("disconnected")}, {"0x3d"}, "how the links ended")
    equal((air.calls("Pair"), air.calls("RemoveDevice")), (1, 0), "pairings, bonds removed")
    await air.burst(await air.frames(), 20)


async def a_lost_bond_that_bluetoothd_does_not_name_is_made_anew_where_that_is_allowed(rig):
    air = await Air.bound(rig, stale_bond_repairs=1)
    await air.tell("bluez", "old on")
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    await air.down()
    await air.host.ready("roof")
    equal((air.calls("Pair"), air.radio.count("paired")), (2, 2), "pairings")
    await air.burst(await air.frames(), 20)


async def a_lost_bond_that_bluetoothd_does_not_name_is_told_and_tried_again_otherwise(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", "old on")
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    end = await air.down()
    while "unpair" not in end["message"]:
        end = await air.down()
    equal((end["code"], end["disposition"]), ("link.connection-failed", "transient"), str(end))
    assert "stale_bond_repairs" in end["message"], end
    equal(air.calls("Pair"), 1, "pairings")
    status, out, err = await air.host.cli("unpair", "roof")
    equal(status, 0, err or out)
    await air.host.ready("roof")
    equal(air.calls("Pair"), 2, "pairings")


async def pins_of_others_are_not_given_away(rig):
    # The radio Barn is not configured: a pairing that another program begins is not answered with Roof's PIN.
    air = await Air.make(rig, ble(name="Roof", address=ROOF), ble(name="Barn", address="C0:11:22:33:44:66"))
    air.host.configure(bluez(pin=PIN, default_agent=True))
    await air.host.start()
    await air.host.ready("roof")
    async with Client(air.bluetooth.address) as other:
        await other.find("C0:11:22:33:44:66")
        await other.connect("C0:11:22:33:44:66")
        try:
            await other.call(other.path("C0:11:22:33:44:66"), "Device1.Pair")
            paired = True
        except Exception:                         # whatever bluetoothd calls it
            paired = False
    equal(paired, False, "paired")
    equal((await air.state())["state"], "ready")


async def the_pin_of_a_device_that_was_taken_out_is_not_given_away(rig):
    # Barn keeps the daemon on the bus, and its agent the default one.
    barn = "C0:11:22:33:44:66"
    air = await Air.make(rig, ble(name="Roof", address=ROOF), ble(name="Barn", address=barn))
    air.host.configure(bluez(pin=PIN, autoconnect=False), bluez("barn", barn, pin=PIN, default_agent=True))
    await air.host.start()
    await air.host.ready("barn")
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    air.host.configure(bluez("barn", barn, pin=PIN, default_agent=True))
    equal((await air.host.cli("reload"))[0], 0)
    await eventually(lambda: air.calls("Disconnect") >= 1, "the end of the link")
    asked = air.bluez.count("agent", member="RequestPasskey")
    async with Client(air.bluetooth.address) as other:
        await other.find(ROOF)
        await other.call("/org/bluez/hci0", "Adapter1.RemoveDevice", "o", other.path(ROOF))
        await other.find(ROOF)
        await other.connect(ROOF)
        try:
            await other.call(other.path(ROOF), "Device1.Pair")
            paired = True
        except Exception:                         # whatever bluetoothd calls it
            paired = False
    equal(paired, False, "paired")
    assert air.bluez.count("agent", member="RequestPasskey") > asked, "the agent was not asked"


async def a_pairing_from_the_command_line_leaves_the_link_of_another_program(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN, autoconnect=False))
    async with Client(air.bluetooth.address) as other:
        await other.find(ROOF)
        await other.connect(ROOF)
        status, out, err = await air.host.cli("pair", "roof", "--config", air.host.config)
        equal(status, 0, err or out)
        equal((air.radio.count("paired"), air.radio.count("disconnected"), air.calls("Disconnect")), (1, 0, 0),
              "pairings, links that ended, and that were told to")
        equal(await other.get(other.path(ROOF), "Device1", "Connected"), True, "connected")
        await other.disconnect(ROOF)


async def a_pairing_from_the_command_line_that_is_interrupted_leaves_nothing(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN, autoconnect=False))
    await air.tell("bluez", "delay Device1.Pair 30 1")
    process = await air.host.begin("pair", "roof", "--config", air.host.config)
    await eventually(lambda: air.calls("Pair") == 1, "the pairing is under way")
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    equal((process.returncode, err.decode()), (-signal.SIGINT, "meshhost: interrupted\n"))
    equal((air.calls("CancelPairing"), air.radio.count("paired")), (1, 0), "calls of CancelPairing, pairings")
    await eventually(lambda: air.radio.count("disconnected") == 1, "the link has ended")


async def pair_and_unpair_from_the_command_line(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN, autoconnect=False))
    status, out, err = await air.host.cli("pair", "roof", "--config", air.host.config)
    equal(status, 0, err or out)
    equal(air.radio.count("paired"), 1, "pairings")
    await air.host.start()
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    equal(air.calls("Pair"), 1, "pairings in all")
    equal((await air.host.cli("device", "roof", "disconnect"))[0], 0)
    await air.down()
    document = await air.host.json("unpair", "roof")
    assert document, document
    await eventually(lambda: air.calls("RemoveDevice") == 1, "the bond is removed")
