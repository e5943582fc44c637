# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Messages and bursts through the daemon, bluetoothd and the air."""
import asyncio

from harness import PATIENCE
from host import bluez, equal, tcp
from hosts import PIN, Pushes, start, stop
from meshcore_cli import meshcore_cli
from world import FREE, ROOF, YARD


async def messages_go_and_come_between_a_radio_on_bluetooth_and_one_on_tcp(rig, world):
    host = await start(rig, bluez("roof", ROOF, pin=PIN), tcp("line", world.radios.ports[1]))

    async def cli(name, *words):
        return await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", await host.address(name), *words,
                                  timeout=PATIENCE)
    (infos, *_) = await cli("roof", "infos")
    equal(infos["name"], "Radio 0")
    told = await cli("roof", "msg", "Radio 1", "through BLE", "wait_ack")
    assert any(isinstance(each, dict) and each.get("trip_time") for each in told), f"no acknowledgement: {told}"
    (received,) = await cli("line", "recv")
    equal(received["text"], "through BLE", "what radio 1 read")
    await world.radios.command("say 1 0 back through BLE")
    await host.events.event("message.direct", device="roof")
    (received,) = await cli("roof", "recv")
    equal(received["text"], "back through BLE", "what radio 0 read")
    await stop(host, world)


async def messages_that_waited_at_the_radio_come_once_each(rig, world):
    await world.radios.command("mail 0 1 100 kept")
    host = await start(rig, bluez("roof", ROOF, pin=PIN))
    events = host.events
    await events.until(lambda: events.count("message.direct") + events.count("message.channel") >= 100, "100 messages")
    texts = [each["data"]["text"].rpartition(": ")[2] for each in events.events
             if each["type"] in ("message.direct", "message.channel")]
    equal(texts, [f"kept {number}" for number in range(100)], "messages")
    await stop(host, world)


async def a_burst_arrives_complete_once_each_in_order(rig, world):
    host = await start(rig, bluez("yard", YARD, pin=PIN))
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    rig.note(f"500 in {await pushes.come(500):.1f} s")
    await pushes.end()
    await stop(host, world)


async def a_link_lives_through_a_scan(rig, world):
    host = await start(rig, bluez("yard", YARD, pin=PIN))
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    scan = asyncio.ensure_future(host.cli("scan", "--for", "5s", "--json"))
    for _ in range(5):
        await pushes.come(50)
    status, out, err = await scan
    equal(status, 0, err)
    assert ROOF in out and FREE in out, out
    await pushes.end()
    equal(host.events.count("link.down"), 0, "lost links")
    await stop(host, world)
