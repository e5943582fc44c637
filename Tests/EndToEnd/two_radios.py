# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Clients that people use, on radios that do what MeshCore radios do."""
import asyncio

from harness import PATIENCE
from host import Host, equal, share, tcp
from meshcore import EventType
from meshcore_cli import meshcore_cli
from patient_meshcore import connect


async def _two_radios(rig):
    radios = await rig.radios("--count", 2)
    host = Host(rig)
    host.configure(tcp("roof", radios.ports[0]), tcp("yard", radios.ports[1]), share("roof"), share("yard"))
    await host.start()
    await host.ready("roof", "yard")
    return radios, host


async def _reader(port):
    """A meshcore_py client that fetches messages: the client and a queue of what it read."""
    client = await connect(port)
    read = asyncio.Queue()

    async def received(event):
        read.put_nowait(event.payload)
    client.subscribe(EventType.CONTACT_MSG_RECV, received)
    await client.start_auto_message_fetching()
    return client, read


async def a_message_through_one_share_is_read_through_the_other(rig):
    _, host = await _two_radios(rig)
    client, read = await _reader(await host.address("yard"))
    rig.closers.append(client.disconnect)
    told = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", await host.address("roof"),
                              "msg", "Radio 1", "over the hill", "wait_ack")
    assert any(isinstance(each, dict) and each.get("trip_time") for each in told), f"no acknowledgement: {told}"
    message = await asyncio.wait_for(read.get(), PATIENCE)
    equal(message["text"], "over the hill", "what radio 2 read")


async def clients_of_one_radio_do_not_throw_each_other_out(rig):
    radios, host = await _two_radios(rig)
    port = await host.address("roof")
    client, read = await _reader(port)
    rig.closers.append(client.disconnect)
    for _ in range(3):
        (infos, *_) = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "infos")
        equal(infos["name"], "Radio 0")
    await radios.command("say 1 0 still there")
    equal((await asyncio.wait_for(read.get(), PATIENCE))["text"], "still there")
