# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""bluetoothd, adapters and radios that fail. R3 and its like are the requirements of the handbook's page BlueZ."""
import asyncio
import json
import os
import signal
import sys

from ble_worlds import BARN, PIN, ROOF, Air, ble, bluez, equal, eventually
from harness import RIGS

sys.path.insert(0, f"{RIGS}/dbus")
from client import Client                                # noqa: E402

REPEATS = int(os.environ.get("MESHHOST_BLE_FAULTS", "20"))


def short(*names):
    """Deadlines that a test can wait for: of what hangs in it, and of nothing else, for that would have to be quick."""
    return {f"{name}_timeout": "5s" if name == "pairing" else "1s" for name in names}


async def _hanging(rig, target, phase, code, deadline):
    """A method of bluetoothd that is never answered: the attempt ends in this phase with this error, the next one is good."""
    air = await Air.make(rig)
    await air.tell("bluez", f"hang {target} 1")
    air.host.configure(bluez(pin=PIN, **short(deadline)))
    await air.host.start()
    end = await air.down()
    equal(end["code"], code, str(end))
    assert phase in end["message"], end
    await air.host.ready("roof")


async def r3_a_connect_that_hangs_ends_at_its_deadline(rig):
    await _hanging(rig, "Device1.Connect", "connecting", "link.timeout", "connect")


async def r3_a_pairing_that_hangs_ends_at_its_deadline(rig):
    await _hanging(rig, "Device1.Pair", "pairing", "link.timeout", "pairing")


async def r3_a_subscription_that_hangs_ends_at_its_deadline(rig):
    await _hanging(rig, "GattCharacteristic1.StartNotify", "subscribing", "link.timeout", "subscribe")


async def r11_services_that_never_resolve_end_at_their_deadline(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "no-resolve on")
    air.host.configure(bluez(pin=PIN, **short("discovery")))
    await air.host.start()
    end = await air.down()
    equal(end["code"], "link.timeout", str(end))
    assert "discovering services" in end["message"], end
    await air.tell("bluez", "no-resolve off")
    await air.host.ready("roof")


async def r11_the_third_time_the_device_is_forgotten_and_found_anew(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "no-resolve on")
    air.host.configure(bluez(pin=PIN, **short("discovery")))
    await air.host.start()
    for before in range(3):
        equal(air.calls("RemoveDevice"), 0, f"devices forgotten after {before} attempts")
        end = await air.down()
        equal(end["code"], "link.timeout", str(end))
    await eventually(lambda: air.calls("RemoveDevice") == 1, "the device is forgotten")
    await air.tell("bluez", "no-resolve off")
    await air.host.ready("roof")
    equal(air.calls("RemoveDevice"), 1, "devices forgotten in all")


async def r11_a_device_with_keys_is_not_forgotten(rig):
    air = await Air.bound(rig, **short("discovery", "rediscovery"))
    await air.tell("bluez", "no-resolve on")
    await air.tell("radio", "terminate Roof")
    await air.down()
    for _ in range(4):
        end = await air.down()
        equal(end["code"], "link.timeout", str(end))
    await air.tell("bluez", "no-resolve off")
    await air.host.ready("roof")
    equal((air.calls("RemoveDevice"), air.calls("Pair")), (0, 1), "devices forgotten, pairings")


async def r4_an_error_names_phase_and_reason(rig):
    air = await Air.make(rig)
    await air.tell("radio", "adv off Roof")
    air.host.configure(bluez(pin=PIN, **short("connect")))
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.timeout", "transient"), str(end))
    assert ROOF in end["message"] and "connecting" in end["message"], end
    status = await air.state()
    assert status["state"] in ("disconnected", "connecting"), status
    await air.tell("radio", "adv on Roof")
    await air.host.ready("roof")


async def r4_an_error_tells_how_the_radio_was_heard_and_what_may_be_wrong(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "hang Device1.Connect 1")
    air.host.configure(bluez(pin=PIN, **short("connect")))
    await air.host.start()
    # Not of an attempt that was over before the radio was heard.
    end = await air.host.events.event("link.down", where=lambda each: "RSSI -" in each["data"]["message"])
    assert "while connecting (Roof" in end["data"]["message"], end
    await air.host.ready("roof")
    # What the programs of the reports said for everything.
    for line in air.host.process.errors:
        assert "hardware" not in line.lower(), line


async def a_link_that_takes_long_to_end_is_waited_for(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", "delay Device1.Disconnect 7 1")
    air.host.events.mark()
    equal((await air.host.cli("device", "roof", "reconnect"))[0], 0)
    await air.host.ready("roof")
    for end in air.host.events.all("link.down"):
        assert "another program" not in end["data"].get("message", ""), end
    await air.burst(await air.frames(), 10)


async def objects_that_cannot_be_read_anew_end_no_link(rig):
    air = await Air.make(rig, ble(name="Roof", address=ROOF), ble(name="Barn", address=BARN))
    air.host.configure(bluez(pin=PIN), bluez("barn", BARN, pin=PIN, autoconnect=False))
    await air.host.start()
    await air.host.ready("roof")
    await air.tell("bluez", f"fail Device1.Connect@{BARN} org.freedesktop.DBus.Error.UnknownObject 1")
    await air.tell("bluez", "hang GetManagedObjects 1")
    equal((await air.host.cli("device", "barn", "connect"))[0], 0)
    await air.host.ready("barn")
    equal([each for each in air.host.events.all("link.down") if each["device"] == "roof"], [], "ends of the other link")
    await air.burst(await air.frames(), 10)


def _said(host, text):
    return [line for line in host.process.errors if text in line]


async def a_bus_that_hangs_does_not_keep_the_daemon_from_its_end(rig):
    air = await Air.make(rig)
    bus = next(each for each in rig.children if each.name == "bus")
    air.host.configure(bluez(pin=PIN))
    bus.kill(signal.SIGSTOP)
    try:
        await air.host.start()
        equal(await air.host.stop(), 0, "exit status")
        equal(_said(air.host, "abandoned") + _said(air.host, "not everything"), [])
    finally:
        bus.kill(signal.SIGCONT)


async def a_link_that_does_not_end_does_not_keep_the_daemon_from_its_end(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", "hang Device1.Disconnect 1")
    equal(await air.host.stop(), 0, "exit status")
    equal(_said(air.host, "abandoned") + _said(air.host, "not everything"), [])


async def r5_another_program_holds_the_notifications(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail GattCharacteristic1.StartNotify NotPermitted 2 Notify acquired")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    end = await air.down()
    assert "another program" in end["message"], end
    equal(end["disposition"], "transient")
    await air.host.ready("roof")


async def r9_connections_that_bluetoothd_aborts_are_made_again(rig):
    # As with BlueZ 5.66, where a lost bond looks alike: it is not taken for one.
    # Each time within an attempt, of one try and at most nine more; the pauses between them are ConnectRetryPolicyTests'.
    air = await Air.bound(rig, stale_bond_repairs=1, connect_timeout="60s")
    await air.tell("bluez", "old on")
    await air.tell("bluez", "abort 50%")
    tries = []
    for number in range(REPEATS):
        air.host.events.mark()
        before = air.calls("Connect")
        await air.tell("radio", "terminate Roof")
        await air.down()
        await air.host.ready("roof")
        tries.append(air.calls("Connect") - before)
    await air.tell("bluez", "abort 0")
    failed = [each["data"] for each in air.host.events.all("link.down") if each["data"]["phase"] != "ready"]
    equal({each["code"] for each in failed} - {"link.connection-failed"}, set(), "other failures")
    # Once in a thousand times all ten are aborted.
    assert len(failed) <= 1 and max(tries) <= 20 and sum(tries) > REPEATS, (failed, tries)
    equal((air.calls("Pair"), air.calls("RemoveDevice")), (1, 0), "pairings and bonds removed")


async def r10_services_that_are_resolved_before_they_exist(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "early-resolved 0.5")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    await air.host.ready("roof")
    equal(air.host.events.count("link.down"), 0, "failed attempts")


async def r12_a_stale_attempt_of_a_dead_client_is_ended_once(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN, autoconnect=False))
    await air.host.start()
    async with Client(air.bluetooth.address) as other:
        await other.find(ROOF)
        await air.tell("radio", "adv off Roof")
        attempt = asyncio.ensure_future(other.connect(ROOF))
        await eventually(lambda: air.calls("Connect") == 1, "the attempt of the other program")
        attempt.cancel()
    # It is dead now, and bluetoothd goes on with what nobody waits for.
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await eventually(lambda: air.calls("Disconnect") == 1, "the attempt is ended")
    equal([each["member"] for each in air.bluez.all("call") if each["member"] in ("Connect", "Disconnect")][:4],
          ["Connect"] * 3 + ["Disconnect"], "the other program's attempt, two of the daemon that find it in progress, its end")
    await air.tell("radio", "adv on Roof")
    await air.host.ready("roof")
    equal((air.calls("Disconnect"), air.calls("RemoveDevice")), (1, 0), "attempts ended, devices forgotten")


async def r12_a_link_that_another_program_is_making_is_waited_for_and_used(rig):
    air = await Air.make(rig)
    # The daemon's attempt comes in the midst of the other one, and is refused for it.
    await air.tell("bluez", "delay Device1.Connect 5 1")
    await air.tell("bluez", "fail Device1.Connect InProgress 1")
    air.host.configure(bluez(pin=PIN, connect_timeout="60s"))
    await air.host.start()
    await eventually(lambda: air.calls("Connect") == 1, "the attempt of the daemon")
    await air.tell("bluez", f"connect {ROOF}")
    await air.host.ready("roof")
    equal((air.calls("Connect"), air.calls("Disconnect"), air.radio.count("connected")), (1, 0, 1),
          "attempts of the daemon, attempts ended, links")


async def r12_a_client_that_begins_again_keeps_its_attempts(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail Device1.Connect InProgress 1000")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    for _ in range(3):
        end = await air.down()
        equal((end["code"], end["disposition"]), ("link.contended", "transient"), str(end))
        assert "another program" in end["message"], end
    equal((air.calls("Disconnect"), air.calls("RemoveDevice")), (1, 0), "attempts ended, devices forgotten")
    await air.tell("bluez", "clear")
    await air.host.ready("roof")


async def r12_who_wants_to_takes_over_each_time(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail Device1.Connect InProgress 1000")
    air.host.configure(bluez(pin=PIN, takeover=True))
    await air.host.start()
    for number in range(1, 4):
        await air.down()
        equal((air.calls("Disconnect"), air.calls("RemoveDevice")), (number, number), "attempts ended, devices forgotten")
    await air.tell("bluez", "clear")
    await air.host.ready("roof")


async def r13_a_discovery_that_hangs_heals(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail Adapter1.StartDiscovery InProgress 2 Operation already in progress")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    await air.host.ready("roof")


async def r13_a_discovery_that_stays_stuck_is_freed_by_a_power_cycle_where_that_is_allowed(rig):
    for allowed in (True, False):
        air = await Air.make(rig)
        await air.tell("bluez", "fail Adapter1.StartDiscovery InProgress 3 Operation already in progress")
        air.host.configure(bluez(pin=PIN, power_on=allowed))
        await air.host.start()
        await air.host.ready("roof")
        switched = [each for each in air.bluez.all("call", member="Set") if each["path"].endswith("/hci0")]
        equal(len(switched), 2 if allowed else 0, f"times the adapter was switched: {switched}")
        await air.host.stop()
        for child in (air.bluez, air.radio):
            await child.stop()
        os.rename(air.host.folder, f"{air.host.folder}-{allowed}")


async def r13_a_scan_whose_search_cannot_begin_says_so(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail Adapter1.StartDiscovery InProgress 1000 Operation already in progress")
    air.host.configure(bluez(pin=PIN))
    status, out, err = await air.host.cli("scan", "--for", "5s", "--module", "bluez", "--jsonl", "--config",
                                          air.host.config)
    equal(status, 69, err)
    assert "stuck in bluetoothd" in err, err
    fail = json.loads(out)
    equal((fail["type"], fail["module"]), ("scan.fail", "bluez"))


async def a_scan_says_what_is_wrong_and_fails(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN))
    words = ("scan", "--for", "20s", "--module", "bluez", "--config", air.host.config)
    await air.tell("bluez", "power off")
    equal((await air.host.cli(*words))[0], 69, "with the adapter off")
    await air.tell("bluez", "power on")
    await air.tell("bluez", "crash stay")
    status, _, err = await air.host.cli(*words)
    equal(status, 69, err)
    assert "not running" in err, err


async def _passing(rig, fault, code="link.connection-failed"):
    """What bluetoothd refuses once: an attempt ends, says nothing of a pin or an adapter that is off, and the next is good."""
    air = await Air.make(rig)
    await air.tell("bluez", fault)
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), (code, "transient"), str(end))
    assert "PIN" not in end["message"] and "switched off" not in end["message"], end
    await air.host.ready("roof")


async def a_connect_without_a_profile_is_made_again(rig):
    await _passing(rig, "fail Device1.Connect NotAvailable 1 br-connection-profile-unavailable")


async def a_connect_that_fails_to_authenticate_is_made_again(rig):
    await _passing(rig, "fail Device1.Connect AuthenticationFailed 1 Authentication Failed")


async def an_adapter_that_is_not_ready_for_a_moment_is_not_off(rig):
    await _passing(rig, "fail Device1.Connect NotReady 1 Resource Not Ready")


async def a_pairing_that_is_rejected_is_tried_once_more(rig):
    await _passing(rig, "fail Device1.Pair AuthenticationRejected 1 Authentication Rejected")


async def a_pairing_that_nobody_answers_is_tried_again(rig):
    await _passing(rig, "fail Device1.Pair AuthenticationTimeout 1 Authentication Timeout")


async def an_agent_that_is_not_taken_says_nothing_of_the_pin(rig):
    await _passing(rig, "fail AgentManager1.RegisterAgent Failed 2 no")


async def r19_a_device_removed_from_bluetoothds_memory_is_found_again(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", f"removedev {ROOF}")
    await air.down()
    await air.host.ready("roof")
    await air.burst(await air.frames(), 10)


async def r19_handles_that_moved_behind_a_kept_bond_are_found_anew(rig):
    """Both ways: a companion is greeted by what the host writes, and answers by what it notifies of."""
    radios = await rig.radios("--count", 1)
    air = await Air.make(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]))
    air.host.configure(bluez(pin=PIN, protocol="companion"))
    await air.host.start()
    await air.host.ready("roof")
    paths = set()
    for kept in ("off", "on"):                     # objects of a bonded device, while it is disconnected
        await air.tell("bluez", f"keep-gatt {kept}")
        for _ in range(3):
            air.host.events.mark()
            await air.tell("radio", "reflash Roof")
            await air.down()
            await air.host.ready("roof")
            paths.add(air.bluez.all("call", member="StartNotify")[-1]["path"])
    equal(len(paths), 6, f"places of the characteristic: {paths}")
    equal((air.calls("Pair"), air.calls("RemoveDevice")), (1, 0), "pairings, devices forgotten")


async def r20_a_device_that_was_only_seen_is_looked_for_anew(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail Device1.Connect org.freedesktop.DBus.Error.UnknownObject 1")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    await air.host.ready("roof")


async def one_notification_is_one_frame(rig):
    air = await Air.bound(rig)
    tap = await air.frames()
    await air.tell("radio", "notify 0304 1 Roof")
    await tap.until(lambda: tap.count("frame.rx") == 1, "the frame")
