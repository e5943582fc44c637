# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What a radio has once for everybody, and each client for itself."""
import asyncio

from companion import GET_BATTERY, Client, text
from host import Host, equal, share, tcp
from nacl.signing import VerifyKey
from worlds import FREE_AIR, OpenHop, Simulated, without_sender

OK = b"\x00"
STAMP = (1_704_067_200).to_bytes(4, "little")


def _say(said):
    return b"\x03\x00\x00" + STAMP + said


async def signatures_of_two_clients_are_of_what_each_has_sent(rig):
    world = await OpenHop(rig).start(role="admin")
    clients = [await world.client(name) for name in ("first", "second")]
    key = VerifyKey(clients[0].replies[0][4:36])
    for number in range(3):
        whole = [b"first %d " % number * 40, b"second %d " % number * 50]
        for client in clients:
            equal((await client.ask(b"\x21"))[0], 0x13, "answer to SIGN_START")
        # Part by part, by turns.
        for begin in range(0, max(map(len, whole)), 100):
            for client, data in zip(clients, whole):
                if part := data[begin:begin + 100]:
                    equal(await client.ask(b"\x22" + part), OK, "answer to SIGN_DATA")
        signatures = await asyncio.gather(*(client.ask(b"\x23") for client in clients))
        for data, signature in zip(whole, signatures):
            equal(signature[0], 0x14, "answer to SIGN_FINISH")
            key.verify(data, signature[1:])        # raises when it is of something else
    equal(await clients[0].ask(b"\x23"), b"\x01\x04", "SIGN_FINISH without a start")


def _scopes(frames):
    """The scope that the radio was in at each channel text: text to scope."""
    scope, scopes = b"\x00", {}
    for frame in frames:
        if frame[0] == 0x36:
            scope = frame[1:]
        elif frame[0] == 0x03:
            scopes[frame[7:].decode()] = scope if any(scope[1:]) or scope[0] else b"\x00"
    return scopes


async def each_clients_sends_go_out_in_its_own_scope(rig):
    async def on(world):
        north, south, plain, silent = [await world.client(name) for name in ("north", "south", "plain", "silent")]
        keys = bytes(range(1, 17)), bytes(range(101, 117))
        equal(await north.ask(b"\x36\x00" + keys[0]), OK)
        equal(await south.ask(b"\x36\x00" + keys[1]), OK)
        equal(await plain.ask(b"\x36\x01"), OK)
        wanted = {}
        for number in range(3):
            for name, client, scope in (("north", north, b"\x00" + keys[0]), ("south", south, b"\x00" + keys[1]),
                                        ("plain", plain, b"\x01"), ("silent", silent, b"\x00")):
                said = f"{name} {number}"
                equal(await client.ask(_say(said.encode())), OK)
                wanted[said] = scope
        equal(await south.ask(b"\x36\x00"), OK)
        equal(await south.ask(_say(b"south at last")), OK)
        wanted["south at last"] = b"\x00"
        # All at once.
        for number in range(5):
            for name, client in (("north", north), ("plain", plain), ("silent", silent)):
                client.send(_say(f"{name} again {number}".encode()))
                wanted[f"{name} again {number}"] = wanted[f"{name} 0"]
        for _ in range(5):
            for client in (north, plain, silent):
                equal(await client.reply(), OK)
        scopes = _scopes(await world.reached_the_radio())
        equal(sorted(scopes), sorted(wanted), "texts")
        for said, scope in wanted.items():
            equal(scopes[said].hex(), scope.hex(), f"the scope of \"{said}\" on the {world.name} radio")
    await asyncio.gather(on(await OpenHop(rig).start()), on(await Simulated(rig).start()))


async def a_version_is_that_of_the_client_who_told_it(rig):
    async def on(world):
        old, new = await world.client("old", 1), await world.client("new", 3)
        for _ in range(2):
            await world.arrive(4)
        await world.journalled(8)
        equal([frame[0] for frame in await old.mail()], [0x07, 0x08] * 4, "codes for the old one")
        equal([frame[0] for frame in await new.mail()], [0x10, 0x11] * 4, "codes for the new one")
        # Whoever told it last: the radio keeps one.
        equal((await old.ask(b"\x16\x01"))[0], 0x0d)
        await world.arrive(2)
        await world.journalled(10)
        equal([frame[0] for frame in await new.mail()], [0x10, 0x11], "codes for the new one")
        equal((await old.ask(b"\x16\x03"))[0], 0x0d)
        equal([frame[0] for frame in await old.mail()], [0x10, 0x11], "codes for the one that has become new")
    await asyncio.gather(on(await OpenHop(rig).start()), on(await Simulated(rig).start()))


async def received_packet_logs_go_to_shares_that_want_them(rig):
    radio = await rig.burst()
    host = Host(rig)
    host.configure(tcp("roof", radio.port), share("roof", rx_log=True), share("roof", rx_log=False))
    await host.start()
    await host.ready("roof")
    with_logs = await (await Client.connect(await host.address("roof", 0))).greet("with")
    without = await (await Client.connect(await host.address("roof", 1))).greet("without")
    await radio.command("burst 20 60")
    for _ in range(20):
        await with_logs.push(0x88)
    await radio.command("mail 1")                 # what comes after them
    await without.push(0x83)
    equal((await without.ask(GET_BATTERY))[0], 0x0c)
    equal([frame[0] for frame in without.history if frame[0] == 0x88], [], "logs on a share without them")
    for client in (with_logs, without):
        await client.close()


async def what_one_client_says_to_a_channel_others_read_where_the_share_wants_it(rig):
    radios = await rig.radios("--count", 2)
    host = Host(rig)
    host.configure(tcp("roof", radios.ports[0]), share("roof", echo=True, **FREE_AIR), share("roof", **FREE_AIR))
    await host.start()
    await host.ready("roof")
    sender, listener = [await (await Client.connect(await host.address("roof", 0))).greet(name, 3)
                        for name in ("sender", "listener")]
    elsewhere = await (await Client.connect(await host.address("roof", 1))).greet("elsewhere", 3)
    equal(await sender.ask(_say(b"from one of us")), OK)
    await listener.push(0x83)
    (echo,) = await listener.mail()
    equal((echo[0], echo[4], text(echo)), (0x11, 0, "Radio 0: from one of us"), "what the listener reads")
    equal(await elsewhere.ask(_say(b"from elsewhere")), OK)
    await listener.push(0x83)
    equal([without_sender(text(frame)) for frame in await listener.mail()], ["from elsewhere"])
    equal([without_sender(text(frame)) for frame in await sender.mail()], ["from elsewhere"], "what the sender reads")
    equal(await elsewhere.mail(), [], "what is read on a share without echo")
    for client in (sender, listener, elsewhere):
        await client.close()
