# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What a client must not be able to do to the radio, or to the others."""
import asyncio
import os
import random

from companion import GET_TIME, Client
from host import equal
from worlds import OpenHop, Simulated

FRAMES = 1500
UNSUPPORTED, ILLEGAL, DISABLED = b"\x01\x01", b"\x01\x06", b"\x0f"

# What the firmware reads of each command before it looks at the length, code included, and the least role that may send
# it: 0 observe, 1 chat, 2 admin, 3 owner. Written from companion-protocol §1.5 and §2.4, not from the daemon's own table.
COMMANDS = {
    1: (8, 0), 2: (14, 1), 3: (7, 1), 4: (1, 0), 5: (1, 0), 6: (5, 1), 7: (1, 1), 8: (2, 2), 9: (136, 1), 10: (1, 0),
    11: (11, 2), 12: (2, 2), 13: (33, 1), 14: (9, 2), 15: (33, 2), 16: (33, 1), 17: (1, 0), 18: (99, 1), 19: (7, 3),
    20: (1, 0), 21: (9, 2), 22: (2, 0), 23: (1, 3), 24: (65, 3), 25: (6, 1), 26: (33, 1), 27: (33, 1), 28: (33, 0),
    29: (33, 1), 30: (33, 0), 31: (2, 0), 32: (50, 2), 33: (1, 2), 34: (2, 2), 35: (1, 2), 36: (11, 1), 37: (5, 3),
    38: (2, 2), 39: (4, 1), 40: (1, 0), 41: (4, 2), 42: (34, 0), 43: (1, 0), 50: (34, 1), 51: (6, 3), 52: (34, 1),
    54: (2, 1), 55: (2, 1), 56: (2, 0), 57: (34, 1), 58: (2, 2), 59: (1, 0), 60: (1, 0), 61: (3, 2), 62: (6, 1),
    63: (1, 2), 64: (1, 0), 65: (3, 3), 66: (2, 3),
}
# Single bytes, and lengths at which the firmware reads on into what the command before has left in its buffer.
SHORT = [b"\x0f", b"\x10", b"\x13", b"\x1e", b"\x03", b"\x03\x00", b"\x03\x00\x00\x01\x02\x03", b"\x33", b"\x0c", b"\x26",
         b"\x3a", b"\x0f" + bytes(31), b"\x1e" + bytes(31), b"\x10" + bytes(20), b"\x13reboo", b"\x33rese", b"\x27\0\0\0\0",
         b"\x11" + bytes(20), b"\x02" + bytes(12), b"\x1a" + bytes(31), b"\x24" + bytes(9)]


def _may_pass(frame, role):
    """Whether a client of this role may have the radio see this."""
    if not frame or frame[0] not in COMMANDS:
        return role >= 2 and bool(frame)
    least, needed = COMMANDS[frame[0]]
    if len(frame) < least or role < needed:
        return False
    return {19: frame[1:7] == b"reboot", 51: frame[1:6] == b"reset", 39: len(frame) == 4 or len(frame) >= 36,
            17: len(frame) == 1 or len(frame) >= 33}.get(frame[0], True)


def _random_frame(chance):
    """Something that a program might send by mistake, or on purpose: mostly known codes at lengths around what they need."""
    code = chance.choice([*COMMANDS, chance.randrange(256)])
    least = COMMANDS.get(code, (1, 0))[0]
    length = chance.choice([1, 2, max(1, least - 1), least, least + 1, chance.randint(1, 176), chance.randint(1, 12)])
    if code in (1, 57):
        # A new greeting would end a contact list; an anonymous request that nobody answers keeps others waiting.
        length = min(length, least - 1)
    if code == 39 and length == 4:
        length = 5                                # the radio's own telemetry has a push for an answer
    return bytes([code]) + chance.randbytes(length - 1)


async def short_frames_do_not_reach_the_radio(rig):
    async def on(world):
        client, bystander = await world.client("hostile"), await world.client("bystander")
        mark = len(bystander.replies)
        for frame in SHORT:
            reply = await client.ask(frame)
            assert reply in (UNSUPPORTED, ILLEGAL), f"answer to {frame.hex()}: {reply.hex()}"
        for frame in await world.reached_the_radio():
            assert frame not in SHORT, f"{frame.hex()} reached the radio"
        equal((await bystander.ask(GET_TIME))[0], 0x09)
        equal(len(bystander.replies) - mark, 1, "replies that the bystander got")
    await asyncio.gather(on(await OpenHop(rig).start(role="admin")), on(await Simulated(rig).start(role="admin")))


async def nothing_that_a_chat_client_must_not_send_reaches_the_radio(rig):
    seed = int(os.environ.get("MESHHOST_SEED", random.randrange(1 << 32)))
    rig.note(f"MESHHOST_SEED={seed}")
    frames = [_random_frame(random.Random(seed * FRAMES + number)) for number in range(FRAMES)]

    async def on(world):
        client, bystander = await world.client("hostile"), await world.client("bystander")
        known = len(await world.reached_the_radio())
        mark = len(bystander.replies)
        await _flood(client, frames)
        reached = (await world.reached_the_radio())[known:]
        wrong = [frame for frame in reached if not _may_pass(frame, 1)]
        assert not wrong, f"{len(wrong)} of {len(reached)} frames should not have reached the radio: {wrong[0].hex()}"
        rig.note(f"{len(reached)} frames reached the {world.name} radio, {FRAMES} were sent")
        equal((await bystander.ask(GET_TIME))[0], 0x09, "answer to a bystander")
        equal(len(bystander.replies) - mark, 1, "replies that the bystander got")
        equal(world.host.events.count("client.leave"), 0, "clients that were cut")
    await asyncio.gather(on(await OpenHop(rig).start()), on(await Simulated(rig).start()))


async def _flood(client, frames):
    """All frames, as fast as they are taken, with an end that can be told: every command is answered once."""
    async def write():
        for frame in frames:
            client.send(frame)
            await client.writer.drain()
    writing = asyncio.ensure_future(write())
    for frame in frames:
        reply = await client.reply()
        assert reply is not None, f"the connection ended at {frame.hex()}"
        if reply[0] == 0x02:                      # a contact list
            while (await client.reply())[0] != 0x04:
                pass
    await writing


async def a_private_key_is_refused_to_all_but_the_owner(rig):
    async def on(role):
        world = await OpenHop(rig).start(role=role)
        client, bystander = await world.client("curious"), await world.client("bystander")
        for _ in range(5):
            equal(await client.ask(b"\x17"), DISABLED, f"answer to a client of role {role}")
        equal([frame for frame in await world.reached_the_radio() if frame[0] == 0x17], [], "what reached the radio")
        await bystander.ask(GET_TIME)
        equal([frame.hex() for frame in bystander.history if frame[0] in (0x0e, 0x0f)], [], "what a bystander saw")
    for role in ("observe", "chat", "admin"):
        await on(role)


async def a_path_longer_than_its_frame_does_not_reach_the_radio(rig):
    world = await OpenHop(rig).start()
    client = await world.client()
    # SEND_CHANNEL_DATA with 63 hops of three bytes, SEND_RAW_DATA with 100 hops: the firmware trusts both.
    for frame in (b"\x3e\x00\xbf\x01\x00data", b"\x19\x64data"):
        equal(await client.ask(frame), ILLEGAL, f"answer to {frame.hex()}")
        assert frame not in await world.reached_the_radio(), f"{frame.hex()} reached the radio"


async def a_time_far_ahead_does_not_reach_the_radio(rig):
    world = await OpenHop(rig).start()
    client = await world.client()
    frame = b"\x06\xff\xff\xff\xff"               # the firmware never sets its clock back
    equal(await client.ask(frame), ILLEGAL, "answer to a time in 2106")
    assert frame not in await world.reached_the_radio(), "it reached the radio"


async def an_observer_changes_nothing(rig):
    world = await OpenHop(rig).start(role="observe")
    client = await Client.connect(world.address)
    rig.closers.append(client.close)
    known = len(await world.reached_the_radio())
    for code, (least, role) in COMMANDS.items():
        if role > 0:
            reply = await client.ask(bytes([code]) + bytes(least))
            assert reply in (UNSUPPORTED, DISABLED), f"answer to {code}: {reply.hex()}"
    reached = [frame for frame in (await world.reached_the_radio())[known:] if COMMANDS.get(frame[0], (0, 9))[1] > 0]
    equal(reached, [], "what reached the radio")
