# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Links that go and come back, and links that nobody wants."""
import asyncio
import os
import random

from breaker import POINTS, Breaker
from companion import APP_START, AWAY, GET_STATS, GET_TIME, Client
from harness import PATIENCE
from host import Host, equal, eventually, mock, share, tcp, unix_share

RESTARTS = int(os.environ.get("MESHHOST_RESTARTS", "50"))
NO_END = 10 ** 9


async def _behind_a_breaker(rig, *more):
    """A fast radio `roof` whose server can be broken, with a share."""
    radio = await rig.burst("--quiet")
    breaker = await Breaker(radio.port).serve()
    rig.closers.append(breaker.close)
    host = Host(rig)
    host.configure(tcp("roof", breaker.port), share("roof"), *more)
    return radio, breaker, host


async def _restart(rig, host, breaker, load, point):
    """Stop the radio's server at this point, start it again, and wait until the link is ready."""
    if point == "idle":
        await load.command("finish")
        await load.event("idle")
    if point in POINTS[:2]:                       # of the handshake, so a new one has to begin
        breaker.stop()
        breaker.arm(point)
        await breaker.serve()
    else:
        breaker.arm(point)
    await asyncio.wait_for(breaker.broken.wait(), PATIENCE)
    host.events.mark()
    await breaker.serve()
    await host.ready("roof")
    if point == "idle":
        await load.command(f"rounds {NO_END}")
    right = (await load.command("status"))["right"]

    async def some_answers():
        return (await load.command("status"))["right"] >= right + 30
    await eventually(some_answers, "right answers after the restart")


async def a_radio_that_restarts_at_any_point_is_ready_again_each_time(rig):
    seed = int(os.environ.get("MESHHOST_SEED", random.randrange(1 << 32)))
    rig.note(f"MESHHOST_SEED={seed}")
    chance = random.Random(seed)
    _, breaker, host = await _behind_a_breaker(rig)
    await host.start()
    await host.ready("roof")
    address = await host.address("roof")
    quiet = await Client.connect(address)
    equal((await quiet.ask(APP_START))[0], 5, "answer to APP_START")
    load = await rig.load(address, "--interactive", "--clients", 3, "--ask", "path", "--timeout", 3600)
    await load.event("connected")
    await load.command(f"rounds {NO_END}")

    await _restart(rig, host, breaker, load, "mid-frame")       # everything that is made once has been made
    before = (host.descriptors(), host.threads())
    for number in range(RESTARTS):
        # Each point at least once, whatever the seed.
        point = POINTS[number] if number < len(POINTS) else chance.choice(POINTS)
        try:
            await _restart(rig, host, breaker, load, point)
        except Exception as error:
            raise AssertionError(f"restart {number} ({point}): {error}") from error
    await load.command("finish")
    await load.event("idle")                      # every question was answered, if only with an error
    await eventually(lambda: (host.descriptors(), host.threads()) == before, f"as many descriptors and threads as "
                     f"after the first restart, {before}; there are {(host.descriptors(), host.threads())}")

    equal((await quiet.ask(GET_TIME))[0], 9, "the quiet client's answer to GET_TIME")
    equal(host.events.count("client.leave"), 0, "clients that left before they were told to")
    load.child.stdin.write(b"end\n")
    result = await load.event("result")
    rig.note(f"{result['answered']} answers, {result['errors']} of them errors, over {RESTARTS} restarts")
    equal({key: result[key] for key in ("closed", "foreign", "wrong", "noise")},
          {"closed": 0, "foreign": 0, "wrong": 0, "noise": 0})
    equal((await host.devices())["roof"]["state"], "ready")


async def a_companion_radio_that_restarts_is_ready_again(rig):
    radios = await rig.radios("--count", 1)
    host = Host(rig)
    host.configure(tcp("roof", radios.ports[0]), share("roof"))
    await host.start()
    await host.ready("roof")
    client = await Client.connect(await host.address("roof"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    for number in range(5):
        await radios.command("drop 0")
        await host.events.event("link.down", device="roof")
        equal(await client.ask(GET_STATS), AWAY, "answer while the radio is away")
        await radios.command("serve 0")
        await host.ready("roof")
        equal((await client.ask(GET_STATS))[0], 24, f"answer after restart {number}")


async def while_the_radio_is_away_clients_get_errors_and_stay(rig):
    path = rig.path("roof.sock")
    _, breaker, host = await _behind_a_breaker(rig, unix_share("roof", path))
    await host.start()
    await host.ready("roof")
    clients = [await Client.connect(await host.address("roof")), await Client.connect(path)]
    for client in clients:
        equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    breaker.stop()
    await host.events.event("link.down", device="roof")
    for client in clients:
        equal(await client.ask(GET_STATS), AWAY, "answer while the radio is away")
        equal(await client.ask(b"\x1f\x07"), AWAY, "answer about a channel that nobody has asked for yet")
        equal((await client.ask(APP_START))[0], 5, "answer from memory")
    late = await Client.connect(path)             # clients may also come while it is away
    equal((await late.ask(APP_START))[0], 5, "answer to a newcomer")
    equal(await late.ask(GET_STATS), AWAY, "answer to a newcomer")
    await breaker.serve()
    await host.ready("roof")
    for client in (*clients, late):
        equal((await client.ask(GET_STATS))[:2], b"\x18\x01", "answer when the radio is back")
        reply = await client.ask(b"\x1f\x07")
        equal(reply[:2], b"\x12\x07", "answer when the radio is back")


async def a_disconnect_while_a_retry_is_scheduled_holds(rig):
    _, breaker, host = await _behind_a_breaker(rig)
    yard = await Breaker((await rig.burst("--quiet")).port).serve()     # its retries tell that time has passed
    rig.closers.append(yard.close)
    host.configure(tcp("roof", breaker.port), tcp("yard", yard.port))
    await host.start()
    await host.ready("roof", "yard")

    async def retries_pass():
        """Longer than any retry of `roof` could have been scheduled for."""
        yard.stop()
        host.events.mark()
        for _ in range(12):
            await host.events.event("link.connecting", device="yard")
        await yard.serve()
        await host.ready("yard")

    breaker.stop()
    await host.events.event("link.waiting", device="roof")
    document = await host.json("device", "roof", "disconnect")
    equal(document["device"]["intent"], "disconnect")
    accepted = breaker.accepted
    await breaker.serve()
    await retries_pass()
    equal(breaker.accepted, accepted, "connections after the disconnect")

    equal(await host.stop(), 0, "status of the daemon")
    await host.start()
    await host.ready("yard")
    await retries_pass()
    equal(breaker.accepted, accepted, "connections after the daemon's restart")
    roof = (await host.devices())["roof"]
    equal((roof["state"], roof["intent"]), ("disconnected", "disconnect"))

    equal((await host.json("device", "roof", "connect"))["device"]["intent"], "connect")
    await host.ready("roof")
    equal(breaker.accepted, accepted + 1, "connections after connect")


async def a_disconnect_of_a_link_that_is_up_ends_it_and_tells_clients(rig):
    _, breaker, host = await _behind_a_breaker(rig)
    await host.start()
    await host.ready("roof")
    client = await Client.connect(await host.address("roof"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    await host.json("device", "roof", "disconnect")
    await host.events.event("link.down", device="roof")
    equal(await client.ask(GET_STATS), AWAY, "answer without a link")
    await host.json("device", "roof", "connect")
    await host.ready("roof")
    equal((await client.ask(GET_STATS))[0], 24, "answer with a link")
    await host.json("device", "roof", "reconnect")
    await host.events.event("link.down", device="roof")
    await host.ready("roof")
    equal(breaker.accepted, 3, "connections")


async def a_release_leaves_the_radio_to_others(rig):
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port))
    await host.start()
    await host.ready("roof")
    equal((await host.json("device", "roof", "release"))["device"]["intent"], "release")
    await radio.event("lost")
    phone = await rig.load(radio.port, "--rounds", 100)
    await phone.event("result", ok=True)
    await host.json("device", "roof", "connect")
    await host.ready("roof")


async def a_mock_radio_tells_adverts_and_messages(rig):
    host = Host(rig)
    host.configure(mock("bench", seed=7, advert_interval="50ms", message_interval="70ms"), share("bench"))
    await host.start()
    await host.ready("bench")
    await host.events.event("advert", device="bench")
    await host.events.event("message.waiting", device="bench")
