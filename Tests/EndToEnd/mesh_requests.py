# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Clients that ask the mesh at the same time: the radio has one place for such requests, and each client its own."""
import asyncio

from harness import PATIENCE
from host import equal
from meshcore import EventType
from patient_meshcore import connect
from worlds import OpenHop, Simulated

ROUNDS = 3
LOGIN, STATUS, TELEMETRY, BINARY, DISCOVERY, TRACE = 0x1a, 0x1b, 0x27, 0x32, 0x34, 0x24
ANSWERS = {LOGIN: 0x85, STATUS: 0x87, TELEMETRY: 0x8b, BINARY: 0x8c, DISCOVERY: 0x8d}
EVERY_ANSWER = (0x85, 0x86, 0x87, 0x89, 0x8b, 0x8c, 0x8d)


async def _request(client, code, node):
    """One request and its answer, which has to be about this node, or bear the receipt's tag."""
    command = {LOGIN: b"\x1a" + node + b"password", STATUS: b"\x1b" + node, TELEMETRY: b"\x27\0\0\0" + node,
               BINARY: b"\x32" + node + b"\x01", DISCOVERY: b"\x34\0" + node}[code]
    receipt = await client.ask(command)
    equal((receipt[0], len(receipt)), (0x06, 10), f"receipt of {code:#x}: {receipt.hex()}")
    answer = await client.push(*EVERY_ANSWER)
    equal(answer[0], ANSWERS[code], f"answer to {code:#x}: {answer.hex()}")
    mark, own = (answer[2:6], receipt[2:6]) if code == BINARY else (answer[2:8], node[:6])
    equal(mark, own, f"whose answer to {code:#x}")


async def _trace(client, node, tag):
    receipt = await client.ask(b"\x24" + tag + b"\x07\0\0\0\0" + node[:1])
    equal((receipt[0], receipt[2:6]), (0x06, tag), f"receipt of a trace: {receipt.hex()}")
    answer = await client.push(*EVERY_ANSWER)
    equal((answer[0], answer[2], answer[4:8], answer[12]), (0x89, 1, tag, node[0]), f"answer to a trace: {answer.hex()}")


async def _all_kinds(client, node, tag, first):
    """Every kind of request, beginning with a different one in each round."""
    kinds = [LOGIN, STATUS, TELEMETRY, BINARY, DISCOVERY, TRACE]
    for code in kinds[first % len(kinds):] + kinds[:first % len(kinds)]:
        if code == TRACE:
            await _trace(client, node, tag)
        else:
            await _request(client, code, node)


async def _two_clients(world):
    first, second = await world.client("first"), await world.client("second")
    one, other = (await world.nodes(2))[:2]
    for client, node in ((first, one), (second, other)):
        await _request(client, LOGIN, node)       # openhop-core's stations answer nobody else
    marks = [len(client.history) for client in (first, second)]
    for number in range(ROUNDS):
        # The same tag for both: clients choose theirs by themselves.
        tag = number.to_bytes(4, "little")
        await asyncio.gather(_all_kinds(first, one, tag, number), _all_kinds(second, other, tag, number + 3))
    for client, mark in zip((first, second), marks):
        codes = [frame[0] for frame in client.history[mark:] if frame[0] in EVERY_ANSWER]
        equal(len(codes), ROUNDS * 6, f"answers of other clients among {bytes(codes).hex(' ')}")
    equal((await world.counters())["mesh_requests_refused"], 0, "requests that were refused")


async def two_clients_get_their_own_answers_from_stations(rig):
    await _two_clients(await OpenHop(rig).start())


async def two_clients_get_their_own_answers_from_a_radio_that_forgets_the_first_request(rig):
    await _two_clients(await Simulated(rig).start(contacts=16))


async def a_request_waits_for_the_one_before(rig):
    world = await Simulated(rig).start(contacts=16, trip_time="200ms")
    clients = [await world.client(f"client {number}") for number in range(4)]
    nodes = await world.nodes(2)
    await asyncio.gather(*(_request(client, STATUS, nodes[number % 2]) for number, client in enumerate(clients)))
    sent = [frame for frame in await world.reached_the_radio() if frame[0] == STATUS]
    equal(len(sent), 4, "requests that reached the radio")


async def a_clients_answer_is_not_sent_to_the_one_who_came_after_it(rig):
    world = await Simulated(rig).start(contacts=16, trip_time="300ms")
    node = (await world.nodes(2))[0]
    gone = await world.client("gone")
    equal((await gone.ask(b"\x1b" + node))[0], 0x06, "receipt")
    await gone.leave()
    after = await world.client("after")
    # Its own request has to wait until the other's answer has come, and been dropped.
    await _request(after, TELEMETRY, node)
    equal([frame[0] for frame in after.history if frame[0] in EVERY_ANSWER], [0x8b], "answers")


async def acknowledgements_go_to_who_has_sent_the_message(rig):
    world = await Simulated(rig).start(contacts=16)
    first, second = await world.client("first"), await world.client("second")
    (one, other) = [row[1:7] for row in (await first.contacts())[1] if row[33] == 1][:2]
    for number in range(6):
        stamp = (1_704_067_200 + number).to_bytes(4, "little")
        # In every second round both send the same to different contacts, which has the same code.
        texts = (b"to you", b"to you") if number % 2 else (b"one", b"another")
        commands = [b"\x02\x00\x00" + stamp + key + said for key, said in zip((one, other), texts)]
        receipts = await asyncio.gather(first.ask(commands[0]), second.ask(commands[1]))
        equal([receipt[0] for receipt in receipts], [0x06, 0x06], "receipts")
        for client, receipt in zip((first, second), receipts):
            equal((await client.push(0x82))[1:5], receipt[2:6], "acknowledgement")
    for client in (first, second):
        equal(len([frame for frame in client.history if frame[0] == 0x82]), 6, "acknowledgements")


async def _library(rig, port):
    client = await connect(port)
    rig.closers.append(client.disconnect)
    await client.ensure_contacts()
    return client


async def _as_people_do(client, node, tag):
    """Login, status, telemetry, trace and path discovery with meshcore_py's own methods."""
    commands, key = client.commands, node["public_key"]
    login = await commands.send_login_sync(node, "password", timeout=PATIENCE)
    equal(login and login.payload["pubkey_prefix"], key[:12], "who has answered the login")
    status = await commands.req_status_sync(node, timeout=PATIENCE)
    assert status and status["bat"] > 4000, f"status: {status}"
    equal(status["pubkey_pre"], key[:12], "whose status")
    telemetry = await commands.req_telemetry_sync(node, timeout=PATIENCE)
    assert telemetry and telemetry[0]["type"] == "voltage", f"telemetry: {telemetry}"
    tracing = asyncio.ensure_future(client.wait_for_event(EventType.TRACE_DATA, {"tag": tag}, PATIENCE))
    sent = await commands.send_trace(tag=tag, path=key[:2])
    assert not sent.is_error(), sent
    trace = await tracing
    equal(trace and trace.payload["path"][0]["hash"], key[:2], "the trace's hop")
    path = await commands.send_path_discovery_sync(node, timeout=PATIENCE)
    equal(path and path.payload["pubkey_pre"], key[:12], "whose path")


async def two_programs_with_meshcore_py_get_their_own_answers(rig):
    async def on(world):
        keys = [key.hex() for key in (await world.nodes(2))[:2]]
        clients = [await _library(rig, world.address) for _ in range(2)]
        nodes = [client.get_contact_by_key_prefix(key) for client, key in zip(clients, keys)]
        for number in range(2):
            await asyncio.gather(*(_as_people_do(client, node, 77 + number) for client, node in zip(clients, nodes)))
    for world in (await OpenHop(rig).start(), await Simulated(rig).start(contacts=16)):
        await on(world)
