# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Faults of links: each is noticed, clients are told, and the link comes back without a person, as often as VM_REPEATS
says, with each notification exactly once."""
import asyncio
import signal
import statistics
import time

import harm
import machine
from companion import AWAY, GET_STATS
from host import bluez, equal
from hosts import PIN, Pushes, at, quiet_client, start, stop, within
from world import FREE, YARD

SEEN, BACK = 3, 10      # seconds until a fault is noticed, and from its end until the link is ready
SECOND = "hci4"         # an adapter besides hci0 that no radio has
DEATH_SEEN = 1          # the same for a killed bluetoothd


class _Times:
    def __init__(self, rig, what):
        self.rig, self.what, self.seen, self.back = rig, what, [], []

    def tell(self):
        parts = [f"{name} after {statistics.median(times):.2f} s, at most {max(times):.2f} s"
                 for name, times in (("noticed", self.seen), ("ready again", self.back)) if times]
        self.rig.note(f"{len(self.back)} x {self.what}: {'; '.join(parts)}")


async def _survives(rig, world, harmful, seen=SEEN, back=BACK, stays_away=True, repeats=None):
    host = await start(rig, bluez("yard", YARD, pin=PIN))
    address = await host.address("yard")
    pushes = await Pushes(rig, world).start(address)
    client = await quiet_client(rig, address)
    times = _Times(rig, harmful.__name__.replace("_", " "))
    for number in range(repeats or world.repeats):
        host.events.mark()
        begin = time.time()
        async with harmful(world, YARD):
            down = await host.events.event("link.down", device="yard")
            if stays_away:
                equal(await client.ask(GET_STATS), AWAY, "what a client is told")
        undone = time.time()
        ready = await host.events.event("link.ready", device="yard")
        times.seen.append(at(down) - begin)
        times.back.append(at(ready) - undone)
        await pushes.come()
        within(times.seen[-1], seen, f"repeat {number}: noticed")
        within(times.back[-1], back, f"repeat {number}: ready")
    times.tell()
    equal(world.told("display_passkey", YARD), 1, "times the passkey was asked for")
    await pushes.end()
    await stop(host, world)


async def radio_out_of_range_and_back(rig, world):
    await _survives(rig, world, harm.radio_out_of_range)


async def radio_hangs_up(rig, world):
    await _survives(rig, world, harm.radio_hangs_up, stays_away=False)


async def bluetoothd_restarted(rig, world):
    await _survives(rig, world, harm.bluetoothd_stopped)


async def bluetoothd_killed(rig, world):
    await _survives(rig, world, harm.bluetoothd_killed, seen=DEATH_SEEN)


async def adapter_off_and_on(rig, world):
    await _survives(rig, world, harm.adapter_switched_off)


async def adapter_removed_and_added(rig, world):
    await _survives(rig, world, harm.adapter_removed)


async def every_controller_pulled_and_put_in(rig, world):
    """Slow, and much like the one before for the host."""
    await _survives(rig, world, harm.every_controller_pulled, repeats=min(world.repeats, 5))


async def bond_lost_by_the_radio_is_made_anew_when_that_is_allowed(rig, world):
    host = await start(rig, bluez("yard", YARD, pin=PIN, stale_bond_repairs=100))
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    times = _Times(rig, "bond lost by the radio")
    for number in range(1, world.repeats + 1):
        host.events.mark()
        async with harm.bond_lost_by_radio(world, YARD):
            undone = time.time()
            await host.ready("yard")
        times.back.append(time.time() - undone)
        await pushes.come()
        equal(world.told("paired", YARD, authenticated=True), 1 + number, "pairings")
    times.tell()
    await pushes.end()
    await stop(host, world)


async def bond_lost_by_the_radio_is_told_when_it_is_not(rig, world):
    host = await start(rig, bluez("yard", YARD, pin=PIN))
    host.events.mark()
    async with harm.bond_lost_by_radio(world, YARD):
        # This bluetoothd does not name the reason, so the host suspects it, says what helps and goes on trying.
        await host.events.event("link.waiting", where=lambda each: "unpair" in each["data"]["text"])
    equal(world.told("paired", YARD), 1, "pairings")
    await stop(host, world)


async def another_adapter_is_not_affected(rig, world):
    await machine.power(True, SECOND)
    host = await start(rig, bluez("yard", YARD, pin=PIN, adapter="hci0"), bluez("free", FREE, adapter=SECOND))
    since = host.events.mark()
    for _ in range(min(world.repeats, 5)):
        host.events.mark()
        async with harm.adapter_switched_off(world, YARD):
            await host.events.event("link.down", device="yard")
        await host.ready("yard")
    equal(host.events.count("link.down", since, device="free"), 0, "lost links on the other adapter")
    await stop(host, world)
    await machine.power(False, SECOND)


async def host_killed_with_the_device_connected(rig, world):
    times = _Times(rig, "host killed")
    host = await start(rig, bluez("yard", YARD, pin=PIN))
    for _ in range(world.repeats):
        host.process.kill(signal.SIGKILL)
        await host.process.ended()
        begin = time.time()
        await host.start()
        await host.ready("yard")
        times.back.append(time.time() - begin)
        pushes = await Pushes(rig, world).start(await host.address("yard"))
        await pushes.come()
        await pushes.end()
        within(times.back[-1], BACK, "ready")
    times.tell()
    equal(world.told("display_passkey", YARD), 1, "times the passkey was asked for")
    await stop(host, world)


async def an_attempt_that_a_program_left_behind_is_ended(rig, world):
    """bluetoothd goes on with a Connect whose caller has died, and answers others that it is in progress."""
    host = await start(rig, bluez("yard", YARD, pin=PIN, autoconnect=False), wait=False)
    async with machine.Bus() as other:
        await other.call(machine.ADAPTER, "Adapter1.StartDiscovery")
        await world.until(lambda: other.device(YARD), "the radio is heard")
        await other.call(machine.ADAPTER, "Adapter1.StopDiscovery")
        await world.tell("gone", YARD)
        attempt = asyncio.ensure_future(other.call(machine.path(YARD), "Device1.Connect"))
        await other.objects()                     # answered behind the beginning of the attempt
        attempt.cancel()
    equal((await host.cli("device", "yard", "connect"))[0], 0, "status of the command")
    await host.process.error_line("an attempt of another program to connect is ended")
    await world.tell("back", YARD)
    await host.ready("yard")
    await stop(host, world)
