# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Devices that can be heard, pairing with them, and what is wrong: through the daemon and without it, with a module that
plays them (Tests/Fixtures/ScriptedModule)."""
import asyncio
import json
import os
import re
import shutil
import signal

from harness import PATIENCE
from host import Control, Host, compile_module, device, equal, mock, private_folder, table

NEAR = "aa:3"

# A module in C that hears nothing, knows why, and pairs with whatever it is told to.
QUIET = r"""
#include "meshhost_transport.h"
#include <stdlib.h>
#include <string.h>
struct mh_inst_s { const mh_host_api *host; };
static mh_str text(const char *c) { return (mh_str){c, strlen(c)}; }
static int is(mh_str a, const char *b) { return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0; }
static mh_status create(const mh_host_api *host, mh_str config, mh_inst **out) {
  (void)config;
  if (!MH_HAS(mh_host_api, host, managed)) return MH_ENOSUP;
  *out = malloc(sizeof **out);
  (*out)->host = host;
  return MH_OK;
}
static mh_status start(mh_inst *inst) { (void)inst; return MH_OK; }
static mh_status scan(mh_inst *inst, int32_t on, mh_str filter) { (void)inst; (void)on; (void)filter; return MH_OK; }
static mh_status connect(mh_inst *inst, mh_link link, mh_str device, mh_str options) {
  (void)inst; (void)link; (void)device; (void)options;
  return MH_EADAPTER;
}
static mh_status send(mh_inst *inst, mh_link link, mh_bytes frame, uint64_t cookie) {
  (void)inst; (void)link; (void)frame; (void)cookie;
  return MH_ECLOSED;
}
static mh_status disconnect(mh_inst *inst, mh_link link) { (void)inst; (void)link; return MH_ECLOSED; }
static mh_status stop(mh_inst *inst) { inst->host->stopped(inst->host->ctx); return MH_OK; }
static void destroy(mh_inst *inst) { free(inst); }
static mh_status manage(mh_inst *inst, uint64_t request, mh_str verb, mh_str params) {
  (void)params;
  const char *result;
  if (is(verb, MH_VERB_PAIR)) result = "{\"address\":\"Q\\u001b[2J\",\"used_passkey\":true}";
  else if (is(verb, MH_VERB_EXAMINE))
    result = "{\"findings\":[{\"severity\":\"problem\",\"subject\":\"quiet0\",\"message\":\"is off\","
             "\"advice\":\"switch it on\"}]}";
  else return MH_ENOSUP;
  inst->host->managed(inst->host->ctx, request, MH_OK, text(result));
  return MH_OK;
}
static const mh_transport_ops ops = {
    .struct_size = sizeof ops, .create = create, .start = start, .scan = scan, .connect = connect, .send = send,
    .disconnect = disconnect, .stop = stop, .destroy = destroy, .manage = manage};
static const mh_option address = {sizeof address, MH_OPT_STRING, "address", "", "Where it is.", 0, 0};
static const mh_option *const options[] = {&address};
static const mh_transport_info info = {
    .struct_size = sizeof info, .abi_major = MH_ABI_MAJOR, .abi_minor_built = MH_ABI_MINOR, .abi_minor_needed = 1,
    .name = "quiet", .version = "1.0", .vendor = "rig", .license = "Apache-2.0",
    .caps = MH_CAP_SCAN | MH_CAP_PAIRING | MH_CAP_MULTILINK, .ops = &ops, .options = options, .option_count = 1};
const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
"""

# The same, whose search cannot begin.
DEAF = QUIET.replace('"quiet"', '"deaf"').replace(
    "(void)inst; (void)on; (void)filter; return MH_OK;",
    '(void)filter; if (on) inst->host->scan_failed(inst->host->ctx, MH_EADAPTER, text("deaf0 is off; switch it on")); '
    "return MH_OK;")


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


async def _waits(host, name, why):
    """Wait until a device has waited for this reason."""
    await host.events.until(lambda: host.events.count(
        "link.waiting", device=name, where=lambda event: event["data"]["why"] == why), f"{name} waits: {why}")


def _check(devices):
    assert {"aa:1", "aa:2", NEAR} <= set(devices), devices
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
    signals = [each["rssi"] for each in devices.values()]
    equal(signals, sorted(signals, key=lambda signal: -1000 if signal is None else signal, reverse=True), "order")
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
    status, _, err = await host.cli("scan", "--for", "1s", "--config", host.config, "--module", "tcp")
    equal((status, err), (64, 'meshhost: module "tcp" cannot look for devices\n'))


async def pairing_goes_through_the_daemon_and_then_the_link_comes_up(rig):
    host = _host(rig, _scripted("roof", script="fail", address=NEAR, code="link.authentication-failed"), mock("bench"))
    await host.start()
    await _waits(host, "roof", "blocked")
    status, _, err = await host.cli("pair", "roof", "--pin", "111111")
    equal((status, err), (77, "meshhost: the pin is wrong\n"))
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


async def a_pairing_that_is_interrupted_ends_by_the_signal(rig):
    host = _host(rig, _scripted("roof", script="hang", address=NEAR))
    for number in (signal.SIGINT, signal.SIGTERM):
        process = await host.begin("pair", "roof", "--config", host.config)
        # Its handler is there as soon as its loop runs, which nothing tells.
        while not _catches(process.pid, number):
            await asyncio.sleep(0.01)
        process.send_signal(number)
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        equal((process.returncode, err.decode()), (-number, "meshhost: interrupted\n"))


def _catches(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


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
            await _waits(host, "hill", "blocked")
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


async def the_doctor_looks_at_what_the_daemon_does_not_have_yet(rig):
    host = _host(rig, _scripted("roof"))
    await host.start()
    await host.events.event("link.ready", device="roof")
    downs = host.events.count("link.down")
    host.configure(table("module.scripted", path=os.path.join(host.modules[0], "libfixture-scripted.so")),
                   _scripted("roof"), _scripted("hill"), device("attic", "serial", path="/dev/serial/by-id/nothing"),
                   device("pager", "acme-lora", optional=True),
                   device("mast", "hci", address="C0:11:22:33:44:55", controller="unix:/nowhere/hci0"))
    document = await host.json("doctor", "--config", host.config, status=69)
    found = {(each["area"], each["subject"]): each for each in document["findings"]}
    note = found["daemon", "config"]
    equal((note["severity"], note["advice"]), ("note", "`meshhost reload`"))
    assert all(name in note["message"] for name in ("hill", "attic", "pager", "mast")), note
    assert "roof" not in note["message"], note
    assert "/dev/serial/by-id/nothing is not there" in found["serial", "attic"]["message"], found["serial", "attic"]
    equal(found["device", "pager"]["severity"], "problem")
    equal(found["hci", "unix:/nowhere/hci0"]["severity"], "problem")
    assert "in use by the daemon" in found["device", "hill"]["message"], found["device", "hill"]
    equal(found["device", "roof"]["severity"], "ok")
    equal(host.events.count("link.down"), downs, "links that were lost")


async def links_of_one_adapter_are_made_one_after_another_and_others_never_wait(rig):
    host = _host(rig, _scripted("roof", script="hang", adapter="hci0"), _scripted("hill", adapter="hci0"), mock("bench"),
                 _scripted("mast", adapter="hci1"))
    await host.start()
    for name in ("bench", "mast"):
        await host.events.until(lambda name=name: host.events.count("link.ready", device=name), f"{name} ready")
    devices = await host.devices()
    equal({name: (each["state"], (each["waiting"] or {}).get("why")) for name, each in devices.items()},
          {"roof": ("connecting", None), "hill": ("disconnected", "slot"), "bench": ("ready", None),
           "mast": ("ready", None)})
    status, out, _ = await host.cli("device", "roof", "disconnect")
    equal(status, 0, out)
    await host.events.until(lambda: host.events.count("link.ready", device="hill"), "hill ready")


async def a_device_waits_for_its_adapter_and_no_longer(rig):
    host = _host(rig, _scripted("roof", script="adapter"), _scripted("hill"), mock("bench"))
    await host.start()
    for name in ("roof", "hill"):
        await _waits(host, name, "adapter")
    await host.events.until(lambda: host.events.count("link.ready", device="bench"), "bench ready all the same")
    status, out, _ = await host.cli("devices")
    equal(status, 0)
    assert re.search("roof .*waiting for scripted to come back: the adapter is off", out), out
    # Which switches it on. Both are tried because of that.
    await host.cli("doctor", "--config", host.config)
    for name in ("roof", "hill"):
        await host.events.until(lambda name=name: host.events.count("link.ready", device=name), f"{name} ready")
    assert host.events.count("adapter.off") and host.events.count("adapter.on")


async def _module_in_c(rig, host, name, source):
    folder = private_folder(name)
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    await compile_module(folder, name, source)
    host.modules.insert(0, folder)


async def a_search_that_cannot_begin_is_no_silence(rig):
    host = Host(rig)
    await _module_in_c(rig, host, "deaf", DEAF)
    scripted = os.path.join(host.modules[-1], "libfixture-scripted.so")
    host.configure(table("module.scripted", path=scripted), device("lamp", "deaf", protocol="none", address="aa:1"),
                   _scripted("roof", address=NEAR))
    for running in (False, True):
        if running:
            await host.start()
        words = ("scan", "--config", host.config)
        # It ends though nobody would wait for so long.
        status, out, err = await host.cli(*words, "--module", "deaf", "--for", "1h", "--jsonl")
        fail = {"type": "scan.fail", "module": "deaf", "code": "adapter.unavailable",
                "message": "deaf0 is off; switch it on"}
        equal((status, [json.loads(line) for line in out.splitlines()]), (69, [fail]))
        equal(err, "meshhost: module deaf: deaf0 is off; switch it on\n")
        # One that cannot look does not keep the others from it.
        status, out, _ = await host.cli(*words, "--for", "1s", "--jsonl")
        lines = [json.loads(line) for line in out.splitlines()]
        equal((status, [line for line in lines if line["type"] == "scan.fail" and line["module"] == "deaf"]), (0, [fail]))
        assert any(line["type"] == "scan.seen" and line["address"] == NEAR for line in lines), lines[:4]
        document = json.loads((await host.cli(*words, "--for", "1s", "--json", "--module", "deaf"))[1])
        equal(document["failures"], [{key: fail[key] for key in ("module", "code", "message")}])


async def a_silence_is_explained_and_a_module_in_c_pairs(rig):
    host = Host(rig)
    await _module_in_c(rig, host, "quiet", QUIET)
    host.configure(device("lamp", "quiet", protocol="none", address="aa:1"))
    for running in (False, True):
        if running:
            await host.start()
        status, out, err = await host.cli("scan", "--for", "1s", "--module", "quiet", "--config", host.config)
        equal((status, out.split()), (69, ["ADDRESS", "NAME", "DBM", "KIND", "DEVICE", "AGE"]))
        equal(err, "meshhost: nothing was heard:\n"
                   "problem  quiet  quiet0: is off\n                \u2192 switch it on\n")
        equal(await host.cli("pair", "lamp", "--config", host.config),
              (0, "paired with Q\ufffd[2J, with the PIN\n", ""))
        status, _, err = await host.cli("unpair", "lamp", "--config", host.config)
        equal((status, err), (64, 'meshhost: module quiet cannot do "unpair"\n'))
