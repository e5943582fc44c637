# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The daemon under test: its configuration, its process, its command line."""
import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "Rigs", "common"))
from harness import PATIENCE, ROOT                       # noqa: E402

FAST_LINK = {"backoff": {"first": "20ms", "max": "200ms"}, "connect_timeout": "5s", "contention_backoff": "500ms"}


def binary():
    """The program to test: MESHHOST_BIN, else what was built last, optimised first."""
    for path in (os.environ.get("MESHHOST_BIN"), *(os.path.join(ROOT, ".build", kind, "meshhost")
                                                   for kind in ("release", "debug"))):
        if path and os.access(path, os.X_OK):
            # Resolved, because modules beside it are only loaded by a path without symbolic links.
            return os.path.realpath(path)
    sys.exit("no meshhost to test: build it, or name it in MESHHOST_BIN")


def value(item):
    """A TOML value."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{key} = {value(each)}" for key, each in item.items()) + " }"
    if isinstance(item, list):
        return "[" + ", ".join(map(value, item)) + "]"
    return json.dumps(item)


def table(header, **keys):
    return "\n".join([f"[{header}]", *(f"{key} = {value(item)}" for key, item in keys.items()), ""])


def device(name, module, **keys):
    return table("[device]", name=name, module=module, **keys)


def tcp(name, port, **keys):
    return device(name, "tcp", host=f"127.0.0.1:{port}", **keys)


def mock(name, **keys):
    return device(name, "mock", **keys)


def bluez(name, address=None, advertised=None, **keys):
    """A Bluetooth LE device, by its address or by the name it advertises."""
    by = {"address": address} if address else {"options": {"name": advertised}}
    return device(name, "bluez", **by, **keys)


def share(on, listen="127.0.0.1:0", **keys):
    """A share of the device of this name. Received-packet logs, which are off by default, are what tests count."""
    return table("[share]", type="companion-tcp", device=on, listen=listen, **{"rx_log": True, **keys})


def unix_share(on, path, **keys):
    return table("[share]", type="companion-unix", device=on, listen=path, **{"rx_log": True, **keys})


class Notify:
    """The service manager's side of sd_notify: datagrams, with the time each came at."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(path)
        self.messages, self.times = [], []
        self.came = asyncio.Event()
        asyncio.get_running_loop().add_reader(self.socket, self._read)

    def _read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                text = self.socket.recv(4096).decode()
                for line in text.split("\n"):
                    self.messages.append(line)
                    self.times.append(time.monotonic())
                self.came.set()

    async def message(self, start, count=1):
        """Wait until `count` messages that begin like this have come; when the last of them did."""
        while len(found := [at for at, text in zip(self.times, self.messages) if text.startswith(start)]) < count:
            self.came.clear()
            await self.came.wait()
        return found[count - 1]

    def close(self):
        asyncio.get_running_loop().remove_reader(self.socket)
        self.socket.close()


class Host:
    """One daemon with a folder of its own in the rig. Configure, start; `events` holds all it told since its start."""

    def __init__(self, rig, name="host", env=None):
        """`env` is added to the environment of the daemon and of every command."""
        self.rig, self.name, self.binary, self.env = rig, name, binary(), env or {}
        self.folder = rig.path(name)
        os.mkdir(self.folder, 0o700)
        self.config = os.path.join(self.folder, "config.toml")
        self.state = os.path.join(self.folder, "state")
        self.control = os.path.join(self.folder, "control.sock")
        self.modules = [os.path.dirname(self.binary)]
        self.link = dict(FAST_LINK)
        self.process = self.events = self.notify = None
        self.starts = 0

    # configuration

    def text(self, *sections):
        """The whole file, with what every test needs before its own sections."""
        return "\n".join([
            table("daemon", state_dir=self.state, control_socket=self.control, module_path=self.modules,
                  log_level="debug"),
            table("defaults.link", **self.link), *sections])

    def configure(self, *sections):
        self.write(self.text(*sections))

    def write(self, text):
        # In place of the old one at once: a reload never sees half a file.
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.config + ".new", self.config)

    def place(self, text):
        """`FILE:LINE:` of the first line of the configuration that holds `text`."""
        with open(self.config, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if text in line:
                    return f"{self.config}:{number}:"
        raise AssertionError(f"{text!r} is not in the configuration")

    # life

    @property
    def pid(self):
        return self.process.pid

    def environment(self, **more):
        return {"MESHHOST_CONTROL": self.control, "NO_COLOR": "1", **self.env, **more}

    async def spawn(self, *options, env=None):
        """Start the daemon and wait for nothing."""
        self.starts += 1
        if self.notify:
            self.notify.close()
        path = os.path.join(self.folder, f"notify{self.starts}")
        self.notify = Notify(path)
        self.started = time.monotonic()
        self.process = await self.rig.start(self.name, self.binary, "run", "--config", self.config, *options,
                                            env=self.environment(NOTIFY_SOCKET=path, **(env or {})))
        return self.process

    async def start(self, *options, env=None):
        """Start the daemon, and return when its listeners are bound and `events` is listening."""
        await self.spawn(*options, env=env)
        await self.notified("READY=1")
        self.events = await self.listen("--since", 0)
        return self

    async def notified(self, text, count=1):
        """Wait for a message to the service manager, but no longer than the daemon lives."""
        message = asyncio.ensure_future(self.notify.message(text, count))
        end = asyncio.ensure_future(self.process.child.wait())
        await asyncio.wait([message, end], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        if not message.done():
            message.cancel()
            state = f"ended with {self.process.child.returncode}" if self.process.child.returncode is not None \
                else f"lives {PATIENCE} s"
            raise AssertionError(f"no {text} x {count}: the daemon {state}: {self.process.errors[-5:]}")
        return message.result()

    async def stop(self):
        """SIGTERM; the exit status."""
        self.process.kill(15)
        return await self.process.ended()

    # command line

    async def begin(self, *words, env=None, stdin=None):
        """Start a command."""
        return await asyncio.create_subprocess_exec(
            self.binary, *map(str, words), stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **self.environment(**(env or {}))})

    async def cli(self, *words, env=None, stdin=None):
        """Run a command: its status, standard output and standard error."""
        child = await self.begin(*words, env=env, stdin=stdin)
        try:
            out, err = await asyncio.wait_for(child.communicate(), PATIENCE)
        except asyncio.TimeoutError:
            child.kill()
            await child.wait()
            raise AssertionError(f"meshhost {' '.join(map(str, words))} does not end") from None
        return child.returncode, out.decode(), err.decode()

    async def as_nobody(self, *words):
        """Run a command as a user who may do nothing: its status, standard output and standard error. The program is
        opened before: that user cannot reach it."""
        program = os.open(self.binary, os.O_RDONLY)
        child = await asyncio.create_subprocess_exec(
            self.binary, *words, executable=f"/proc/self/fd/{program}", pass_fds=[program], user=65534, group=65534,
            extra_groups=[], stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={**os.environ, **self.environment()})
        os.close(program)
        out, err = await asyncio.wait_for(child.communicate(), PATIENCE)
        return child.returncode, out.decode(), err.decode()

    async def shell(self, text, env=None, shell="sh"):
        """Run a line of shell in which `$0` is the program: its status, standard output and standard error."""
        child = await asyncio.create_subprocess_exec(
            f"/bin/{shell}", "-c", text, self.binary, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **self.environment(**(env or {}))})
        out, err = await asyncio.wait_for(child.communicate(), PATIENCE)
        return child.returncode, out.decode(), err.decode()

    async def json(self, *words, status=0):
        """What a command prints with --json, which has to be one document that names its schema."""
        ended, out, err = await self.cli(*words, "--json")
        assert ended == status, f"meshhost {' '.join(map(str, words))}: status {ended}: {err or out}"
        document = json.loads(out)
        assert re.fullmatch(r"meshhost\.[a-z.]+/\d+", document.get("schema", "")), document
        return document

    async def listen(self, *words):
        """Subscribe to events; the subscription holds when this returns."""
        process = await self.rig.start(f"{self.name} listen", self.binary, "listen", *words, env=self.environment(),
                                       key="type")
        await process.event("listen.ready")
        return process

    async def devices(self):
        return {each["name"]: each for each in (await self.json("devices"))["devices"]}

    async def clients(self):
        return await self.json("clients")

    async def address(self, name, number=0):
        """Where a share of the device listens: a port of this machine, or a path."""
        listen = (await self.devices())[name]["shares"][number]["listen"]
        host, colon, port = listen.rpartition(":")
        return int(port) if colon and port.isdigit() else listen

    async def ready(self, *names):
        """Wait for the next `link.ready` of each of these devices, in any order."""
        events, since = self.events, self.events.seen
        for name in names:
            await events.until(lambda name=name: events.count("link.ready", since, device=name), f"{name} ready")
        events.mark()

    # the process

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


class Control:
    """A connection to the control socket, for what the command line never says."""

    @classmethod
    async def connect(cls, host):
        self = cls()
        self.reader, self.writer = await asyncio.open_unix_connection(host.control)
        return self

    def write(self, data):
        self.writer.write(data)

    async def answer(self):
        """The next line; None at the end."""
        line = await asyncio.wait_for(self.reader.readline(), PATIENCE)
        return json.loads(line) if line else None

    async def ask(self, method, params=None):
        self.write(json.dumps({"id": 1, "method": method, "params": params or {}}).encode() + b"\n")
        return await self.answer()


async def eventually(condition, what, timeout=None):
    """For what no event tells: look again until it holds. `condition` may be a coroutine function."""
    deadline = time.monotonic() + (PATIENCE if timeout is None else timeout)
    while True:
        result = condition()
        result = await result if asyncio.iscoroutine(result) else result
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.02)


def equal(found, expected, what=""):
    assert found == expected, f"{what + ': ' if what else ''}{found!r}, expected {expected!r}"


def private_folder(name):
    """A folder whose parents only its owner may write to, which modules have to lie in: not the system's for
    temporary files."""
    path = os.path.join(ROOT, ".build", "end-to-end", f"{os.getpid()}-{name}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path, 0o755)
    return path


async def compile_module(folder, name, source):
    """Make a module from C, in a folder that modules may lie in."""
    path = os.path.join(folder, f"libmeshhost-{name}.so")
    headers = os.path.join(ROOT, "Sources", "CTransportABI", "include")
    child = await asyncio.create_subprocess_exec(
        "gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", headers, "-x", "c", "-", "-o", path,
        stdin=asyncio.subprocess.PIPE)
    await child.communicate(source.encode())
    equal(child.returncode, 0, f"gcc for {name}")
    os.chmod(path, 0o755)
