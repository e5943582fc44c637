# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Every client gets every message once, in order, whoever comes, goes or is killed meanwhile."""
import asyncio
import os
import random
import signal

from companion import NO_MORE, SYNC_NEXT, Client, app_start, is_message, text
from gate import Gate
from harness import PATIENCE, reserved_port
from host import Host, equal, eventually, share, tcp
from meshcore import EventType
from meshcore_cli import meshcore_cli
from patient_meshcore import connect
from worlds import OpenHop, counted, without_sender

MESSAGES = 200
ROUNDS = 24
CLI_ROUNDS = range(3, ROUNDS, 5)                  # a process each: more of them would only take time


class Raw:
    """A client that crashes: in the middle of a read, with an answer on its way."""
    name = "raw"

    def __init__(self, port, chance):
        self.port, self.chance = port, chance
        self.client, self.read = None, []

    async def join(self):
        if self.client is None:
            self.client = await Client.connect(self.port)
            reply = await self.client.ask(app_start("raw"))
            assert reply and reply[0] == 5, f"answer to APP_START: {reply}"

    async def some(self, count):
        """Up to so many messages; whether there may be more."""
        for _ in range(count):
            frame = await self.client.ask(SYNC_NEXT)
            if frame == NO_MORE:
                return False
            assert frame and is_message(frame), f"no message: {frame}"
            self.read.append(without_sender(text(frame)))
        return True

    async def act(self):
        await self.join()
        await self.some(self.chance.randint(0, 20))
        match self.chance.randrange(4):
            case 0:
                # Its answer is never read. What was read before is confirmed by this question.
                self.client.send(SYNC_NEXT)
                await self.client.writer.drain()
                await self.client.reset()
                self.client = None
            case 1:
                await self.client.leave()
                self.client = None

    async def lost(self):
        """The daemon was killed."""
        if self.client:
            await self.client.ended()
            self.client = None

    async def rest(self):
        await self.join()
        while await self.some(50):
            pass

    async def close(self):
        if self.client:
            await self.client.close()


class Library:
    """meshcore_py, which fetches when it is told that a message waits, or by itself."""
    name = "library"

    def __init__(self, port, chance):
        self.port, self.chance = port, chance
        self.client, self.read = None, []

    async def join(self):
        if self.client is None:
            self.client = await connect(self.port)

    async def some(self, count):
        for _ in range(count):
            event = await self.client.commands.get_msg(timeout=PATIENCE)
            if event.type == EventType.NO_MORE_MSGS:
                return False
            assert event.type in (EventType.CONTACT_MSG_RECV, EventType.CHANNEL_MSG_RECV), event
            self.read.append(without_sender(event.payload["text"]))
        return True

    async def act(self):
        await self.join()
        await self.some(self.chance.randint(0, 20))
        if self.chance.randrange(3) == 0:
            await self.close()

    async def lost(self):
        await self.close()

    async def rest(self):
        await self.join()
        while await self.some(50):
            pass

    async def close(self):
        """Everything is read first, also what is on its way: else the kernel would tell of a reset."""
        if self.client:
            transport = self.client.connection_manager.connection.transport
            if not transport.is_closing():
                transport.write_eof()
                await eventually(transport.is_closing, "the end of the host's side")
            await self.client.disconnect()
            self.client = None


class CommandLine:
    """meshcore-cli, a new process each time."""
    name = "command line"

    def __init__(self, port, scratch):
        self.port, self.scratch = port, scratch
        self.read = []

    async def rest(self):
        (messages, *_) = await meshcore_cli(self.scratch, "-t", "127.0.0.1", "-p", self.port, "sync_msgs")
        self.read += [without_sender(each["text"]) for each in messages if "text" in each]


async def _world(rig):
    radios = await rig.radios("--count", 2)
    gate = await Gate(radios.ports[0]).serve()
    rig.closers.append(gate.close)
    host = Host(rig)
    # A share for each: meshcore_py and meshcore-cli call themselves the same.
    host.configure(tcp("roof", gate.port), *(share("roof", listen=f"127.0.0.1:{port}", name=name)
                                             for name, port in zip(("raw", "library", "cli"), _ports(rig, 3))))
    await host.start()
    await host.ready("roof")
    return radios, gate, host


def _ports(rig, count):
    """Ports that are the same over restarts: programs come back to the same address."""
    places = [reserved_port() for _ in range(count)]
    rig.closers += [lambda place=place: asyncio.to_thread(place.close) for place in places]
    return [place.getsockname()[1] for place in places]


async def _journalled(host, count):
    """The bus tells of a message after it is in the journal."""
    await host.events.until(lambda: host.events.count("message.direct") + host.events.count("message.channel") >= count,
                            f"{count} messages in the journal")


async def _kill(gate, host, mark):
    """The daemon dies as it can at any moment, but with no message on its way from the radio into the journal: the radio
    forgets a message when it is read. `mark` is how many answers the gate had passed when the daemon was started."""
    gate.shut()
    await gate.answered()
    await _journalled(host, gate.messages(mark))
    host.process.kill(signal.SIGKILL)
    await host.process.ended()
    await gate.until(lambda: gate.connection is None)     # and with it what the daemon had asked last
    gate.open()


async def three_clients_that_come_and_go_get_every_message_once_in_order(rig):
    seed = int(os.environ.get("MESHHOST_SEED", random.randrange(1 << 32)))
    rig.note(f"MESHHOST_SEED={seed}")
    chance = random.Random(seed)
    radios, gate, host = await _world(rig)
    ports = [await host.address("roof", number) for number in range(3)]
    raw, library, cli = Raw(ports[0], random.Random(chance.random())), \
        Library(ports[1], random.Random(chance.random())), CommandLine(ports[2], rig.scratch.name)
    rig.closers += [raw.close, library.close]
    # A client that was never there begins with the newest messages: everybody says its name first.
    for client in (raw, library, cli):
        await client.rest()

    sent, mark = [], 0
    kills = sorted(chance.sample(range(2, ROUNDS - 2), 2))
    for number in range(ROUNDS):
        left = MESSAGES - len(sent)
        count = left if number == ROUNDS - 1 else min(left, chance.randint(1, 2 * MESSAGES // ROUNDS))
        arriving = radios.command(f"mail 0 1 {count} round {number},")
        sent += [f"round {number}, {each}" for each in range(count)]
        await asyncio.gather(arriving, raw.act(), library.act(), *([cli.rest()] if number in CLI_ROUNDS else []))
        if number in kills:
            count = min(MESSAGES - len(sent), 12)
            # Somewhere in the middle of what comes now.
            target = gate.messages(mark) + chance.randint(0, count)
            await radios.command(f"mail 0 1 {count} kill {number},")
            sent += [f"kill {number}, {each}" for each in range(count)]
            await gate.until(lambda: gate.messages(mark) >= target)
            await _kill(gate, host, mark)
            await asyncio.gather(raw.lost(), library.lost())
            mark = len(gate.answers)
            await host.start()
            await host.ready("roof")
    equal(len(sent), MESSAGES, "messages")
    rig.note(f"killed after rounds {' and '.join(str(each) for each in kills)} of {ROUNDS}")
    await gate.until(lambda: gate.messages() >= MESSAGES)
    await _journalled(host, gate.messages(mark))
    for client in (raw, library, cli):
        await client.rest()
        assert client.read == sent, f"{client.name}: {_difference(client.read, sent)}"


def _difference(read, sent):
    """What is wrong with what a client read, in one line."""
    missing = [each for each in sent if each not in read]
    twice = sorted({each for each in read if read.count(each) > 1})
    first = next((number for number, pair in enumerate(zip(read, sent)) if pair[0] != pair[1]), min(len(read), len(sent)))
    return (f"{len(read)} of {len(sent)} messages; missing {missing[:5]}, twice {twice[:5]}, first difference at {first}: "
            f"{read[first:first + 3]} instead of {sent[first:first + 3]}")


async def a_message_that_was_on_its_way_when_the_client_crashed_comes_again(rig):
    world = await OpenHop(rig).start()
    # By a Unix socket, whose other end knows for sure what was not read.
    client = await world.client(local=True)
    first, second, third = await world.arrive(3)
    await world.journalled(3)
    equal(without_sender(text(await client.ask(SYNC_NEXT))), first)
    client.writer.transport.pause_reading()
    client.send(SYNC_NEXT)                        # which says that the first was read
    await counted(world, "messages_delivered", 2)     # and is answered; nobody reads that
    await client.close()
    await world.host.events.event("client.leave")
    client = await world.client(local=True)
    equal([without_sender(text(frame)) for frame in await client.mail()], [second, third], "after the crash")
    equal((await world.counters())["messages_redelivered"], 1, "messages given again")


async def a_client_that_leaves_in_good_order_does_not_get_its_last_message_again(rig):
    world = await OpenHop(rig).start()
    client = await world.client()
    first, second = await world.arrive(2)
    await world.journalled(2)
    equal(without_sender(text(await client.ask(SYNC_NEXT))), first)
    await client.leave()
    await world.host.events.event("client.leave")
    client = await world.client()
    equal([without_sender(text(frame)) for frame in await client.mail()], [second], "after it has come back")
    equal((await world.counters())["messages_redelivered"], 0, "messages given again")


async def messages_outlive_a_daemon_that_is_killed(rig):
    world = await OpenHop(rig).start()
    client = await world.client()
    texts = await world.arrive(7)
    await world.journalled(7)
    equal(without_sender(text(await client.ask(SYNC_NEXT))), texts[0])
    await _kill(world.gate, world.host, 0)
    await client.ended()
    await world.host.start()
    await world.host.ready("roof")
    world.address = await world.host.address("roof")
    client = await world.client()
    equal([without_sender(text(frame)) for frame in await client.mail()], texts[1:], "after the end of the daemon")


async def a_message_that_the_radio_gives_out_twice_reaches_clients_once(rig):
    world = await OpenHop(rig).start()
    client = await world.client()
    (only,) = await world.arrive(1)
    await world.journalled(1)
    given = next(frame for frame in world.gate.answers if is_message(frame))
    # The same answer to the host's next question, as from a radio that has not noticed that it was read.
    world.gate.answer_instead(SYNC_NEXT, given)
    (after,) = await world.arrive(1)
    await world.journalled(2)
    equal([without_sender(text(frame)) for frame in await client.mail()], [only, after])
    equal((await world.counters())["messages_repeated"], 1, "messages given out again")
