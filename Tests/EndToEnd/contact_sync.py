# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Contact lists: many clients, one pass over the radio's."""
import asyncio

from companion import Client
from host import Host, equal, mock, share, tcp
from worlds import Simulated, counted

CLIENTS, CONTACTS = 8, 350
GET_CONTACTS = "4"


async def _clients(rig, address):
    clients = [await Client.connect(address) for _ in range(CLIENTS)]
    rig.closers += [client.close for client in clients]
    await asyncio.gather(*(client.greet(f"client {number}") for number, client in enumerate(clients)))
    return clients


def _changed(row):
    return int.from_bytes(row[144:148], "little")


async def _ask_at_once(clients, expected):
    """Everybody's list; each has all contacts once, and its end."""
    lists = await asyncio.gather(*(client.contacts() for client in clients))
    for total, rows, newest in lists:
        equal((total, len(rows), len({row[1:33] for row in rows})), (expected, expected, expected),
              "total, rows, different keys")
        equal(newest, max(map(_changed, rows)), "newest change")
    assert all(set(rows) == set(lists[0][1]) for _, rows, _ in lists), "clients were given different contacts"
    return lists[0][1]


async def eight_contact_lists_cost_the_radio_one(rig):
    radios = await rig.radios("--count", 1, "--contacts", CONTACTS)
    host = Host(rig)
    host.configure(tcp("roof", radios.ports[0]), share("roof"))
    await host.start()
    await host.ready("roof")
    clients = await _clients(rig, await host.address("roof"))
    rows = await _ask_at_once(clients, CONTACTS)
    counts = (await radios.command("log 0"))["counts"]
    equal(counts[GET_CONTACTS], 1, "contact lists that the radio was asked for")

    # Another round costs nothing, nor does asking for changes.
    await _ask_at_once(clients, CONTACTS)
    times = sorted(map(_changed, rows))
    middle = times[CONTACTS // 2]
    for client, since in zip(clients, (0, times[0], middle - 1, middle, middle + 1, times[-1] - 1, times[-1], 2 ** 32 - 1)):
        total, some, newest = await client.contacts(since)
        equal(total, CONTACTS, "total")
        equal(sorted(map(_changed, some)), [each for each in times if each > since], f"changes after {since}")
        equal(newest, times[-1] if some else 0, "newest change")
    counts = (await radios.command("log 0"))["counts"]
    equal(counts[GET_CONTACTS], 1, "contact lists that the radio was asked for")


async def a_slow_radio_is_asked_once_however_many_come_meanwhile(rig):
    world = await Simulated(rig).start(contacts=CONTACTS, contact_delay="3ms")
    early = await _clients(rig, world.address)
    first = asyncio.ensure_future(_ask_at_once(early, CONTACTS))
    await counted(world, "contact_passes")        # it has begun, and takes a second
    late = await _clients(rig, world.address)
    await asyncio.gather(first, _ask_at_once(late, CONTACTS))
    equal((await world.counters())["contact_passes"], 1, "contact lists that the radio was asked for")


async def what_one_client_changes_the_others_are_told_and_get(rig):
    world = await Simulated(rig).start(role="admin", contacts=30)
    first, second = await world.client("first"), await world.client("second")
    total, rows, _ = await first.contacts()
    key = rows[7][1:33]
    equal(await first.ask(b"\x0f" + key), b"\x00", "answer to REMOVE_CONTACT")
    equal(await second.push(0x8f), b"\x8f" + key, "what the other client is told")
    equal(await second.ask(b"\x1e" + key), b"\x01\x02", "answer about a contact that is gone")
    left, rows, _ = await second.contacts()
    equal((left, len(rows)), (total - 1, total - 1), "contacts left")
    key = rows[3][1:33]
    equal(await second.ask(b"\x0d" + key), b"\x00", "answer to RESET_PATH")
    equal((await first.ask(b"\x1e" + key))[35], 0xff, "the path that another client has reset")


async def a_simulated_radio_with_all_its_contacts_serves_everybody(rig):
    host = Host(rig)
    host.configure(mock("bench", contacts=CONTACTS, advert_interval="0s", message_interval="0s"), share("bench"))
    await host.start()
    await host.ready("bench")
    await _ask_at_once(await _clients(rig, await host.address("bench")), CONTACTS)
