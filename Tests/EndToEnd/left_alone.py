# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What a daemon that nobody looks after tells of itself, what goes on meanwhile, and that it mends by itself."""
import asyncio
import os
import resource
import socket

from companion import GET_TIME, Client, text
from host import Host, equal, eventually, mock, share, unix_share
from worlds import Simulated, without_sender

MESSAGE_WAITING = 0x83


def _limit(host, kind, soft):
    """Another soft limit for the daemon; the one before."""
    before, hard = resource.prlimit(host.pid, kind)
    resource.prlimit(host.pid, kind, (soft, hard))
    return before


async def _troubles(host, status=69):
    """What `status` says is wrong, by what it is about."""
    return {each["about"]: each for each in (await host.json("status", status=status))["troubles"]}


async def _about(host, what, event="daemon.trouble"):
    return (await host.events.event(event, where=lambda each: each["data"]["about"] == what))["data"]


async def status_is_content_when_all_is_well(rig):
    host = Host(rig)
    host.configure(mock("bench"), share("bench"))
    await host.start()
    await host.ready("bench")
    document = await host.json("status")
    equal((document["devices"], document["devices_ready"], document["clients"], document["troubles"]), (1, 1, 0, []))
    # The question itself takes some.
    assert abs(document["descriptors"]["open"] - host.descriptors()) <= 4, document
    soft, hard = resource.prlimit(host.pid, resource.RLIMIT_NOFILE)
    equal(soft, hard, "raised at the start")
    equal(document["descriptors"]["limit"], None if hard == resource.RLIM_INFINITY else hard)
    status, out, _ = await host.cli("status")
    equal(status, 0)
    assert "1/1 devices ready, 0 clients" in out, out
    equal((await host.cli("status", "--quiet"))[:2], (0, ""))


async def a_journal_that_cannot_be_written_is_told_of_and_loses_nothing(rig):
    world = await Simulated(rig).start()
    host = world.host
    phone = await world.client("phone")
    before = _limit(host, resource.RLIMIT_FSIZE, 0)       # as on a full disk: no file may grow
    texts = await world.arrive(3)
    told = await _about(host, "journal")
    equal(told["code"], "storage.failed")
    assert "free some space" in told["message"], told
    equal((await _troubles(host))["journal"]["message"], told["message"])
    document = await host.json("doctor", "--config", host.config, status=69)
    found = [each for each in document["findings"] if each["subject"] == "journal"]
    equal([each["severity"] for each in found], ["problem"])
    await host.notify.message("STATUS=1/1 devices ready, 2 clients; journal: ")
    # Everything else goes on, for those who come now, too.
    equal((await phone.ask(GET_TIME))[0], 9)
    late = await world.client("late")
    equal((await late.ask(GET_TIME))[0], 9)
    _limit(host, resource.RLIMIT_FSIZE, before)
    assert (await _about(host, "journal", "daemon.recovered"))["after_ms"] >= 0
    await world.journalled(3)
    for client in (phone, late):
        await client.push(MESSAGE_WAITING)
        equal([without_sender(text(each)) for each in await client.mail()], texts, "messages")
    equal(await _troubles(host, status=0), {})
    equal(host.events.count("daemon.trouble"), 1, "told once")


async def a_damaged_journal_is_shown_until_the_next_start(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    os.mkdir(host.state, 0o700)
    with open(os.path.join(host.state, "journal.db"), "wb") as file:
        file.write(b"this was a journal once, " * 400)
    await host.start()
    told = await _about(host, "journal", "daemon.loss")
    assert os.path.exists(told["kept_as"]), told
    shown = (await _troubles(host, status=0))["journal"]
    equal((shown["past"], shown["message"]), (True, told["message"]))
    document = await host.json("doctor", "--config", host.config)
    equal([each["severity"] for each in document["findings"] if each["subject"] == "journal"], ["note"])
    equal(await host.stop(), 0)
    await host.start()
    equal(await _troubles(host, status=0), {})


def _leave_free(host, count):
    """The daemon may have so many descriptors more than it has; its limit before."""
    taken = {int(each) for each in os.listdir(f"/proc/{host.pid}/fd")}
    limit = 0
    while count > 0:
        count -= limit not in taken
        limit += 1
    return _limit(host, resource.RLIMIT_NOFILE, limit)


def _processor_time(host):
    """Seconds."""
    with open(f"/proc/{host.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def without_descriptors_clients_are_turned_away_and_the_operator_is_served(rig):
    host = Host(rig)
    host.configure(mock("bench"), share("bench", max_clients=900))
    await host.start()
    await host.ready("bench")
    port = await host.address("bench")
    first = await Client.connect(port)
    equal((await first.ask(GET_TIME))[0], 9)
    before = _leave_free(host, 4)
    clients = []
    while True:
        clients.append(await Client.connect(port))
        clients[-1].send(GET_TIME)
        if await clients[-1].frame() is None:
            break
        assert len(clients) < 800, "descriptors never end"
    told = await _about(host, "descriptors")
    equal(told["code"], "resource.exhausted")
    assert "LimitNOFILE" in told["message"], told
    for _ in range(3):
        client = await Client.connect(port)
        equal(await client.frame(), None, "one who is turned away sees the end at once")
    equal((await first.ask(GET_TIME))[0], 9)
    # Not only once: what an answer has taken of the reserve goes back to it, whoever knocks meanwhile.
    for _ in range(10):
        document = await host.json("status", status=69)
        equal(await (await Client.connect(port)).frame(), None, "one who comes behind the operator")
    assert document["descriptors"]["turned_away"] >= 3, document
    equal([each["about"] for each in document["troubles"]], ["descriptors"])
    equal(set(await host.devices()), {"bench"})
    # Nobody knocks: nothing is to be done.
    begin, time = _processor_time(host), asyncio.get_running_loop().time()
    await asyncio.sleep(1)
    used, passed = _processor_time(host) - begin, asyncio.get_running_loop().time() - time
    assert used < passed / 2, f"busy for {used} s of {passed} s"
    _limit(host, resource.RLIMIT_NOFILE, before)
    recovered = await _about(host, "descriptors", "daemon.recovered")
    assert recovered["turned_away"] >= 3, recovered
    equal((await (await Client.connect(port)).ask(GET_TIME))[0], 9)
    equal(await _troubles(host, status=0), {})
    equal(host.events.count("daemon.trouble"), 1, "told once")


async def a_socket_file_that_is_removed_comes_back(rig):
    host, path = Host(rig), rig.path("bench.sock")
    host.configure(mock("bench"), unix_share("bench", path))
    await host.start()
    await host.ready("bench")
    client = await Client.connect(path)
    for gone in (host.control, path):
        for _ in range(2):
            os.unlink(gone)
            equal((await _about(host, "socket"))["subject"], gone)
            equal((await _about(host, "socket", "daemon.recovered"))["subject"], gone)
            equal(os.stat(gone).st_mode & 0o777, 0o660, "mode")
            equal(set(await host.devices()), {"bench"})
            equal((await (await Client.connect(path)).ask(GET_TIME))[0], 9)
    equal((await client.ask(GET_TIME))[0], 9, "the client of before")
    equal(await host.stop(), 0)
    assert not os.path.exists(path) and not os.path.exists(host.control), "files are left"


async def a_socket_file_of_another_program_is_not_taken_from_it(rig):
    host, path = Host(rig), rig.path("bench.sock")
    host.configure(mock("bench"), unix_share("bench", path))
    await host.start()
    with socket.socket(socket.AF_UNIX) as other:
        os.unlink(path)
        other.bind(path)
        other.listen()
        mine = os.stat(path).st_ino
        equal((await _about(host, "socket"))["subject"], path)

        async def is_known():
            return "another process listens" in (await _troubles(host))["socket"]["message"]

        await eventually(is_known, "that somebody else listens there")
        other.accept()[0].close()                         # it was asked whether it does
        equal(os.stat(path).st_ino, mine, "whose file it is")
    # Its file is still there, and nobody listens on it.
    await _about(host, "socket", "daemon.recovered")
    equal((await (await Client.connect(path)).ask(GET_TIME))[0], 9)
    equal(await _troubles(host, status=0), {})
