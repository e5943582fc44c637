# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Transports of somebody's own: what is installed, and the examples built with no more than that."""
import asyncio
import os
import pty
import shutil
import signal
import tty

from companion import APP_START, GET_STATS, Client
from harness import PATIENCE, ROOT
from host import Host, device, equal, eventually, private_folder, share


async def _shell(*words, cwd=None, **environment):
    """Run a program that knows nothing of the repository: what it printed; it has to succeed."""
    child = await asyncio.create_subprocess_exec(
        *words, cwd=cwd, env={"PATH": os.environ["PATH"], **environment}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    out, _ = await child.communicate()
    assert child.returncode == 0, f"{' '.join(words)}: status {child.returncode}: {out.decode()}"
    return out.decode()


def _removed(rig, folder):
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    return folder


async def _installed(rig, host):
    """A prefix that the program under test is installed below."""
    prefix = _removed(rig, private_folder("prefix"))
    await _shell(os.path.join(ROOT, "Examples", "systemd", "install"), PREFIX=prefix, BUILD=os.path.dirname(host.binary))
    return prefix


def _files(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder) for path, _, names in os.walk(folder) for name in names)


async def what_install_puts_there_uninstall_takes_away(rig):
    prefix = await _installed(rig, Host(rig))
    there = _files(prefix)
    for name in ("bin/meshhost", "include/meshhost_transport.h", "lib/pkgconfig/meshhost-transport.pc",
                 "share/meshhost/sdk/Package.swift", "share/meshhost/sdk/module-exports.map",
                 "share/meshhost/templates/c/Makefile", "share/meshhost/templates/swift/Package.swift",
                 *(f"lib/meshhost/modules/meshhost-{module}.so" for module in ("bluez", "hci", "mock", "serial", "tcp"))):
        assert name in there, f"{name} is not among {there}"
    await _shell(os.path.join(ROOT, "Examples", "systemd", "uninstall"), PREFIX=prefix)
    equal(_files(prefix), [])


def _example(rig, name):
    """A copy of an example in a folder that knows nothing of the repository."""
    folder = _removed(rig, private_folder(name))
    shutil.copytree(os.path.join(ROOT, "Examples", name), folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(".build"))
    return folder


async def _carries_a_session(rig, host, prefix, example, module, path):
    """The daemon and a radio behind the example's bridge: a session, a loss, and a session again."""
    modules = os.path.join(prefix, "lib", "meshhost", "modules")
    status, out, err = await host.cli("check", "--config", os.path.join(example, "config.toml"),
                                      "--set", f"daemon.module_path={modules}")
    equal((status, out), (0, "ok: 1 device, 1 share\n"), err)
    radio = await rig.burst()

    async def bridge():
        process = await rig.start("bridge", os.path.join(example, "bridge.py"), path, f"127.0.0.1:{radio.port}")
        await eventually(lambda: os.path.exists(path), "what the bridge makes")
        return process

    async def session():
        await host.ready("roof")
        client = await Client.connect(await host.address("roof"))
        equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
        return client

    running = await bridge()
    host.modules.append(modules)
    host.configure(device("roof", module, options={"path": path}), share("roof"))
    await host.start()
    client = await session()
    load = await rig.load(await host.address("roof"), "--ask", "path", "--rounds", 500)
    result = await load.event("result")
    assert result["ok"] and result["answered"] == 500, result

    # The next frame, at the latest, finds nobody.
    await running.stop()
    host.events.mark()
    await eventually(lambda: host.events.count("link.down", device="roof") or client.send(GET_STATS), "the end of the link")
    await bridge()
    await session()


async def _keeps_the_rules(rig, host, module):
    """The module of the example in Swift, with a port whose other end gives back every byte."""
    ours, theirs = pty.openpty()
    for end in (ours, theirs):
        tty.setraw(end)
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, lambda: os.write(ours, os.read(ours, 4096)))
    child = await host.begin("module-test", module, "--option", f"path={os.ttyname(theirs)}", "--peer", "echo", "--strict")
    out, err = await asyncio.wait_for(child.communicate(), 20 * PATIENCE)
    loop.remove_reader(ours)
    for end in (ours, theirs):
        os.close(end)
    equal(child.returncode, 0, (out + err).decode())


async def the_example_in_c_is_built_with_the_sdk_alone_and_carries_a_session(rig):
    host = Host(rig)
    prefix = await _installed(rig, host)
    example = _example(rig, "VendorTransport-C")
    sdk = {"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")}
    for words in (["make"], ["make", "test"], ["make", "install"]):
        await _shell(*words, cwd=example, **sdk)
    await _shell("make", "check", cwd=example, MESHHOST=os.path.join(prefix, "bin", "meshhost"), **sdk)
    exported = await _shell("nm", "-D", "--defined-only", os.path.join(example, "meshhost-datagram.so"))
    equal([line.split()[-1] for line in exported.splitlines()], ["mh_transport_entry_v1"], "what it exports")
    await _carries_a_session(rig, host, prefix, example, "datagram", rig.path("roof.sock"))


async def the_example_in_swift_is_built_with_the_sdk_alone_and_carries_a_session(rig):
    host = Host(rig)
    prefix = await _installed(rig, host)
    example = _example(rig, "VendorTransport-Swift")
    sdk = {"MESHHOST_SDK": os.path.join(prefix, "share", "meshhost", "sdk"), "HOME": rig.path("")}
    # One build for both: that of another configuration would take as long again.
    for words in (["build", "--build-tests"], ["test", "--skip-build"]):
        await _shell("swift", *words, "-c", "release", "-Xswiftc", "-enable-testing", cwd=example, **sdk)
    built = os.path.join(example, ".build", "release", "libmeshhost-kiss.so")
    await _shell("install", "-m", "644", built, os.path.join(prefix, "lib", "meshhost", "modules", "meshhost-kiss.so"))
    await _keeps_the_rules(rig, host, built)
    await _carries_a_session(rig, host, prefix, example, "kiss", rig.path("roof-tty"))


def _begun(rig, prefix, language, name):
    """A copy of a template, named as its README says."""
    folder = _removed(rig, private_folder(f"own-{language}"))
    shutil.copytree(os.path.join(prefix, "share", "meshhost", "templates", language), folder, dirs_exist_ok=True)
    named = {"c": ["Makefile"], "swift": ["Package.swift", "Sources/Acme/AcmeTransportFactory.swift"]}
    for file in named[language] + ["config.toml"]:
        path = os.path.join(folder, file)
        with open(path, encoding="utf-8") as opened:
            text = opened.read()
        assert "acme" in text, f"{file} names no module"
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(text.replace("acme", name))
    return folder


async def _verified(host, path, name):
    """The module keeps every rule, and shows its entry and nothing else."""
    (module,) = (await host.json("modules", "verify", path))["modules"]
    assert all(finding["verdict"] == "ok" for finding in module["findings"]), module
    equal(module["findings"][-1]["text"], "mh_transport_entry_v1 alone", name)


async def the_template_in_c_becomes_a_module_that_carries_a_session(rig):
    host = Host(rig)
    prefix = await _installed(rig, host)
    own = _begun(rig, prefix, "c", "pager")
    sdk = {"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig"), "MESHHOST": os.path.join(prefix, "bin", "meshhost")}
    said = ""
    for words in (["make"], ["make", "check"], ["make", "install"]):
        said += await _shell(*words, cwd=own, **sdk)
    assert "may be loaded" in said and "sha256 = " in said, said
    await _verified(host, os.path.join(own, "meshhost-pager.so"), "pager")
    await _carries_a_session(rig, host, prefix, own, "pager", rig.path("roof.sock"))


async def the_template_in_swift_becomes_a_module_that_carries_a_session(rig):
    host = Host(rig)
    prefix = await _installed(rig, host)
    own = _begun(rig, prefix, "swift", "pager")
    sdk = {"MESHHOST_SDK": os.path.join(prefix, "share", "meshhost", "sdk"), "HOME": rig.path("")}
    # One build for both: that of another configuration would take as long again.
    for words in (["build", "--build-tests"], ["test", "--skip-build"]):
        await _shell("swift", *words, "-c", "release", "-Xswiftc", "-enable-testing", cwd=own, **sdk)
    built = os.path.join(own, ".build", "release", "libmeshhost-pager.so")
    await _shell("install", "-m", "644", built, os.path.join(prefix, "lib", "meshhost", "modules", "meshhost-pager.so"))
    await _verified(host, os.path.join(prefix, "lib", "meshhost", "modules", "meshhost-pager.so"), "pager")
    await _carries_a_session(rig, host, prefix, own, "pager", rig.path("roof.sock"))


async def a_host_of_ones_own_keeps_a_link_and_ends_cleanly(rig):
    radio = await rig.burst()
    path = rig.path("roof.sock")
    program = os.path.join(os.path.dirname(Host(rig).binary), "EmbeddedHost")
    bridge = os.path.join(ROOT, "Examples", "sdk", "templates", "bridge.py")

    async def bridged():
        process = await rig.start("bridge", bridge, path, f"127.0.0.1:{radio.port}")
        await eventually(lambda: os.path.exists(path), "what the bridge makes")
        return process

    host = await rig.start("embedded host", program, path, key="type")
    waiting = await host.event("link.waiting")
    assert "program running" in str(waiting), waiting
    running = await bridged()
    await host.event("link.ready", device="roof")
    await running.stop()
    os.unlink(path)
    await host.event("link.down", device="roof")
    await bridged()
    await host.event("link.ready", device="roof")
    # Its own check that nothing was left open has no words.
    host.kill(signal.SIGTERM)
    equal(await host.ended(), 0, "status")


async def the_example_in_c_names_what_is_wrong_with_its_options(rig):
    host = Host(rig)
    prefix = await _installed(rig, host)
    example = _example(rig, "VendorTransport-C")
    await _shell("make", "install", cwd=example, PKG_CONFIG_PATH=os.path.join(prefix, "lib", "pkgconfig"))
    host.modules.append(os.path.join(prefix, "lib", "meshhost", "modules"))
    host.configure(device("roof", "datagram", options={"path": "here"}))
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 78, "status of check")
    assert host.place("options = ") in out + err and "absolute path" in out + err, out + err
