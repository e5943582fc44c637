# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Many clients on one radio: what each gets, and what one cannot do to the others."""
from companion import APP_START, GET_BATTERY, GET_TIME, Client
from host import Host, equal, eventually, share, tcp, unix_share

MEGABYTE = 1 << 20
PUSHES = 100_000
# A reader that waits for processor time loses nothing and is not cut.
ROOM = {"queue_frames": 65536, "queue_bytes": 16 * MEGABYTE}


async def _shared(rig, **keys):
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port), share("roof", **{**ROOM, **keys}))
    await host.start()
    await host.ready("roof")
    return radio, host, await host.address("roof")


async def every_reply_reaches_its_asker_and_only_its_asker(rig):
    radio, _, address = await _shared(rig)
    load = await rig.load(address, "--clients", 2, "--ask", "mix", "--rounds", 10_000, "--timeout", 300)
    await load.event("connected")
    await radio.command("pace 20000 60 2000 5")   # pushes between the replies
    result = await load.event("result", timeout=300)
    assert result["ok"], result
    equal((result["answered"], result["foreign"], result["errors"]), (20_000, 0, 0), "answered, foreign, errors")


async def a_client_that_never_reads_delays_nobody_and_is_cut(rig):
    radio, host, address = await _shared(rig, queue_frames=16384, queue_bytes=MEGABYTE, stuck_timeout="30s")
    load = await rig.load(address, "--clients", 7, "--stuck", "--interactive", "--timeout", 600)
    await load.event("connected")
    await host.events.until(lambda: host.events.count("client.join") == 8, "eight clients")
    memory = host.memory()

    # Until frames wait for the stuck client in the host: it takes no more, and is not cut yet.
    sent, stuck = 0, None
    while stuck is None:
        await radio.command("burst 1000 100")
        sent += 1000
        await load.command(f"expect {sent}")
        await load.event("reached", pushes=sent)
        stuck = next((each for each in (await host.clients())["clients"] if each["queue_frames"] > 0), None)
    # And all the same the others have had everything that was sent.
    equal(host.events.count("client.leave"), 0, "clients that left")
    rig.note(f"{stuck['queue_frames']} frames wait for the stuck client after {sent} pushes")

    # Their answers do not wait for it, either: it takes nothing while these are answered.
    await load.command("rounds 100")
    await load.command("finish")
    await load.event("idle")
    assert any(each["id"] == stuck["id"] for each in (await host.clients())["clients"]), "cut too early"

    # In portions, each waited for: a reader is never behind by more than there is room for.
    while sent < PUSHES:
        portion = min(PUSHES - sent, 2000)
        await radio.command(f"pace {portion} 100 2000 20")
        sent += portion
        await load.command(f"expect {sent}")
        await load.event("reached", pushes=sent)
    left = await host.events.event("client.leave")
    equal(left["data"]["reason"], "stuck", f"reason in {left}")
    document = await host.clients()
    equal(sum(document["cut"].values()), 1, f"counted cuts {document['cut']}")
    equal(document["cut"]["stuck"], 1)
    equal(len(document["clients"]), 7, "clients that stay")
    equal(sum(each["dropped"] for each in document["clients"]), 0, "frames dropped for those who stay")
    grown = host.memory() - memory
    assert grown < 16 * MEGABYTE, f"the daemon has grown by {grown} bytes"

    load.child.stdin.write(b"end\n")
    result = await load.event("result")
    equal({key: result[key] for key in ("first", "fewest", "most", "gaps", "noise", "closed", "foreign")},
          {"first": 0, "fewest": PUSHES, "most": PUSHES, "gaps": 0, "noise": 0, "closed": 0, "foreign": 0})
    rig.note(f"pushes took {result['push']['median_us']} µs at the median, {result['push']['p99_us']} µs at p99; memory "
             f"grew by {grown // 1024} kB")


async def a_client_that_takes_nothing_for_too_long_is_cut_as_stuck(rig):
    radio, host, address = await _shared(rig, stuck_timeout="2s")
    load = await rig.load(address, "--stuck", "--interactive", "--timeout", 300)
    await load.event("connected")
    sent = 0
    while not host.events.count("client.leave"):
        await radio.command("burst 500 100")
        sent += 500
        await load.command(f"expect {sent}")
        await load.event("reached", pushes=sent)
    (left,) = host.events.all("client.leave")
    equal(left["data"]["reason"], "stuck")
    equal((await host.clients())["cut"]["stuck"], 1)


async def no_more_clients_than_allowed(rig):
    _, host, address = await _shared(rig, max_clients=2)
    first, second = await Client.connect(address), await Client.connect(address)
    equal((await first.ask(APP_START))[0], 5)
    equal((await second.ask(APP_START))[0], 5)
    await (await Client.connect(address)).ended()
    equal((await first.ask(GET_TIME))[0], 9, "the first client's answer")
    await second.close()
    await host.events.event("client.leave", where=lambda each: each["data"]["reason"] == "closed")
    equal((await (await Client.connect(address)).ask(GET_TIME))[0], 9, "answer to a client in the free place")


async def broken_frames_of_a_client_hurt_nobody(rig):
    radio, _, address = await _shared(rig)
    good, bad = await Client.connect(address), await Client.connect(address)
    equal((await good.ask(APP_START))[0], 5)
    bad.writer.write(b"GET / HTTP/1.1\r\n\r\n" + b"<\x00\x00" + b"<\xff\xff" + b"<\xb1\x00" + b"<\x01")
    equal((await good.ask(GET_BATTERY))[0], 12, "the good client's answer")
    other = await Client.connect(address)
    other.writer.write(b"noise" + b"<\x02\x00\x1f\x09")
    while (reply := await other.frame())[0] >= 0x80:
        pass
    equal(reply[:2], b"\x12\x09", "answer behind noise")
    equal((await radio.command("status"))["noise"], 0, "noise that reached the radio")


async def tcp_and_unix_clients_share_one_radio(rig):
    radio = await rig.burst()
    path = rig.path("roof.sock")
    host = Host(rig)
    host.configure(tcp("roof", radio.port), share("roof", **ROOM), unix_share("roof", path, **ROOM))
    await host.start()
    await host.ready("roof")
    loads = [await rig.load(await host.address("roof"), "--expect", 1000, "--rounds", 200, "--ask", "path"),
             await rig.load(f"unix:{path}", "--expect", 1000, "--rounds", 200, "--ask", "path")]
    for load in loads:
        await load.event("connected")
    await radio.command("pace 1000 80 1000 5")
    for load in loads:
        result = await load.event("result")
        assert result["ok"], result


async def clients_are_told_and_counted(rig):
    _, host, address = await _shared(rig)
    client = await Client.connect(address)
    joined = await host.events.event("client.join", device="roof")
    for _ in range(3):
        await client.ask(GET_TIME)
    (row,) = await eventually(lambda: _rows(host), "one client")
    equal((row["device"], row["frames_in"], row["frames_out"], row["dropped"]), ("roof", 3, 3, 0))
    assert str(row["id"]) in str(joined["data"]), f"{joined} and {row} do not name the same client"
    await client.close()
    left = await host.events.event("client.leave", device="roof")
    equal(left["data"]["reason"], "closed")
    equal((await host.clients())["clients"], [])


async def _rows(host):
    return (await host.clients())["clients"]
