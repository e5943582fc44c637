# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What fifteen situations have to come to when clients share a radio: the behaviour vectors of the companion protocol's
reference (its section 4, whose numbers the tests bear), on the simulated radio and on openhop-core's."""
import asyncio

from companion import AWAY, GET_BATTERY, GET_TIME, NO_MORE, SYNC_NEXT, Client, is_message, text
from host import Host, equal, eventually, share, tcp
from worlds import OpenHop, Simulated, counted, without_sender

NOT_FOUND = b"\x01\x02"
ILLEGAL = b"\x01\x06"
DISABLED = b"\x0f"
SAY = b"\x03\x00\x00" + b"\x00\x92\x65\x00"       # SEND_CHANNEL_TXT_MSG to channel 0


async def _everywhere(rig, check, simulated=None, openhop=(), role="chat"):
    """Run a check on both kinds of radio, at the same time."""
    async def on_simulated():
        await check(await Simulated(rig).start(role=role, **(simulated or {})))

    async def on_openhop():
        await check(await OpenHop(rig).start(*openhop, role=role))
    for name, outcome in zip(("the simulated radio", "openhop-core"), await asyncio.gather(
            on_simulated(), on_openhop(), return_exceptions=True)):
        if outcome is not None:
            raise AssertionError(f"on {name}: {outcome or repr(outcome)}") from outcome


async def vector_1_each_of_two_clients_gets_its_one_answer(rig):
    async def check(world):
        clients = [await world.client(name) for name in ("first", "second")]
        for _ in range(20):
            marks = [len(client.replies) for client in clients]
            for client in clients:
                client.send(GET_TIME)
                client.send(GET_BATTERY)
            for client, mark in zip(clients, marks):
                equal([(await client.reply())[0] for _ in range(2)], [0x09, 0x0c])
                equal(len(client.replies) - mark, 2, "replies")
    await _everywhere(rig, check)


async def vector_2_answers_about_different_channels_are_not_mixed_up(rig):
    async def check(world):
        first, second = [await world.client(name) for name in ("first", "second")]
        for number in range(20):
            one, other = 4 + number % 8, 3 + number % 8
            first.send(bytes([0x1f, one]))
            second.send(bytes([0x1f, other]))
            equal((await first.reply())[:2], bytes([0x12, one]))
            equal((await second.reply())[:2], bytes([0x12, other]))
    await _everywhere(rig, check)


async def vector_3_an_error_of_one_client_is_none_of_another(rig):
    async def check(world):
        first, second = [await world.client(name) for name in ("first", "second")]
        for number in range(5):
            first.send(b"\x1f\x63")
            second.send(SAY + b"vector 3: %d" % number)
            equal(await first.reply(), NOT_FOUND, "answer about a channel that is not there")
            equal(await second.reply(), b"\x00", "answer to a channel message")
    await _everywhere(rig, check)


async def vector_4_a_client_that_never_reads_is_cut_and_delays_nobody(rig):
    radio = await rig.burst()
    host = Host(rig)
    # Room for what others may be behind by: they are waited for.
    host.configure(tcp("roof", radio.port), share("roof", stuck_timeout="10s", queue_frames=16384, queue_bytes=4 << 20))
    await host.start()
    await host.ready("roof")
    load = await rig.load(await host.address("roof"), "--clients", 2, "--stuck", "--interactive", "--timeout", 3600)
    await load.event("connected")
    portions = 0

    async def others_are_served():
        """Everything that was pushed has reached them, and so have the answers to what they asked."""
        nonlocal portions
        portions += 1
        await load.command("rounds 50")
        await radio.command("burst 1000 170")
        await load.command(f"expect {1000 * portions}")
        await load.event("reached", pushes=1000 * portions)
        await eventually(answered, "answers")

    async def answered():
        return (await load.command("status"))["right"] == 2 * 50 * portions

    async def is_waited_for():
        return any(each["queue_frames"] for each in (await host.clients())["clients"])
    while not await is_waited_for():
        await others_are_served()
    # While it takes nothing, and has not been cut for that.
    await others_are_served()
    assert await is_waited_for(), "cut too early"
    left = await host.events.event("client.leave")
    equal(left["data"]["reason"], "stuck", f"reason in {left}")
    await others_are_served()
    load.child.stdin.write(b"end\n")
    result = await load.event("result")
    equal({key: result[key] for key in ("first", "fewest", "most", "gaps", "noise", "closed", "foreign", "errors")},
          {"first": 0, "fewest": 1000 * portions, "most": 1000 * portions, "gaps": 0, "noise": 0, "closed": 0, "foreign": 0, "errors": 0})


async def vector_5_every_client_gets_every_message_in_order(rig):
    async def check(world):
        clients = [await world.client(name) for name in ("first", "second")]
        texts = await world.arrive(3)
        await world.journalled(3)
        for client in clients:
            await client.push(0x83)
            equal([without_sender(text(frame)) for frame in await client.mail()], texts)
            equal(await client.ask(SYNC_NEXT), NO_MORE)
    await _everywhere(rig, check)


async def vector_6_a_client_that_comes_back_gets_what_it_missed(rig):
    async def check(world):
        absent = await world.client("absent")
        texts = await world.arrive(2)
        await world.journalled(2)
        equal([without_sender(text(frame)) for frame in await absent.mail()], texts, "while it was there")
        await absent.leave()
        await world.host.events.event("client.leave")
        there = await world.client("there")
        await there.mail()
        texts = await world.arrive(3)
        await world.journalled(5)
        equal([without_sender(text(frame)) for frame in await there.mail()], texts, "of the one that stayed")
        absent = await world.client("absent")
        await absent.push(0x83)
        equal([without_sender(text(frame)) for frame in await absent.mail()], texts, "of the one that came back")
    await _everywhere(rig, check)


async def vector_7_a_newcomer_does_not_end_another_clients_contact_list(rig):
    async def check(world):
        first = await world.client("first")
        second = await Client.connect(world.address)
        rig.closers.append(second.close)
        for number in range(3):
            first.send(b"\x04")
            if number:
                equal((await first.reply())[0], 0x02, "beginning of the list")
            equal((await second.ask(b"\x01\x03      second"))[0], 0x05, "answer to the newcomer")
            if not number:
                equal((await first.reply())[0], 0x02, "beginning of the list")
            rows = 0
            while (frame := await first.reply())[0] == 0x03:
                rows += 1
            equal(frame[0], 0x04, "end of the list")
            assert rows >= 40, f"{rows} rows"
    await _everywhere(rig, check, {"contacts": 40, "contact_delay": "2ms"}, ("--contacts", 40))


async def vector_8_contacts_since_a_time_are_those_changed_after_it(rig):
    async def check(world):
        client = await world.client()
        total, rows, newest = await client.contacts()
        equal(len(rows), total, "rows")
        times = sorted(int.from_bytes(row[144:148], "little") for row in rows)
        equal(newest, times[-1], "newest change")
        equal((await client.contacts(newest))[:2], (total, []), "contacts changed after the newest change")
        middle = times[len(times) // 2]
        _, rows, end = await client.contacts(middle)
        equal(sorted(int.from_bytes(row[144:148], "little") for row in rows), [each for each in times if each > middle])
        equal(end, newest, "newest change")
    await _everywhere(rig, check, {"contacts": 20}, ("--contacts", 20))


async def vector_9_a_login_and_a_status_request_at_once_are_both_answered(rig):
    async def check(world):
        first, second = [await world.client(name) for name in ("first", "second")]
        login, status = (await world.nodes(2))[:2]
        # openhop-core's stations answer only who has logged in.
        await _logged_in(first, status)
        for _ in range(3):
            marks = len(first.history), len(second.history)
            first.send(b"\x1a" + login + b"password")
            second.send(b"\x1b" + status)
            receipt = await first.reply()
            equal((receipt[0], receipt[2:6]), (0x06, login[:4]), "receipt of the login")
            equal((await first.push(0x85))[2:8], login[:6], "whose answer")
            equal((await second.reply())[0], 0x06, "receipt of the request")
            equal((await second.push(0x87))[2:8], status[:6], "whose answer")
            for client, mark, codes in ((first, marks[0], [0x06, 0x85]), (second, marks[1], [0x06, 0x87])):
                equal([frame[0] for frame in client.history[mark:] if frame[0] in (0x06, 0x85, 0x86, 0x87)], codes,
                      "what came, in order")
    await _everywhere(rig, check)


async def _logged_in(client, node):
    equal((await client.ask(b"\x1a" + node + b"password"))[0], 0x06, "receipt of a login")
    equal((await client.push(0x85, 0x86))[0], 0x85, "answer to a login")


async def vector_10_after_a_silence_every_answer_is_of_its_own_question(rig):
    async def check(world):
        first, second = await world.client("first", owner=True), await world.client("second")
        reply = await world.unanswered(first, b"\x38\x00")
        assert reply[0] == 0x01, f"answer while the radio is silent: {reply.hex()}"
        mark = len(first.replies)
        for number in range(4):
            kind = number % 3
            first.send(bytes([0x38, kind]))
            second.send(bytes([0x1f, 4 + number]))
            equal((await first.reply())[:2], bytes([0x18, kind]), "statistics")
            equal((await second.reply())[:2], bytes([0x12, 4 + number]), "channel")
        await counted(world, "command_timeouts")
        await counted(world, "late_replies")
        equal(len(first.replies) - mark, 4, "replies to the first client")
    await _everywhere(rig, check)


async def vector_11_a_bare_remove_contact_does_not_reach_the_radio(rig):
    async def check(world):
        client = await world.client()
        total, rows, _ = await client.contacts()
        # What the firmware would read on into.
        equal((await client.ask(b"\x1e" + rows[0][1:33]))[0], 0x03)
        equal(await client.ask(b"\x0f"), ILLEGAL, "answer")
        assert not [frame for frame in await world.reached_the_radio() if frame[0] == 0x0f], "it reached the radio"
        equal((await client.contacts())[0], total, "contacts")
    await _everywhere(rig, check, role="admin")


async def vector_12_a_private_key_is_refused_and_never_shown_to_others(rig):
    async def check(world):
        first, second = [await world.client(name) for name in ("first", "second")]
        owner = await world.client("owner", owner=True)
        equal(await first.ask(b"\x17"), DISABLED, "answer to an ordinary client")
        assert not [frame for frame in await world.reached_the_radio() if frame[0] == 0x17], "it reached the radio"
        key = await owner.ask(b"\x17")
        equal((key[0], len(key)), (0x0e, 65), "answer to the owner")
        for client in (first, second):
            equal((await client.ask(GET_TIME))[0], 0x09)
            assert not [frame for frame in client.history if frame[0] == 0x0e], "another client saw the key"
        equal([frame for frame in second.history if frame[0] == 0x0f], [], "refusals that another client saw")
    await _everywhere(rig, check)


async def vector_13_an_answer_that_nobody_asked_for_is_counted_and_goes_to_nobody(rig):
    async def check(world):
        client = await world.client()
        before = (await world.counters())["unasked_replies"]
        mark = len(client.replies)
        await world.stray()
        await counted(world, "unasked_replies", before + 1)
        equal((await client.ask(b"\x1f\x05"))[:2], b"\x12\x05", "the next answer")
        equal(len(client.replies) - mark, 1, "replies")
    await _everywhere(rig, check)


async def vector_14_messages_of_both_versions_reach_each_client_in_its_own(rig):
    # Only the simulated radio lays messages out when they come, as the firmware does: those before the host's first
    # DEVICE_QUERY in the old version.
    world = await Simulated(rig).start(waiting=3)
    await world.journalled(3)
    texts = [f"Message {number}" for number in range(3)]
    world.arrived = 3
    old, new, unasked = await world.client("old", 2), await world.client("new", 3), await world.client("none", None)
    texts += await world.arrive(3)
    await world.journalled(6)
    for client, codes in ((old, [0x07, 0x08] * 3), (unasked, [0x07, 0x08] * 3)):
        messages = await client.mail()
        equal([without_sender(text(frame)) for frame in messages], texts)
        equal([frame[0] for frame in messages], codes, "codes for an old client")
    messages = await new.mail()
    equal([without_sender(text(frame)) for frame in messages], texts)
    equal([frame[0] for frame in messages[3:]], [0x11, 0x10, 0x11], "codes of what came in the new version")
    assert all(is_message(frame) and len(frame) > 8 for frame in messages), messages


async def vector_15_a_radio_that_comes_back_is_greeted_before_any_clients_command(rig):
    async def check(world):
        clients = [await world.client(name) for name in ("first", "second")]
        await world.away()
        await world.host.events.event("link.down", device="roof")
        equal(await clients[0].ask(b"\x38\x01"), AWAY, "answer while the radio is away")
        clients[1].send(SAY + b"held")            # a send waits for the radio a little
        before = len(_sent(world))
        await world.back()
        await world.host.ready("roof")
        equal(await clients[1].reply(), b"\x00", "answer to the send that waited")
        if isinstance(world, Simulated):          # told by another process, a moment later
            await world.tap.until(lambda: any(frame[0] == 0x03 for frame in _sent(world)[before:]), "the send")
        after = _sent(world)[before:]
        said = next(number for number, frame in enumerate(after) if frame[0] == 0x03)
        for code in (0x01, 0x16):
            assert code in [frame[0] for frame in after[:said]], f"{code:#x} is not among {[f[0] for f in after[:said]]}"
        for client in clients:
            equal((await client.ask(b"\x38\x01"))[:2], b"\x18\x01", "answer with the radio back")
        equal(world.host.events.count("client.leave"), 0, "clients that left")
    await _everywhere(rig, check)


def _sent(world):
    """What the radio was sent, without asking it anything."""
    if isinstance(world, Simulated):
        return [bytes.fromhex(each["data"]["hex"]) for each in world.tap.all("frame.tx")]
    return list(world.gate.commands)
