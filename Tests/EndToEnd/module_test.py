# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""`meshhost module-test`: every module that comes with meshhost keeps the rules, in both isolations, and so does a program;
a module that does not is told which rule it breaks."""
import asyncio
import json
import os
import pty
import shutil
import socket
import tty

import ble_worlds
import hci_worlds
from harness import PATIENCE, ROOT
from host import Host, device, equal, private_folder

HEAD = 3                                                 # of a frame: < or >, and the length in 16 bits


class Echo:
    """A radio that gives back each frame: what came as the host's goes back as the radio's."""

    def __init__(self):
        self.rest = b""

    def answer(self, data):
        self.rest += data
        out = b""
        while len(self.rest) >= HEAD:
            end = HEAD + int.from_bytes(self.rest[1:HEAD], "little")
            if self.rest[:1] != b"<" or len(self.rest) < end:
                break
            out += b">" + self.rest[1:end]
            self.rest = self.rest[end:]
        return out


async def _tcp_echo(rig):
    async def serve(reader, writer):
        echo = Echo()
        try:
            while data := await reader.read(65536):
                writer.write(echo.answer(data))
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    rig.closers.append(lambda: asyncio.to_thread(server.close))
    return server.sockets[0].getsockname()[1]


def _serial_echo(rig):
    """The path of a port; it stays there from link to link."""
    ours, theirs = pty.openpty()
    for end in (ours, theirs):
        tty.setraw(end)
    os.set_blocking(ours, False)
    echo, loop = Echo(), asyncio.get_running_loop()
    waiting = bytearray()

    def write():
        try:
            while waiting:
                del waiting[:os.write(ours, waiting)]
            loop.remove_writer(ours)
        except BlockingIOError:
            loop.add_writer(ours, write)

    def read():
        waiting.extend(echo.answer(os.read(ours, 65536)))
        write()

    async def close():
        loop.remove_reader(ours)
        loop.remove_writer(ours)
        for end in (ours, theirs):
            os.close(end)
    loop.add_reader(ours, read)
    rig.closers.append(close)
    return os.ttyname(theirs)


def _udp_echo(rig):
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))
    peer.setblocking(False)
    loop = asyncio.get_running_loop()

    def read():
        data, address = peer.recvfrom(65536)
        peer.sendto(data, address)

    async def close():
        loop.remove_reader(peer)
        peer.close()
    loop.add_reader(peer, read)
    rig.closers.append(close)
    return peer.getsockname()[1]


async def _tested(host, *words, status=0):
    """The rules that `module-test` tells of, by their part and their sentence."""
    child = await host.begin("module-test", *words, "--json", "--patience", "60s")
    # Some sixty processes, one after the other.
    out, err = await asyncio.wait_for(child.communicate(), 20 * PATIENCE)
    found = child.returncode
    assert out, f"status {found}: {err.decode()}"
    document = json.loads(out)
    equal(document["schema"], "meshhost.module-test/1")
    equal({each["part"] for each in document["rules"]}, {"functions", "in-process", "process"})
    broken = [each for each in document["rules"] if each["outcome"] != "kept"]
    assert found == status, f"status {found}, not kept: {json.dumps(broken, indent=1)} {err.decode()}"
    return {(each["part"], each["rule"]): each for each in document["rules"]}


def _all_but_echoes(rules):
    """A link came up, and what was not tried wants a device that gives back every frame, or what the module has not."""
    for each in rules.values():
        if each["outcome"] == "skipped":
            assert "--peer echo" in each["what"] or "the module" in each["what"], each


async def the_modules_for_ports_and_sockets_keep_every_rule_in_both_isolations(rig):
    host = Host(rig)
    port = await _tcp_echo(rig)
    tested = {
        "tcp": ("-o", f"host=127.0.0.1:{port}", "-o", "layout_check=false", "--peer", "echo"),
        "serial": ("-o", f"path={_serial_echo(rig)}", "-o", "layout_check=false", "--peer", "echo"),
        "mock": (),
    }
    for module, words in tested.items():
        path = os.path.join(host.modules[0], f"libmeshhost-{module}.so")
        _all_but_echoes(await _tested(host, path, *words, *(("--strict",) if words else ())))


async def the_module_for_bluetoothd_keeps_the_rules_in_both_isolations(rig):
    air = await ble_worlds.Air.make(rig)
    air.host.configure(ble_worlds.bluez(pin=ble_worlds.PIN))
    _all_but_echoes(await _tested(air.host, "--device", "roof", "-c", air.host.config))


async def the_module_for_controllers_keeps_the_rules_in_both_isolations(rig):
    air = await hci_worlds.Dongle.make(rig)
    air.host.configure(air.hci(pin=hci_worlds.PIN))
    _all_but_echoes(await _tested(air.host, "--device", "roof", "-c", air.host.config))


async def a_program_keeps_the_rules_of_a_transport(rig):
    host = Host(rig)
    folder = private_folder("program")
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    path = os.path.join(folder, "udp_transport.py")
    shutil.copy(os.path.join(ROOT, "Examples", "python-transport", "udp_transport.py"), path)
    os.chmod(path, 0o755)
    status, out, err = await host.cli("module-test", "-o", "host=127.0.0.1", "-o", f"port={_udp_echo(rig)}", "--peer",
                                      "echo", "--strict", "--json", "--", path)
    document = json.loads(out)
    equal(status, 0, f"{document} {err}")
    equal({each["part"] for each in document["rules"]}, {"process"})
    equal((document["module"]["name"], document["broken"], document["skipped"]), ("udp", 0, 0))


async def a_rule_that_is_broken_is_told_with_what_happened(rig):
    host = Host(rig)
    path = os.path.join(host.modules[0], "libfixture-faulty.so")
    status, out, _ = await host.cli("module-test", path, "-o", "fault=crashes in send", "--rule", "frames of 1 byte",
                                    "--isolation", "process")
    equal(status, 69)
    (line,) = [line for line in out.split("\n") if line.startswith("broken") and "are carried" in line]
    equal(line, "broken   frames of 1 byte up to the maximum are carried: the process was ended by signal 11 "
                "(Segmentation fault), in send")
    assert "Its links, in a process of its own" in out and "in the host's process" not in out, out

    status, out, _ = await host.cli("module-test", path, "-o", "fault=stops twice", "-q", "--rule", "stop")
    equal(status, 69)
    assert "broken   stopped comes once, when every link has ended: stopped came twice" in out, out
    assert "kept" not in out, out


async def what_is_missing_for_a_rule_is_said(rig):
    host = Host(rig)
    path = os.path.join(host.modules[0], "libmeshhost-tcp.so")
    rule = ("--rule", "stop ends an open link")
    status, out, _ = await host.cli("module-test", path, *rule)
    equal(status, 0)
    assert "skipped  stop ends an open link: it needs a device's options: give --option host=…" in out, out
    status, _, _ = await host.cli("module-test", path, *rule, "--strict")
    equal(status, 69, "with --strict")
    # Nobody listens there.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        status, out, _ = await host.cli("module-test", path, *rule, "-o", f"host=127.0.0.1:{free.getsockname()[1]}")
    assert "skipped  stop ends an open link: no link comes up" in out and "refused" in out, out

    status, out, err = await host.cli("module-test", path, "-o", "hots=127.0.0.1")
    equal((status, out), (78, ""))
    assert 'unknown option "hots"' in err and "host" in err, err
    for words, told in ((("--rule", "no such thing", path), "no rule contains that"), ((), "MODULE.so"),
                        ((path, "--peer", "mirror"), "--peer echo"), (("no-such-module",), "no-such-module")):
        status, out, err = await host.cli("module-test", *words)
        assert status in (64, 78) and not out and told in err, f"{words}: {status} {out}{err}"
    status, out, _ = await host.cli("module-test", "--list")
    equal(status, 0)
    assert "  after destroy the module is silent\n" in out, out


async def a_configured_device_is_tested_with_its_options(rig):
    host = Host(rig)
    host.configure(device("roof", "tcp", host=f"127.0.0.1:{await _tcp_echo(rig)}", layout_check=False, protocol="none"))
    rules = await _tested(host, "--device", "roof", "--config", host.config, "--peer", "echo", "--rule",
                          "come back as they went")
    equal({each["outcome"] for each in rules.values()}, {"kept"}, rules)
    status, _, err = await host.cli("module-test", "--device", "rouf", "--config", host.config)
    equal(status, 78)
    assert "rouf" in err, err
