# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Starts programs, waits for their events, tells them commands, and ends them again; counts PASS and FAIL."""
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
import traceback

RIGS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(RIGS))
BURST = os.path.join(ROOT, ".build", "rigs")     # where the rigs in C are built to

# How long anything may take before a test gives up. It decides nothing but when a failure is told.
PATIENCE = float(os.environ.get("RIG_PATIENCE", "60"))


class Died(RuntimeError):
    pass


class Process:
    """A child whose standard output is JSON lines (other lines are kept as {"ev": "text"}).

    `key` is the member that names an event: `ev` for rigs, `type` for `meshhost listen`.
    """

    def __init__(self, name, child, key="ev"):
        self.name, self.child, self.key = name, child, key
        self.events, self.seen = [], 0
        self.errors = []
        self.changed = asyncio.Condition()
        self.tasks = [asyncio.ensure_future(self._read_events()), asyncio.ensure_future(self._read_errors())]

    @property
    def pid(self):
        return self.child.pid

    async def _told(self):
        async with self.changed:
            self.changed.notify_all()

    async def _read_events(self):
        async for line in self.child.stdout:
            line = line.decode(errors="replace").rstrip()
            try:
                item = json.loads(line)
                if not isinstance(item, dict):
                    raise ValueError
            except ValueError:
                item = {self.key: "text", "text": line}
            self.events.append(item)
            await self._told()
        await self._told()

    async def _read_errors(self):
        async for line in self.child.stderr:
            self.errors.append(line.decode(errors="replace").rstrip())
            await self._told()
        await self._told()

    async def until(self, condition, what, timeout=None):
        """Wait until `condition()` gives something; it is looked at again whenever the child printed a line."""
        timeout = PATIENCE if timeout is None else timeout
        deadline = time.monotonic() + timeout
        async with self.changed:
            while not (value := condition()):
                if all(task.done() for task in self.tasks):
                    raise Died(f"{self.name} ended before {what}; its last words: {self.errors[-5:]}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.name}: no {what} within {timeout} s; last events: {self.events[-3:]}, "
                                       f"last words: {self.errors[-3:]}")
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), left)
        return value

    def matches(self, item, name, where, fields):
        return (item.get(self.key) == name and all(item.get(k) == v for k, v in fields.items())
                and (where is None or where(item)))

    def find(self, name, since=0, where=None, **fields):
        return next((index for index in range(since, len(self.events))
                     if self.matches(self.events[index], name, where, fields)), None)

    def all(self, name, since=0, where=None, **fields):
        return [item for item in self.events[since:] if self.matches(item, name, where, fields)]

    def count(self, name, since=0, where=None, **fields):
        return len(self.all(name, since, where, **fields))

    async def event(self, name, timeout=None, where=None, **fields):
        """The next such event after the last one waited for."""
        def look():
            index = self.find(name, self.seen, where, **fields)
            return None if index is None else (index,)
        (index,) = await self.until(look, f"{name} {fields or ''}", timeout)
        self.seen = index + 1
        return self.events[index]

    def mark(self):
        """From here on `event` only looks at what comes later."""
        self.seen = len(self.events)
        return self.seen

    async def error_line(self, text, since=0, timeout=None):
        """The first line of standard error, from number `since` on, that holds `text`."""
        return await self.until(lambda: next((line for line in self.errors[since:] if text in line), None),
                                f"line with {text!r}", timeout)

    async def command(self, line, timeout=None):
        """Send one command line and return its answer."""
        mark = len(self.events)
        self.child.stdin.write(line.encode() + b"\n")
        await self.child.stdin.drain()
        answer = await self.until(lambda: next(iter(self.all("command", mark, cmd=line)), None), f"answer to {line!r}",
                                  timeout)
        if not answer["ok"]:
            raise RuntimeError(f"{self.name}: {line!r}: {answer['error']}")
        return answer

    def kill(self, number=signal.SIGKILL):
        # Not the child's own send_signal: it reaps a child that has just ended, and its status is lost.
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, number)

    async def ended(self, timeout=None):
        """Exit status, once the child has ended and all it printed was read."""
        status = await asyncio.wait_for(self.child.wait(), PATIENCE if timeout is None else timeout)
        await asyncio.wait(self.tasks, timeout=5)
        return status

    async def stop(self, how=signal.SIGTERM, patience=15):
        self.kill(how)
        try:
            await asyncio.wait_for(self.child.wait(), patience)
        except asyncio.TimeoutError:
            self.kill()
            await self.child.wait()
        await asyncio.wait(self.tasks, timeout=5)


class Rig:
    """A scratch folder and the children that live in it; leaving it ends and removes both."""

    async def __aenter__(self):
        # In the system's folder for such things: paths of Unix sockets must be short.
        self.scratch = tempfile.TemporaryDirectory(prefix="meshrig-")
        self.children = []
        self.closers = []                        # coroutine functions, called first
        return self

    async def __aexit__(self, *_):
        for close in reversed(self.closers):
            await close()
        for child in reversed(self.children):
            await child.stop()
        self.scratch.cleanup()

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    async def start(self, name, *command, env=None, key="ev"):
        """Start a program. One that ends in .py is found under the rigs and run by this interpreter."""
        command = [str(word) for word in command]
        if command[0].endswith(".py"):
            command = [sys.executable, os.path.join(RIGS, command[0]), *command[1:]]
        child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": self.scratch.name, **(env or {})}, limit=1 << 20)
        process = Process(name, child, key)
        self.children.append(process)
        return process

    async def radios(self, *options):
        """Radios and stations of openhop-core; `.ports` and `.keys` (by name) once they are up."""
        radios = await self.start("radios", "radios/radios.py", *options)
        await radios.event("ready")
        radios.ports = [item["port"] for item in radios.all("radio")]
        radios.keys = {item["name"]: item["public_key"] for item in radios.all("radio") + radios.all("station")}
        return radios

    async def burst(self, *options):
        """Fast radios that push numbered frames; `.ports` and, for the first, `.port`."""
        radio = await self.start("burst_radio", os.path.join(BURST, "burst_radio"), *options)
        radio.ports = (await radio.event("ready"))["ports"]
        radio.port = radio.ports[0]
        return radio

    async def load(self, address, *options):
        """Fast clients on `HOST:PORT`, a port of this machine, or `unix:PATH`."""
        address = f"127.0.0.1:{address}" if isinstance(address, int) else address
        return await self.start("load_client", os.path.join(BURST, "load_client"), "--connect", address, *options)


    async def bluez(self, *options, **more):
        """Radios in reach of bluetoothd on a bus of its own; see common/bluetooth.py."""
        from bluetooth import start_bluetooth            # which imports this file
        return await start_bluetooth(self, *options, **more)


class Report:
    """PASS and FAIL lines, and how many there were."""

    def __init__(self):
        self.passed = self.failed = 0
        self.start = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.start

    def note(self, text):
        print(f"  {text}", flush=True)

    def check(self, name, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'PASS' if good else 'FAIL'} {name}" + (f": {detail}" if detail != "" else ""), flush=True)
        return good

    def skip(self, name, why):
        print(f"SKIP {name}: {why}", flush=True)

    async def step(self, name, awaitable, timeout=PATIENCE, fails_with=None, show=repr):
        """Await something. It passes when it returns, or with `fails_with` when it raises an error that names that."""
        begin, value = time.monotonic(), None
        try:
            value = await asyncio.wait_for(awaitable, timeout)
            good, text = fails_with is None, show(value)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            good = fails_with is not None and fails_with in text
        self.check(f"{name} ({time.monotonic() - begin:.2f} s)", good, text[:160])
        return value

    async def test(self, name, awaitable, timeout=600):
        """A test: it passes when it returns."""
        begin = time.monotonic()
        try:
            await asyncio.wait_for(awaitable, timeout)
            self.check(f"{name} ({time.monotonic() - begin:.1f} s)", True)
        except Exception as error:
            frames = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)
                      if ROOT in f.filename]
            where = f" at {' < '.join(reversed(frames[-4:]))}" if frames else ""
            self.check(f"{name} ({time.monotonic() - begin:.1f} s)", False,
                       f"{type(error).__name__}: {error}{where}")

    def summary(self):
        print(f"took {self.seconds():.1f} s")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


def reserved_port():
    """A socket on a free port of this machine, which nobody else is given until it is closed. Whoever sets SO_REUSEADDR may
    listen on the port, again and again; in between connections to it are refused."""
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    return place


def run(main):
    """Run `main(report)` and leave, with 0 only if every check passed."""
    report = Report()

    async def guarded():
        try:
            await main(report)
        except Exception as error:
            report.check("ran to its end", False, f"{type(error).__name__}: {error}")
    asyncio.run(guarded())
    sys.exit(report.summary())


def chosen(name):
    """Whether a word on the command line is part of this name; without words everything is chosen."""
    return len(sys.argv) < 2 or any(word in name for word in sys.argv[1:])


async def build(source=None, *flags):
    """Build the rigs in C, or another program of one file; returns the folder they are in."""
    words = [source, *flags] if source else []
    child = await asyncio.create_subprocess_exec(os.path.join(RIGS, "burst", "build"), BURST, *words)
    if await child.wait():
        raise RuntimeError(f"{source or 'the rigs'} did not build")
    return BURST
