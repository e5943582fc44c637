# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Modules that are there, that are not, and that must not be loaded."""
import asyncio
import os
import re
import shutil

from companion import APP_START, Client
from host import Host, compile_module, device, equal, mock, private_folder, share, table, tcp


async def _mixed(rig, **pager):
    """A TCP radio, a mock radio and a device whose module does not exist."""
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port), mock("bench", seed=1), device("pager", "acme-lora", **pager), share("roof"),
                   share("bench"))
    return host


async def a_module_that_does_not_exist_is_named_with_its_place(rig):
    host = await _mixed(rig)
    place = host.place('module = "acme-lora"')
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 78, "status of check")
    (line,) = [line for line in (out + err).split("\n") if ": error" in line]
    assert re.match(re.escape(place) + r"\d+: error", line) and "acme-lora" in line, line

    document = await host.json("check", "--config", host.config, status=78)
    assert "acme-lora" in str(document), document

    process = await host.spawn()
    equal(await process.ended(), 78, "status of run")
    assert any(line.startswith(place) and "acme-lora" in line for line in process.errors), process.errors


async def without_an_optional_module_the_others_run(rig):
    host = await _mixed(rig, optional=True)
    status, _, err = await host.cli("check", "--config", host.config)
    equal(status, 0, f"status of check ({err})")
    await host.start()
    await host.ready("roof", "bench")
    devices = await host.devices()
    equal({name: each["state"] for name, each in devices.items()},
          {"roof": "ready", "bench": "ready", "pager": "disconnected"})
    assert "acme-lora" in str(devices["pager"].get("disabled")), devices["pager"]
    for name in ("roof", "bench"):
        client = await Client.connect(await host.address(name))
        equal((await client.ask(APP_START))[0], 5, f"{name}'s answer to APP_START")
        await client.close()


async def only_modules_that_the_configuration_names_are_loaded(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    await host.ready("bench")
    with open(f"/proc/{host.pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    assert "libmeshhost-mock.so" in maps, "mock is not loaded"
    assert "libmeshhost-tcp.so" not in maps, "tcp is loaded and nobody named it"
    states = {each["name"]: each["state"] for each in (await host.json("modules"))["modules"]}
    equal(states.get("mock"), "loaded")
    equal(states.get("tcp"), "found")


NEXT_MAJOR = """
#include "meshhost_transport.h"
static mh_transport_ops ops = {.struct_size = sizeof ops};
static mh_transport_info info = {
    .struct_size = sizeof info, .abi_major = MH_ABI_MAJOR + 1, .name = "newer", .version = "9.0", .vendor = "rig",
    .license = "Apache-2.0", .ops = &ops};
const mh_transport_info *mh_transport_entry_v1(void) { return &info; }
"""


async def modules_that_must_not_be_loaded_are_refused_and_the_daemon_runs_on(rig):
    folder = private_folder("modules")
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    host = Host(rig)
    built = os.path.join(host.modules[0], "libmeshhost-mock.so")
    host.modules.insert(0, folder)

    shutil.copy(built, os.path.join(folder, "libmeshhost-writable.so"))
    os.chmod(os.path.join(folder, "libmeshhost-writable.so"), 0o775)
    with open(built, "rb") as whole, open(os.path.join(folder, "libmeshhost-truncated.so"), "wb") as half:
        half.write(whole.read()[:os.path.getsize(built) // 2])
    await compile_module(folder, "newer", NEXT_MAJOR)
    await compile_module(folder, "empty", "int nothing_of_use;\n")
    os.symlink(built, os.path.join(folder, "libmeshhost-linked.so"))

    bad = {"writable": "writ", "truncated": "", "newer": "ABI", "empty": "mh_transport_entry_v1", "linked": "link"}
    host.configure(mock("bench"), *(device(f"d-{name}", name, optional=True) for name in bad))
    await host.start()
    await host.ready("bench")

    modules = {each["name"]: each for each in (await host.json("modules"))["modules"]}
    devices = await host.devices()
    for name, word in bad.items():
        equal(modules[name]["state"], "refused", name)
        reason = modules[name]["reason"]
        assert reason and "\n" not in reason and word.lower() in reason.lower(), f"{name}: {reason!r}"
        assert devices[f"d-{name}"]["disabled"], devices[f"d-{name}"]
    assert all(str(number) in modules["newer"]["reason"] for number in (1, 2)), modules["newer"]
    equal(devices["bench"]["state"], "ready")
    equal({each["device"] for each in host.events.all("link.down")}, set())


async def a_pinned_module_is_that_file_and_no_other(rig):
    folder = private_folder("pinned")
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    host = Host(rig)
    path = os.path.join(folder, "libmeshhost-mock.so")
    shutil.copy(os.path.join(host.modules[0], "libmeshhost-mock.so"), path)
    (module,) = (await host.json("modules", "verify", path))["modules"]
    assert module["ok"] and not module["pinned"], module
    pin = module["sha256"]

    def configure(isolation):
        host.configure(table("module.mock", path=path, isolation=isolation, sha256=pin), mock("bench"))

    for isolation in ("in-process", "process"):
        configure(isolation)
        status, out, err = await host.cli("check", "--config", host.config)
        equal((status, out), (0, "ok: 1 device, 0 shares\n"), err)
    await host.start()
    await host.ready("bench")
    (module,) = (await host.json("modules", "verify", "mock", "--config", host.config))["modules"]
    assert module["ok"] and module["pinned"], module

    # Put in its place as an update does; what runs runs on.
    with open(path, "rb") as old, open(path + ".new", "wb") as new:
        new.write(old.read() + b"more")
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)
    for isolation in ("in-process", "process"):
        configure(isolation)
        status, out, err = await host.cli("check", "--config", host.config)
        equal(status, 78, "status of check")
        (line,) = [line for line in (out + err).split("\n") if "pinned" in line]
        assert path in line and pin[:12] in line and "modules verify" in line, line
    status, _, err = await host.cli("reload")
    assert status == 78 and "pinned" in err, err
    equal((await host.devices())["bench"]["state"], "ready")
    status, out, err = await host.cli("modules", "verify", path, "--config", host.config)
    assert status == 78 and "is refused" in out and pin[:12] in out, out + err


async def a_module_loads_with_few_descriptors(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    status, out, err = await host.shell(f'ulimit -n 48; exec "$0" check --config {host.config}')
    equal((status, out), (0, "ok: 1 device, 0 shares\n"), err)
