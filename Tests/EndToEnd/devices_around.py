# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Devices that can be heard, pairing with them, and what is wrong: through the daemon and without it, with a module that
plays them (Tests/Fixtures/ScriptedModule)."""
import json
import os

from host import Control, Host, device, equal, eventually, mock, table

NEAR = "aa:3"


def _host(rig, *sections, link=None):
    host = Host(rig)
    path = os.path.join(host.modules[0], "libfixture-scripted.so")
    if link:
        host.link.update(link)
    host.configure(table("module.scripted", path=path), *sections)
    return host


def _scripted(name, script="echo", **keys):
    return device(name, "scripted", **{"script": script, "protocol": "none", **keys})


async def _scan(host, *words, near=True):
    """The devices of a short scan, by their addresses."""
    document = await host.json("scan", "--for", "1s", "--config", host.config, *words)
    devices = {each["address"]: each for each in document["devices"]}
    if near:
        assert devices[NEAR]["seen"] > 5, "one that is near is seen again and again"
    return document, devices


def _check(devices):
    equal(set(devices), {"aa:1", "aa:2", NEAR})
    radio = devices[NEAR]
    equal((radio["kind"], radio["device"], devices["aa:1"]["kind"]), ("meshcore-companion", "roof", "unknown"))
    equal(radio["name"], "MeshCore-\ufffd[31mroof", "a name that would colour the terminal")
    equal((devices["aa:1"]["name"], devices["aa:1"]["rssi"], devices["aa:2"]["rssi"]), ("první", -70, None))


async def a_scan_shows_what_the_daemon_hears_and_disturbs_no_link(rig):
    host = _host(rig, _scripted("roof", address="AA:3"), mock("bench"))
    await host.start()
    await host.events.event("link.ready", device="roof")
    downs = host.events.count("link.down")
    document, devices = await _scan(host)
    assert "scripted" in document["modules"], document["modules"]
    _check(devices)
    equal(list(devices)[0], NEAR, "the nearest comes first")
    status, out, _ = await host.cli("scan", "--for", "1s", "--module", "scripted")
    equal(status, 0)
    header, first, *_ = out.splitlines()
    equal(header.split(), ["ADDRESS", "NAME", "DBM", "KIND", "DEVICE", "AGE"])
    assert first.startswith(NEAR) and "MeshCore companion" in first and "roof" in first, first
    assert "\x1b" not in out, "an escape reached the terminal"
    status, out, _ = await host.cli("scan", "--for", "1s", "--module", "scripted", "--jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) > 5 and all(line["type"] == "scan.seen" for line in lines), lines[:2]
    equal(host.events.count("link.down"), downs, "links that were lost")


async def two_scans_at_a_time_do_not_end_each_other(rig):
    host = _host(rig, _scripted("roof"))
    await host.start()
    control = await Control.connect(host)
    control.write(b'{"id":7,"method":"scan","params":{"for_ms":3600000,"module":"scripted"}}\n')
    equal((await control.answer())["event"]["type"], "scan.ready")
    await _scan(host)
    while (await control.answer())["event"]["address"] != NEAR:
        pass
    control.writer.close()
    await _scan(host)
    error = (await (await Control.connect(host)).ask("scan", {"for_ms": 1}))["error"]
    equal(error["code"], "argument.invalid")


async def without_a_daemon_a_scan_uses_the_module_itself(rig):
    host = _host(rig, _scripted("roof", address=NEAR))
    _, devices = await _scan(host, "--module", "scripted")
    _check(devices)
    status, _, err = await host.cli("scan", "--for", "1s", "--config", host.config, "--module", "mock")
    equal((status, err), (64, 'meshhost: module "mock" cannot look for devices\n'))


async def pairing_goes_through_the_daemon_and_then_the_link_comes_up(rig):
    host = _host(rig, _scripted("roof", script="fail", address=NEAR, code="link.authentication-failed"), mock("bench"))
    await host.start()
    await host.events.until(lambda: host.events.count("link.waiting", device="roof", why="blocked"), "roof blocked")
    status, _, err = await host.cli("pair", "roof", "--pin", "111111")
    equal((status, err), (70, "meshhost: as the script says\n") if "script says" in err else
          (status, "meshhost: the pin is wrong\n"))
    # The device was paused, and is tried again: its stored intent was never another.
    await host.events.until(lambda: host.events.count("link.connecting", device="roof") >= 2, "roof tried again")
    equal((await host.devices())["roof"]["intent"], "connect")
    assert not os.path.exists(os.path.join(host.state, "intents.json")), "an intent was stored"
    for words, expected in ((("pair", "AA:9", "--module", "scripted", "--pin", "123456"),
                             "paired with MeshCore-roof (AA:9), with the PIN\n"),
                            (("pair", "AA:9", "--module", "scripted"),
                             "MeshCore-roof (AA:9) was paired before; nothing was done\n"),
                            (("unpair", "AA:9", "--module", "scripted"), "the keys of AA:9 are forgotten\n"),
                            (("unpair", "AA:9", "--module", "scripted"), "there were no keys of AA:9\n")):
        equal((await host.cli(*words))[:2], (0, expected), " ".join(words))


async def a_device_that_is_connected_is_not_paired_again(rig):
    host = _host(rig, _scripted("roof", address=NEAR))
    await host.start()
    await host.events.event("link.ready", device="roof")
    downs = host.events.count("link.down")
    for target in ("roof", NEAR.upper()):
        document = await host.json("pair", target)
        equal((document["device"], document["connected"], document["report"]), ("roof", True, None))
    equal(host.events.count("link.down"), downs, "links that were lost")
    # Without its keys a link is worth nothing: it is made anew.
    readies = host.events.count("link.ready", device="roof")
    equal((await host.json("unpair", "roof"))["was_bonded"], False)
    await host.events.until(lambda: host.events.count("link.ready", device="roof") > readies, "roof back")


async def a_pin_may_come_where_nobody_sees_it(rig):
    host = _host(rig, _scripted("roof", address=NEAR))
    words = ("pair", "roof", "--json", "--config", host.config)
    equal(json.loads((await host.cli(*words))[1])["report"]["used_passkey"], False)
    status, out, _ = await host.cli(*words, env={"MESHHOST_PIN": "123456"})
    equal((status, json.loads(out)["report"]["used_passkey"]), (0, True))
    status, out, _ = await host.shell(f"echo 123456 | \"$0\" {' '.join(words)} --pin -")
    equal((status, json.loads(out)["report"]["used_passkey"]), (0, True))
    status, _, err = await host.cli(*words, env={"MESHHOST_PIN": "12x"})
    equal(status, 64)
    assert "12x" not in err, err


async def what_cannot_be_paired_with_is_said(rig):
    host = _host(rig, _scripted("roof"), mock("bench"))
    for words, code, text in ((("roff",), 64, 'no device is called "roff"; did you mean "roof"?'),
                              (("bench",), 64, 'devices of module "mock" are not paired with'),
                              (("AA:1", "--module", "tcp"), 64, 'devices of module "tcp" are not paired with')):
        status, _, err = await host.cli("pair", *words, "--config", host.config)
        equal(status, code, err)
        assert text in err, err


async def the_doctor_names_each_problem_with_its_next_step(rig):
    host = _host(rig, _scripted("roof"), _scripted("hill", script="fail", code="permission-denied"))
    for running in (False, True):
        if running:
            await host.start()
            await host.events.until(lambda: host.events.count("link.waiting", device="hill", why="blocked"), "hill")
            await host.events.event("link.ready", device="roof")
        document = await host.json("doctor", "--config", host.config, status=69)
        equal(document["ok"], False)
        found = {(each["area"], each["subject"]): each for each in document["findings"]}
        equal(found["config", "config"]["severity"], "ok")
        equal(found["daemon", "meshhost"]["severity"], "ok" if running else "note")
        equal(found["modules", "scripted"]["severity"], "ok")
        equal(found["scripted", "script0"]["severity"], "ok")
        equal((found["scripted", "hill"]["severity"], found["scripted", "hill"]["advice"]),
              ("problem", "choose another script"))
        equal(("device", "hill") in found, running)
        if running:
            equal(found["device", "hill"]["severity"], "problem")
            assert "meshhost device hill connect" in found["device", "hill"]["advice"], found["device", "hill"]
            equal(found["device", "roof"]["severity"], "ok")
    status, out, _ = await host.cli("doctor", "--config", host.config)
    equal(status, 69)
    assert "choose another script" in out, out


async def the_doctor_is_content_when_all_is_well(rig):
    host = _host(rig, _scripted("roof"))
    await host.start()
    await host.events.event("link.ready", device="roof")
    equal((await host.json("doctor", "--config", host.config))["ok"], True)


async def links_of_one_adapter_are_made_one_after_another_and_others_never_wait(rig):
    host = _host(rig, _scripted("roof", script="hang", adapter="hci0"), _scripted("hill", adapter="hci0"), mock("bench"),
                 _scripted("mast", adapter="hci1"))
    await host.start()
    await host.events.event("link.ready", device="bench")
    await host.events.event("link.ready", device="mast")
    devices = await host.devices()
    states = {name: (each["state"], (each["waiting"] or {}).get("why")) for name, each in devices.items()}
    first, second = ("roof", "hill") if states["roof"][0] == "connecting" else ("hill", "roof")
    if first == "roof":
        equal(states["hill"], ("disconnected", "slot"))
        await host.json("device", "roof", "disconnect")
    await host.events.until(lambda: host.events.count("link.ready", device="hill"), "hill ready")
    equal(second in devices, True)


async def a_device_waits_for_its_adapter_and_no_longer(rig):
    host = _host(rig, _scripted("roof", script="adapter", pause="500ms"), _scripted("hill"))
    await host.start()
    await host.events.until(lambda: host.events.count("link.waiting", device="roof", why="adapter"), "roof waits")
    status, out, _ = await host.cli("devices")
    equal(status, 0)
    if "waiting for scripted" in out:
        assert "the adapter is off" in out, out
    # Not after the 30 s by which it would be tried anyway.
    await eventually(lambda: host.events.count("link.ready", device="roof"), "roof ready", timeout=10)
    assert host.events.count("adapter.off") and host.events.count("adapter.on")
