# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""How the daemon starts, ends, and lives with its service manager."""
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sqlite3

from companion import APP_START, GET_TIME, Client
from harness import PATIENCE
from host import Host, equal, eventually, mock, share, tcp, unix_share


async def _running(rig, env=None, **keys):
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port), share("roof", **keys), unix_share("roof", rig.path("roof.sock")))
    await host.start(env=env)
    return radio, host


async def ready_is_told_when_the_listeners_are_bound(rig):
    host = Host(rig)
    # Nothing answers there: the listeners do not wait for the radio.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host.configure(tcp("roof", taken.getsockname()[1]), share("roof"), unix_share("roof", rig.path("roof.sock")))
        await host.start()
        for address in (await host.address("roof"), rig.path("roof.sock")):
            await (await Client.connect(address)).close()
    equal(host.events.count("share.listening"), 2, "share.listening events")


async def the_watchdog_is_fed(rig):
    _, host = await _running(rig, env={"WATCHDOG_USEC": "400000"})
    await host.notified("WATCHDOG=1", 4)


async def a_watchdog_that_is_meant_for_another_process_is_not_fed(rig):
    _, host = await _running(rig, env={"WATCHDOG_USEC": "40000", "WATCHDOG_PID": str(os.getpid())})
    await host.ready("roof")
    assert not any(each.startswith("WATCHDOG=1") for each in host.notify.messages), host.notify.messages


async def sigterm_tells_clients_and_ends_with_0(rig):
    radio, host = await _running(rig)
    await host.ready("roof")
    clients = [await Client.connect(await host.address("roof")), await Client.connect(rig.path("roof.sock"))]
    for client in clients:
        equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    listening = await host.listen("--type", "client")
    host.process.kill(signal.SIGTERM)
    for client in clients:
        await asyncio.wait_for(client.ended(), PATIENCE)
    equal(await host.process.ended(), 0, "status")
    assert any(each.startswith("STOPPING=1") for each in host.notify.messages), host.notify.messages
    await radio.event("lost")
    equal(await listening.ended(), 0, "status of a listener whose daemon stops")
    assert not os.path.exists(rig.path("roof.sock")) and not os.path.exists(host.control), "sockets are left"


async def sigterm_does_not_wait_for_a_client_that_never_reads(rig):
    radio, host = await _running(rig, queue_frames=16384, queue_bytes=1 << 20, stuck_timeout="1h")
    await host.ready("roof")
    load = await rig.load(await host.address("roof"), "--stuck", "--interactive")
    await load.event("connected")
    sent = 0
    while not any(each["queue_frames"] for each in (await host.clients())["clients"]):
        await radio.command("burst 1000 100")
        sent += 1000
        await load.command(f"expect {sent}")
        await load.event("reached", pushes=sent)
    host.process.kill(signal.SIGTERM)
    equal(await host.process.ended(), 0, "status")


async def sighup_does_not_end_a_daemon_that_is_stopping(rig):
    _, host = await _running(rig)
    await host.ready("roof")
    client = await Client.connect(await host.address("roof"))
    with contextlib.closing(sqlite3.connect(os.path.join(host.state, "journal.db"), isolation_level=None)) as journal:
        journal.execute("BEGIN IMMEDIATE")
        # Its place in the messages cannot be stored, and the daemon does not end before it has tried.
        client.send(APP_START)
        await host.notified("STATUS=1/1 devices ready, 1 clients")
        host.process.kill(signal.SIGTERM)
        await host.notified("STOPPING=1")
        host.process.kill(signal.SIGHUP)
    equal(await host.process.ended(), 0, "status")


async def a_second_daemon_on_the_same_state_is_refused(rig):
    radio, host = await _running(rig)
    await host.ready("roof")
    first = host.process
    second = await rig.start("second", host.binary, "run", "--config", host.config,
                             env=host.environment())
    equal(await second.ended(), 69, "status of the second")
    assert any(host.state in line for line in second.errors), second.errors
    equal(first.child.returncode, None, "the first runs on")
    equal((await (await Client.connect(rig.path("roof.sock"))).ask(APP_START))[0], 5)
    equal((await radio.command("status"))["accepted"], 1, "connections of the radio")


async def after_kill_9_the_daemon_starts_again(rig):
    _, host = await _running(rig)
    await host.ready("roof")
    await host.json("device", "roof", "disconnect")
    host.process.kill(signal.SIGKILL)
    await host.process.ended()
    assert os.path.exists(rig.path("roof.sock")) and os.path.exists(host.control), "nothing is stale to be replaced"
    await host.start()
    equal((await host.devices())["roof"]["intent"], "disconnect", "what was stored before the end")
    await host.json("device", "roof", "connect")
    await host.ready("roof")
    equal((await (await Client.connect(rig.path("roof.sock"))).ask(GET_TIME))[0], 9)


async def a_file_in_the_place_of_a_socket_is_not_deleted(rig):
    path = rig.path("roof.sock")
    with open(path, "w", encoding="utf-8") as file:
        file.write("precious")
    host = Host(rig)
    host.configure(mock("bench"), unix_share("bench", path))
    process = await host.spawn()
    equal(await process.ended(), 78, "status")
    assert any(path in line for line in process.errors), process.errors
    with open(path, encoding="utf-8") as file:
        equal(file.read(), "precious")


async def a_port_that_is_taken_is_named(rig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        host = Host(rig)
        host.configure(mock("bench"), share("bench", listen=address))
        process = await host.spawn()
        equal(await process.ended(), 69, "status")
        assert any(address in line for line in process.errors), process.errors


async def a_state_folder_that_cannot_be_made_is_named(rig):
    host = Host(rig)
    with open(rig.path("file"), "w", encoding="utf-8"):
        host.state = rig.path("file/state")
    host.configure(mock("bench"))
    process = await host.spawn()
    equal(await process.ended(), 78, "status")
    assert any(host.state in line for line in process.errors), process.errors


async def a_log_that_nobody_reads_stops_nothing(rig):
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port), unix_share("roof", rig.path("roof.sock")))
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    # Full: not one record finds room.
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 512)
    os.set_blocking(writing, True)
    daemon = await asyncio.create_subprocess_exec(
        host.binary, "run", "--config", host.config, stderr=writing, env={**os.environ, **host.environment()})
    try:
        await eventually(lambda: os.path.exists(host.control), "the control socket")
        for _ in range(20):
            await host.json("device", "roof", "reconnect")
        await eventually(lambda: _ready(host), "the radio is ready")
        equal((await (await Client.connect(rig.path("roof.sock"))).ask(GET_TIME))[0], 9)
        assert os.get_blocking(writing), "what others share was set non-blocking"
        daemon.terminate()
        equal(await asyncio.wait_for(daemon.wait(), PATIENCE), 0, "status")
    finally:
        with contextlib.suppress(ProcessLookupError):
            daemon.kill()
        os.close(reading)
        os.close(writing)


async def _ready(host):
    return (await host.devices())["roof"]["state"] == "ready"


async def closed_standard_descriptors_are_replaced(rig):
    host = Host(rig)
    host.configure(mock("bench"), share("bench"))
    daemon = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', host.binary, "run", "--config", host.config,
        env={**os.environ, **host.environment()})
    try:
        await eventually(lambda: os.path.exists(host.control), "the control socket")
        for number in range(3):
            equal(os.readlink(f"/proc/{daemon.pid}/fd/{number}"), "/dev/null", f"descriptor {number}")
        status, _, _ = await host.shell('"$0" devices >&-')
        equal(status, 0, "status of the command line without standard output")
        daemon.terminate()
        equal(await asyncio.wait_for(daemon.wait(), PATIENCE), 0, "status")
    finally:
        with contextlib.suppress(ProcessLookupError):
            daemon.kill()


async def a_signal_while_the_daemon_starts_ends_it_in_order(rig):
    host = Host(rig)
    # The share's name takes its time, or has no address at once: either way the end is orderly.
    host.configure(mock("bench"), unix_share("bench", rig.path("bench.sock")),
                   share("bench", listen="slow.meshhost.invalid:5055", insecure=True))
    process = await host.spawn()
    process.kill(signal.SIGTERM)
    status = await process.ended()
    assert status in (0, 69, -signal.SIGTERM), f"status {status}"
    assert not os.path.exists(rig.path("bench.sock")), "a socket is left"


async def a_socket_whose_owner_accepts_nobody_is_in_use(rig):
    path = rig.path("full.sock")
    waiting = []
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(path)
        owner.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(path)
        host = Host(rig)
        host.configure(mock("bench"), unix_share("bench", path))
        process = await host.spawn()
        equal(await process.ended(), 69, "status")
        assert any(path in line and "in use" in line for line in process.errors), process.errors
    for each in waiting:
        each.close()


async def a_missing_folder_of_a_socket_is_named(rig):
    host = Host(rig)
    host.configure(mock("bench"), unix_share("bench", rig.path("none/roof.sock")))
    process = await host.spawn()
    equal(await process.ended(), 78, "status")
    assert any("does not exist" in line for line in process.errors), process.errors
