# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Bluetooth LE over a controller that the daemon owns: the module hci. The shapes of controllers are those of
Tests/Rigs/hci/matrix."""
import asyncio
import os
import signal

import btsnoop
from bumble import hci
from hci_worlds import BARN, PIN, ROOF, Dongle, ble, equal, eventually, share
from meshcore_cli import meshcore_cli

FRAGMENTS = ("--acl-len", 27, "--acl-num", 2, "--rx-acl-len", 27, "--coalesce-completed", 2, "--enhanced")
LATE = ("--acl-len", 251, "--acl-num", 4, "--rx-acl-len", 251, "--completed-delay-ms", 7.5)
ONE_LATE_BUFFER = ("--acl-len", 27, "--acl-num", 1, "--completed-delay-ms", 50)


async def _again(air):
    """The second start uses the bond: the link is encrypted, and nobody pairs."""
    equal(await air.host.stop(), 0, "exit status")
    air.radio.mark()
    await air.host.start()
    await air.host.ready("roof")
    equal(air.radio.count("paired"), 1, "pairings in both runs")
    await air.radio.event("encryption", on=1)
    await air.burst(await air.frames(), 20)


async def a_radio_is_paired_with_its_pin_and_the_second_start_uses_the_bond(rig):
    air = await Dongle.bound(rig)
    equal([(each["sc"], each["authenticated"]) for each in air.radio.all("paired")], [(True, True)], "bonds")
    await air.burst(await air.frames(), 200, 100)
    await _again(air)
    (file,) = os.listdir(air.bonds)
    equal(os.stat(os.path.join(air.bonds, file)).st_mode & 0o777, 0o600, "mode of the file with keys")


async def a_radio_with_legacy_pairing_too_over_tcp(rig):
    air = await Dongle.bound(rig, port="tcp", options=["--legacy"])
    equal([(each["sc"], each["authenticated"]) for each in air.radio.all("paired")], [(False, True)], "bonds")
    await air.burst(await air.frames(), 50)
    await _again(air)
    equal([each["match"] for each in air.radio.all("legacy_key_request")], [True], "keys that were asked for")


async def a_radio_behind_a_uart(rig):
    air = await Dongle.bound(rig, port="pty", options=FRAGMENTS)
    await air.burst(await air.frames(), 50, 100)
    await _again(air)


# Requests of the attribute protocol (Core Specification 5.4, Vol 3 Part F §3.4.8).
REQUESTS = {0x02: "MTU", 0x04: "descriptors", 0x06: "service", 0x08: "characteristics", 0x0A: "read", 0x0C: "read on",
            0x10: "services", 0x12: "subscription"}


def _requests(path):
    """What the host asks of the radio's attributes, for each link: up to its subscription, with which it is ready."""
    links = []
    for record in btsnoop.read(path):
        packet = record.packet
        if isinstance(packet, hci.HCI_LE_Create_Connection_Command):
            links.append([])
        if isinstance(packet, hci.HCI_AclDataPacket) and not record.from_controller and packet.pb_flag == 0 \
                and packet.data[2:4] == b"\x04\0" and packet.data[4] in REQUESTS and "subscription" not in links[-1]:
            links[-1].append(REQUESTS[packet.data[4]])
    return links


async def a_link_is_ready_after_four_questions(rig):
    path = rig.path("capture")
    air = await Dongle.bound(rig, capture=path)
    await air.burst(await air.frames(), 5)
    await air.tell("radio", "terminate Roof")
    await air.host.ready("roof")
    await air.burst(await air.frames(), 5)
    equal(await air.host.stop(), 0, "exit status")
    links = _requests(path)
    equal(links[0], ["MTU", "service", "characteristics", "subscription"], "the first link")
    assert len(links[-1]) <= 4 and links[-1][-1] == "subscription", links
    rig.note("asked: " + "; ".join(" ".join(each) for each in links))


async def a_radio_like_nrf52_and_one_like_esp32(rig):
    for number, like in enumerate(("nrf52", "esp32")):
        air = await Dongle.bound(rig, ble(name="Roof", address=ROOF, like=like))
        await air.burst(await air.frames(), 20)
        equal(air.radio.count("paired"), 1, f"pairings with {like}")
        await air.host.stop()
        await air.radio.stop()
        os.rename(air.host.folder, f"{air.host.folder}-{number}")
        os.rename(air.bonds, f"{air.bonds}-{number}")


async def a_radio_without_a_pin_is_paired_when_it_asks(rig):
    air = await Dongle.make(rig, ble(name="Roof", address=ROOF, security="justworks", tx_protected=1))
    air.host.configure(air.hci())
    await air.host.start()
    await air.host.ready("roof")
    equal([each["authenticated"] for each in air.radio.all("paired")], [False], "bonds")
    await air.burst(await air.frames(), 20)


async def a_radio_that_needs_no_pairing_is_not_paired(rig):
    air = await Dongle.make(rig, ble(name="Roof", address=ROOF, security="none"))
    air.host.configure(air.hci())
    await air.host.start()
    await air.host.ready("roof")
    await air.burst(await air.frames(), 20)
    equal(air.radio.count("encryption"), 0, "encryptions")


async def _wrong_pin(rig, options):
    air = await Dongle.make(rig, options=options)
    air.host.configure(air.hci(pin="111111"))
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.authentication-failed", "permanent"), str(end))
    assert "PIN" in end["message"] and "Roof" in end["message"], end
    equal((await air.waiting("blocked"))["code"], "link.authentication-failed")
    equal((air.radio.count("pairing_failure"), air.radio.count("connected"), air.radio.count("paired")), (1, 1, 0),
          "failures, links and bonds")
    # With the right one in the config it goes on, without a restart.
    air.host.configure(air.hci(pin=PIN))
    equal((await air.host.cli("reload"))[0], 0)
    await air.host.ready("roof")


async def a_wrong_pin_is_tried_once_and_needs_a_person(rig):
    await _wrong_pin(rig, [])


async def a_wrong_pin_with_legacy_pairing_too(rig):
    await _wrong_pin(rig, ["--legacy"])


async def a_radio_that_lost_its_bond_waits_for_a_person(rig):
    air = await Dongle.bound(rig)
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    why = await air.waiting("blocked")
    equal(why["code"], "link.authentication-failed")
    assert "unpair" in why["text"], why
    equal(air.radio.count("paired"), 1, "pairings")
    status, out, err = await air.host.cli("unpair", "roof")
    equal(status, 0, err or out)
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    equal(air.radio.count("paired"), 2, "pairings")


async def a_radio_that_lost_its_bond_is_paired_anew_where_that_is_allowed(rig):
    # Only a bond that was good for something is made anew: the companion behind it has taken commands.
    radios = await rig.radios("--count", 1)
    air = await Dongle.bound(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]), protocol="companion",
                             stale_bond_repairs=1)
    await air.tell("radio", "forget Roof")
    await air.tell("radio", "terminate Roof")
    await air.down()
    await air.host.ready("roof")
    equal(air.radio.count("paired"), 2, "pairings")


async def a_companion_is_shared_over_two_small_buffers(rig):
    radios = await rig.radios("--count", 2)
    air = await Dongle.make(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]), options=FRAGMENTS)
    air.host.configure(air.hci(pin=PIN, protocol="companion"), share("roof"))
    await air.host.start()
    await air.host.ready("roof")
    port = await air.host.address("roof")
    (infos,) = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "infos")
    equal(infos["name"], "Radio 0")
    words = "over a controller of our own, in pieces of twenty-seven bytes"
    sent = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "msg", "Radio 1", words, "wait_ack")
    assert any(isinstance(each, dict) and each.get("trip_time") for each in sent), sent
    (received,) = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", radios.ports[1], "recv")
    equal(received["text"], words)
    await radios.command("say 1 0 answered, and longer than one piece")
    await air.host.events.event("message.direct", device="roof")
    texts = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "sync_msgs")
    assert any("answered" in str(each) for each in texts), texts


async def frames_arrive_whole_whatever_the_buffers_are(rig):
    for number, options in enumerate((FRAGMENTS, LATE)):
        air = await Dongle.bound(rig, options=options)
        await air.burst(await air.frames(), 200, 150)
        await air.host.stop()
        await air.radio.stop()
        os.rename(air.host.folder, f"{air.host.folder}-{number}")
        os.rename(air.bonds, f"{air.bonds}-{number}")


async def the_last_keys_are_sent_before_the_link_is_ended(rig):
    # `pair` ends the link as soon as the pairing is done, with keys still in the queue of a slow controller.
    air = await Dongle.make(rig, options=(*ONE_LATE_BUFFER, "--legacy"))
    air.host.configure(air.hci(pin=PIN, autoconnect=False))
    status, out, err = await air.host.cli("pair", "roof", "--config", air.host.config)
    equal(status, 0, err or out)
    assert "with the PIN" in out, out
    equal(air.radio.count("paired"), 1, "pairings")
    await air.host.start()
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    equal(air.radio.count("paired"), 1, "pairings in all")


async def pair_and_unpair_from_the_command_line(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci(pin=PIN, autoconnect=False))
    await air.host.start()
    document = await air.host.json("pair", "roof")
    equal((document["report"]["address"], document["report"]["name"], document["report"]["used_passkey"]),
          (ROOF, "Roof", True))
    equal((await air.host.json("pair", "roof"))["report"]["was_bonded"], True)
    equal(air.radio.count("paired"), 1, "pairings")
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")
    equal((await air.host.json("unpair", "roof"))["was_bonded"], True)
    await air.host.events.event("link.down", device="roof")
    # Its PIN is known, and the link is wanted.
    await air.host.ready("roof")
    equal(air.radio.count("paired"), 2, "pairings")
    equal((await air.host.cli("device", "roof", "disconnect"))[0], 0)
    equal((await air.host.json("unpair", "roof"))["was_bonded"], True)
    equal((await air.host.json("unpair", "roof"))["was_bonded"], False)


async def one_that_is_not_configured_is_paired_with_through_a_named_controller(rig):
    air = await Dongle.make(rig)
    air.host.configure()
    words = ("--module", "hci", "--adapter", air.port, "--config", air.host.config)
    status, out, err = await air.host.cli("pair", ROOF, "--pin", PIN, *words)
    equal(status, 0, err or out)
    equal(air.radio.count("paired"), 1, "pairings")
    status, out, err = await air.host.cli("pair", ROOF, "--module", "hci", "--config", air.host.config)
    assert status != 0 and "controller" in err, err


async def keys_that_cannot_be_stored_are_told_of(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci(pin=PIN, bond_dir=air.bonds + "/nowhere"))
    status, _, err = await air.host.cli("pair", "roof", "--config", air.host.config)
    assert status != 0 and "bond_dir" in err and "nowhere" in err, err
    document = await air.host.json("doctor", "--config", air.host.config, status=69)
    assert any(each["subject"] == "bond_dir" and each["severity"] == "problem" for each in document["findings"]), document


def _found(document):
    return {each["address"].partition("/")[0]: each for each in document["devices"]}


async def scanning_disturbs_no_link(rig):
    air = await Dongle.make(rig, ble(name="Roof", address=ROOF), ble(name="MeshCore-Barn", address=BARN))
    # "gone" keeps the controller busy: it waits for a device that is not there.
    air.host.configure(air.hci(pin=PIN), air.hci("gone", "C0:11:22:33:44:77/random", pin=PIN))
    await air.host.start()
    await air.host.ready("roof")
    tap = await air.frames()
    scan = asyncio.ensure_future(air.host.json("scan", "--for", "3s"))
    await air.burst(tap, 100)
    document = await scan
    assert "hci" in document["modules"], document
    found = _found(document)
    equal((found[BARN]["name"], found[BARN]["kind"]), ("MeshCore-Barn", "meshcore-companion"))
    equal(found[ROOF]["device"], "roof")
    await air.burst(tap, 100)
    equal(air.host.events.count("link.down", device="roof"), 0, "ends of the link")
    # And a link can be made while somebody scans.
    air.host.events.mark()
    await air.tell("radio", "terminate Roof")
    scan = asyncio.ensure_future(air.host.json("scan", "--for", "2s"))
    await air.host.ready("roof")
    assert BARN in _found(await scan), "a scan beside a connection hears nothing"


async def scanning_needs_no_daemon(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci(pin=PIN))
    found = _found(await air.host.json("scan", "--for", "2s", "--module", "hci", "--config", air.host.config))
    equal((found[ROOF]["name"], found[ROOF]["device"]), ("Roof", "roof"))
    air.host.configure()
    status, _, err = await air.host.cli("scan", "--for", "1s", "--module", "hci", "--config", air.host.config)
    equal(status, 69, err)
    assert "controller" in err, err


async def two_devices_share_a_controller(rig):
    air = await Dongle.make(rig, ble(name="Roof", address=ROOF), ble(name="Barn", address=BARN))
    air.host.configure(air.hci(pin=PIN), air.hci("barn", options={"name": "Barn"}, pin=PIN))
    await air.host.start()
    await air.host.ready("roof", "barn")
    tap = await air.frames()
    await air.burst(tap, 30, radio="Barn")
    await air.burst(tap, 30, radio="Roof")
    air.host.events.mark()
    await air.tell("radio", "terminate Barn")
    await air.host.ready("barn")
    equal(air.host.events.count("link.down", device="roof"), 0, "ends of the other link")


async def the_daemon_leaves_no_device_connected(rig):
    air = await Dongle.bound(rig)
    mark = air.radio.mark()
    equal(await air.host.stop(), 0)
    equal([each["reason"] for each in air.radio.all("disconnected", mark)], ["0x13"], "ends that the radio saw")
    await air.radio.event("host_detached")


async def after_a_kill_the_next_start_takes_the_device_over(rig):
    air = await Dongle.bound(rig)
    air.host.process.kill(signal.SIGKILL)
    await air.host.process.ended()
    await air.host.start()
    await air.host.ready("roof")
    await air.burst(await air.frames(), 50)
    equal(air.radio.count("paired"), 1, "pairings")


async def a_device_out_of_range_is_waited_for(rig):
    air = await Dongle.bound(rig)
    await air.tell("radio", "gone Roof")
    await air.down()
    await air.waiting("backoff")
    await air.tell("radio", "back Roof")
    await air.host.ready("roof")
    await air.burst(await air.frames(), 20)


async def a_controller_that_falls_silent_is_reset_and_used_again(rig):
    air = await Dongle.bound(rig)
    air.host.events.mark()
    await air.tell("radio", "hwerror")
    await air.down()
    await air.host.ready("roof")
    await air.tell("radio", "mute")
    await air.tell("radio", "timeout")
    air.host.events.mark()
    equal((await air.host.cli("device", "roof", "disconnect"))[0], 0)
    await air.tell("radio", "unmute")
    equal((await air.host.cli("device", "roof", "connect"))[0], 0)
    await air.host.ready("roof")


async def a_controller_that_is_pulled_is_used_again_when_it_is_back(rig):
    air = await Dongle.bound(rig)
    air.host.events.mark()
    await air.tell("radio", "unplug")
    await air.down()
    await air.waiting("adapter")
    await air.tell("radio", "plug")
    await air.host.ready("roof")
    await air.burst(await air.frames(), 20)


async def the_doctor_says_what_a_controller_is_and_what_is_wrong_with_it(rig):
    air = await Dongle.bound(rig)

    async def findings(status):
        document = await air.host.json("doctor", "--config", air.host.config, status=status)
        return {(each["subject"], each["severity"]): each for each in document["findings"] if each["area"] == "hci"}
    found = await findings(0)
    assert "00:AA:BB:CC:DD:00" in found[(air.port, "ok")]["message"], found
    assert "is paired" in found[("roof", "ok")]["message"], found
    await air.tell("radio", "unplug")
    await air.waiting("adapter")
    found = await findings(69)
    assert found[(air.port, "problem")]["advice"], found
    equal(await air.host.stop(), 0)
    await air.tell("radio", "plug")
    await air.tell("radio", "mute")
    found = await findings(69)
    assert "does not answer" in found[(air.port, "problem")]["message"], found
    await air.radio.stop()
    found = await findings(69)
    assert "nobody listens there" in found[(air.port, "problem")]["message"] \
        or "no such" in found[(air.port, "problem")]["message"], found
    air.host.configure(air.hci(controller="unix:/nonexistent/hci0"))
    found = await findings(69)
    assert "no such" in found[("unix:/nonexistent/hci0", "problem")]["message"], found


async def a_controller_that_is_not_there_is_told_of_in_its_own_words(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci(controller="unix:/nonexistent/hci0"))
    await air.host.start()
    await air.waiting("adapter")
    line = await air.host.process.error_line("cannot be opened")
    assert "unix:/nonexistent/hci0" in line and "is the option controller right" in line, line


async def a_controller_that_is_away_holds_up_no_other(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci("barn", controller="unix:/nonexistent/hci0"), air.hci(pin=PIN))
    await air.host.start()
    await air.host.ready("roof")
    why = await air.waiting("adapter", "barn")
    assert "unix:/nonexistent/hci0" in why["text"], why


async def wrong_options_are_told_with_their_place(rig):
    air = await Dongle.make(rig)
    air.host.configure(air.hci(controller="hci:0"))
    status, out, err = await air.host.cli("check", "--config", air.host.config)
    assert status != 0 and "no controller" in out + err and "unix:" in out + err, (out, err)
    air.host.configure(air.hci(bond_dir="bonds"))
    status, out, err = await air.host.cli("check", "--config", air.host.config)
    assert status != 0 and "absolute" in out + err, (out, err)
