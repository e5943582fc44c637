# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Modules in processes of their own: libraries and programs, that do what they should and that do not."""
import asyncio
import os
import shutil
import signal

from companion import APP_START, Client
from harness import ROOT
from host import Control, Host, compile_module, device, equal, eventually, mock, private_folder, share, table

EXAMPLE = os.path.join(ROOT, "Examples", "python-transport", "udp_transport.py")
RUDE = os.path.join(ROOT, "Tests", "Fixtures", "RudeModule", "module.c")


def _folder(rig, name):
    folder = private_folder(name)
    rig.closers.append(lambda: asyncio.to_thread(shutil.rmtree, folder))
    return folder


async def _rude(rig, host):
    """The fixture module `rude` where the host looks for modules."""
    folder = _folder(rig, "modules")
    with open(RUDE, encoding="utf-8") as file:
        await compile_module(folder, "rude", file.read())
    host.modules.insert(0, folder)


def _program(folder, name, body):
    """A transport that is a program: what the example has, but for `body`, which changes its class Udp."""
    with open(EXAMPLE, encoding="utf-8") as file:
        head, tail = file.read().split('if __name__ == "__main__":')
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{head}\nUdp.HELLO["name"] = "{name}"\n{body}\nif __name__ == "__main__":{tail}')
    os.chmod(path, 0o755)
    return path


def _command(name, *command, **keys):
    return table(f"module.{name}", command=list(command), **keys)


class Echo(asyncio.DatagramProtocol):
    """A radio behind UDP that sends back what it gets."""

    def __init__(self):
        self.frames, self.peer = [], None

    @classmethod
    async def serve(cls, rig):
        transport, self = await asyncio.get_running_loop().create_datagram_endpoint(
            cls, local_addr=("127.0.0.1", 0))
        self.transport, self.port = transport, transport.get_extra_info("sockname")[1]

        async def close():
            transport.close()
        rig.closers.append(close)
        return self

    def datagram_received(self, data, addr):
        self.frames.append(data)
        self.peer = addr


async def _module(host, name):
    return {each["name"]: each for each in (await host.json("modules"))["modules"]}[name]


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def a_vendors_module_runs_in_a_process_of_its_own_and_ends_with_the_daemon(rig):
    host = Host(rig)
    await _rude(rig, host)
    host.configure(device("pager", "rude", protocol="none"), mock("bench"))
    await host.start()
    await host.ready("pager", "bench")
    with open(f"/proc/{host.pid}/maps", encoding="utf-8") as file:
        assert "rude" not in file.read(), "the module is in the daemon"
    module = await _module(host, "rude")
    equal((module["isolation"], module["state"], len(module["pids"])), ("process", "loaded", 1))
    equal((await _module(host, "mock"))["isolation"], "in-process")
    (pid,) = module["pids"]
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        assert "rude" in file.read(), "the module is not in its process"
    equal(await host.stop(), 0, "status of the daemon")
    assert not _lives(pid), "its process is left"


async def a_module_is_taken_into_the_daemon_if_the_configuration_says_so(rig):
    host = Host(rig)
    await _rude(rig, host)
    host.configure(table("module.rude", isolation="in-process"), device("pager", "rude", protocol="none"))
    await host.start()
    await host.ready("pager")
    module = await _module(host, "rude")
    equal((module["isolation"], module["pids"]), ("in-process", []))


async def a_shipped_module_works_in_a_process_of_its_own(rig):
    host = Host(rig)
    host.configure(table("module.mock", isolation="process"), mock("bench", seed=1), share("bench"))
    await host.start()
    await host.ready("bench")
    equal((await _module(host, "mock"))["isolation"], "process")
    client = await Client.connect(await host.address("bench"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    await client.close()


async def a_refused_configuration_changes_no_module(rig):
    host = Host(rig)
    apart, here = (table("module.mock", isolation=where) for where in ("process", "in-process"))
    host.configure(apart, mock("bench"))
    await host.start()
    await host.ready("bench")
    before = await _module(host, "mock")
    equal(before["isolation"], "process", "isolation")

    since = len(host.events.events)
    host.configure(here, mock("bench"), mock("other", nonsense=1))
    equal((await host.cli("reload"))[0], 78, "exit code of a reload that is refused")
    equal(await _module(host, "mock"), before, "the module")
    equal((await host.cli("modules", "reset", "mock"))[0], 0, "exit code of a reset of the process")
    # Another reading of the config in force finds what runs.
    await host.cli("scan", "--module", "mock", "--for", "0s")
    equal(await _module(host, "mock"), before, "the module")

    host.configure(apart, mock("bench"))
    equal((await host.cli("reload"))[0], 0, "exit code of a reload")
    equal(await _module(host, "mock"), before, "the module")
    equal(host.events.count("link.down", since), 0, "lost links")

    host.configure(here, mock("bench"))
    equal((await host.cli("reload"))[0], 0, "exit code of a reload")
    await host.events.event("link.down")
    equal((await _module(host, "mock"))["isolation"], "in-process", "isolation")


async def a_killed_process_is_a_lost_link_and_the_others_go_on(rig):
    host = Host(rig)
    await _rude(rig, host)
    host.configure(device("pager", "rude", protocol="none"), mock("bench", seed=1), share("bench"))
    await host.start()
    await host.ready("pager", "bench")
    client = await Client.connect(await host.address("bench"))
    (pid,) = (await _module(host, "rude"))["pids"]
    host.events.mark()
    os.kill(pid, signal.SIGSEGV)
    crash = await host.events.event("module.crash")
    equal((crash["data"]["name"], crash["data"]["pid"], crash["data"]["quarantined"]), ("rude", pid, False))
    assert "signal 11" in crash["data"]["reason"], crash
    await host.ready("pager")
    module = await _module(host, "rude")
    equal((module["crashes"], module["restarts"], "signal 11" in module["last_crash"]), (1, 1, True))
    down = host.events.all("link.down")
    equal({each["device"] for each in down}, {"pager"})
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    await client.close()


async def two_hundred_processes_leave_no_descriptor_and_no_zombie(rig):
    host = Host(rig)
    await _rude(rig, host)
    host.configure(device("pager", "rude", protocol="none"))
    await host.start()
    await host.ready("pager")
    control = await Control.connect(host)
    (last,) = (await _module(host, "rude"))["pids"]
    before, pids = host.descriptors(), {last}
    for _ in range(200):
        answer = await control.ask("device", {"name": "pager", "verb": "reconnect"})
        assert "result" in answer, answer
        await host.ready("pager")
        answer = await control.ask("modules")
        pids.update(next(each for each in answer["result"]["modules"] if each["name"] == "rude")["pids"])
    equal(len(pids), 201, "processes")
    await eventually(lambda: host.descriptors() <= before, "descriptors are closed")
    with open(f"/proc/{host.pid}/task/{host.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    equal(len(children), 1, "children, zombies included")


async def when_the_daemon_is_killed_no_process_is_left(rig):
    host = Host(rig)
    await _rude(rig, host)
    folder = _folder(rig, "programs")
    radio = await Echo.serve(rig)
    path = _program(folder, "deaf", "Udp.run = lambda self: (self.wire.document(HELLO, self.HELLO), [self.host() for _ in range(3)],"
                    " __import__('time').sleep(3600))")
    host.configure(_command("deaf", path), device("pager", "rude", protocol="none"),
                   device("mute", "deaf", protocol="none", host="127.0.0.1", port=radio.port))
    await host.start()
    await host.ready("pager", "mute")
    pids = (await _module(host, "rude"))["pids"] + (await _module(host, "deaf"))["pids"]
    equal(len(pids), 2)
    os.kill(host.pid, signal.SIGKILL)
    await eventually(lambda: not any(map(_lives, pids)), "the processes of modules end")
    await host.process.ended()


async def the_example_carries_frames_both_ways_over_udp(rig):
    folder = _folder(rig, "programs")
    path = _program(folder, "udp", "")
    radio = await Echo.serve(rig)
    host = Host(rig)
    host.configure(_command("udp", path), device("roof", "udp", host="127.0.0.1", port=radio.port),
                   share("roof"))
    host.link["connect_timeout"] = "5s"
    await host.start()
    # The session's first question, DEVICE_QUERY, arrives as one datagram.
    await eventually(lambda: radio.frames, "a frame")
    equal(radio.frames[0][0], 22, "the first byte")
    module = await _module(host, "udp")
    equal((module["isolation"], module["version"], module["capabilities"]),
          ("process", "1.0.0", ["multilink", "network"]))
    device_ = (await host.json("device", "roof"))["device"]
    equal(device_["peer"], f"127.0.0.1:{radio.port}")
    equal(device_["diagnostics"]["host"]["module"]["pid"], module["pids"][0])


async def a_programs_options_are_checked_with_their_place(rig):
    folder = _folder(rig, "programs")
    path = _program(folder, "udp", "")
    host = Host(rig)
    host.configure(_command("udp", path), device("roof", "udp", host="127.0.0.1", port=70000))
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 78, "status of check")
    assert host.place("port = 70000") in out + err and "70000 is no port" in out + err, out + err
    host.configure(_command("udp", path), device("roof", "udp", host="127.0.0.1", prt=1))
    status, out, err = await host.cli("check", "--config", host.config)
    assert status == 78 and 'did you mean "port"' in out + err, out + err


async def two_devices_of_a_module_of_its_own_that_are_one_are_an_error(rig):
    host = Host(rig)
    host.configure(_command("udp", EXAMPLE), table("module.tcp", isolation="process"),
                   *(device(name, module, protocol="none", host=address, port=5000)
                     for module in ("udp", "tcp")
                     for name, address in ((f"{module}-a", "radio.example"), (f"{module}-b", "Radio.example"))))
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 78, "status of check")
    for module in ("udp", "tcp"):
        assert f"{module}-a" in out + err and "radio.example:5000" in out + err, out + err


async def a_program_that_is_none_is_refused_with_its_words(rig):
    folder = _folder(rig, "programs")
    cases = {
        "broken": ("raise SystemExit('no radio today')", "no radio today"),
        "liar": ("Udp.HELLO['name'] = 'other'", "other"),
        "old": ("Udp.HELLO['protocols'] = [0]", "protocol"),
        "babbler": ("Wire().socket.send(b'hello')", "sent a message that is none"),
        "mute": ("import time; time.sleep(60)", "has not answered"),
    }
    host = Host(rig)
    sections = [mock("bench")]
    for name, (body, _) in cases.items():
        sections += [_command(name, _program(folder, name, body)), device(f"d-{name}", name, optional=True)]
    writable = _program(folder, "writable", "")
    os.chmod(writable, 0o777)
    sections += [_command("writable", writable), device("d-writable", "writable", optional=True)]
    host.configure(*sections)
    await host.start()
    await host.ready("bench")
    modules = {each["name"]: each for each in (await host.json("modules"))["modules"]}
    for name, words in [*((name, words) for name, (_, words) in cases.items()), ("writable", "changed by others")]:
        equal(modules[name]["state"], "refused", name)
        assert words in modules[name]["reason"], f"{name}: {modules[name]['reason']}"


async def a_program_has_nothing_that_is_not_its_own(rig):
    folder = _folder(rig, "programs")
    path = _program(folder, "curious", '''
def facts(self, cookie):
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.split(":\\t", 1) for line in file.read().splitlines() if ":\\t" in line)
    import resource
    self.wire.document(DIAGNOSTICS, {
        "env": sorted(os.environ), "cwd": os.getcwd(), "no_new_privs": status["NoNewPrivs"].strip(),
        "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1], "memory": resource.getrlimit(resource.RLIMIT_AS)[1],
        "session": os.getsid(0) == os.getpid()}, cookie=cookie)
host_before = Udp.host
def host_(self):
    message = self.wire.hear()
    if message and message[0] == DIAGNOSE:
        return facts(self, message[3 + 1])
    self.wire.hear, real = lambda: message, self.wire.hear
    try:
        host_before(self)
    finally:
        self.wire.hear = real
Udp.host = host_
''')
    radio = await Echo.serve(rig)
    host = Host(rig, env={"MESHHOST_PIN": "123456", "AWS_SECRET": "x"})
    host.configure(_command("curious", path, memory_mib=512),
                   device("roof", "curious", protocol="none", host="127.0.0.1", port=radio.port))
    await host.start()
    await host.ready("roof")
    facts = (await host.json("device", "roof"))["device"]["diagnostics"]["host"]["module"]
    assert not {"MESHHOST_PIN", "AWS_SECRET", "NOTIFY_SOCKET", "HOME"} & set(facts["env"]), facts["env"]
    equal((facts["cwd"], facts["no_new_privs"], facts["core"], facts["memory"], facts["session"]),
          ("/", "1", 0, 512 << 20, True))
    # 0 to 3, and what Python itself has opened since.
    assert set(range(4)) <= set(facts["fds"]) and len(facts["fds"]) <= 8, facts["fds"]


async def five_crashes_are_the_last_until_somebody_resets_the_module(rig):
    folder = _folder(rig, "programs")
    radio = await Echo.serve(rig)
    path = _program(folder, "fatal", "Udp.connect = lambda self, link, request: os._exit(9)")
    host = Host(rig)
    host.configure(_command("fatal", path), mock("bench"),
                   device("pager", "fatal", protocol="none", host="127.0.0.1", port=radio.port))
    await host.start()
    for count in range(5):
        crash = (await host.events.event("module.crash"))["data"]
        equal((crash["name"], crash["quarantined"]), ("fatal", count == 4), f"crash {count + 1}")
    module = await _module(host, "fatal")
    equal((module["state"], module["crashes"], module["pids"]), ("quarantined", 5, []))
    status, out, _ = await host.cli("modules")
    assert status == 0 and "quarantined" in out and "status 9" in out, out

    async def waits():
        error = (await host.devices())["pager"]["last_error"]
        return error and "meshhost modules reset fatal" in error["message"]
    await eventually(waits, "the device says what to do")
    # Mended: the same program from now on, and somebody says so.
    status, out, err = await host.cli("modules", "reset", "fatle")
    assert status == 64 and "fatle" in err, err
    equal((await host.cli("modules", "reset", "fatal"))[0], 0)
    equal((await host.events.event("module.crash"))["data"]["quarantined"], False)
    # A changed file is another module, which a reload takes.
    _program(folder, "fatal", "")
    equal((await host.cli("reload"))[0], 0)
    await host.ready("pager")
    equal((await _module(host, "fatal"))["crashes"], 0)


async def what_breaks_the_protocol_or_floods_harms_nobody_else(rig):
    folder = _folder(rig, "programs")
    radio = await Echo.serve(rig)
    up = "self.wire.say(LINK_UP, b'x', code=100, link=link)"
    faults = {
        "garbage": f"def bad(self, link, request):\n    {up}\n    self.wire.socket.send(b'garbage' * 10)",
        "floods": f"def bad(self, link, request):\n    {up}\n"
                  "    while True: self.wire.say(LOG, b'again and again', code=INFO)",
        "closes": f"def bad(self, link, request):\n    {up}\n    self.wire.socket.close()\n    import time; time.sleep(60)",
    }
    host = Host(rig)
    sections = [mock("bench", seed=1), share("bench")]
    for name, body in faults.items():
        sections += [_command(name, _program(folder, name, body + "\nUdp.connect = bad")),
                     device(name, name, protocol="none", host="127.0.0.1", port=radio.port)]
    host.configure(*sections)
    await host.start()
    await host.ready("bench")
    crashed = set()
    while crashed != {"garbage", "closes"}:
        crashed.add((await host.events.event("module.crash"))["data"]["name"])
    client = await Client.connect(await host.address("bench"))
    for _ in range(20):
        equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    await client.close()
    equal((await host.devices())["bench"]["state"], "ready")
    equal({each["device"] for each in host.events.all("link.down")} & {"bench"}, set())
