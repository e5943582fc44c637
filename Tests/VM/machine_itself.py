# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The machine, its radios and its faults, with bleak in the place of the host."""
import contextlib
import time

import harm
from central import APP_START, Agent, Central
from world import FREE, PASSKEY, ROOF, YARD


async def _paired(world, address, passkey=PASSKEY):
    """A central that is paired with the radio and connected; its agent."""
    agent = await Agent(passkey).register(world.bus)
    central = Central(address)
    try:
        await central.connect(pair=True)
    finally:
        await agent.unregister(world.bus)
    return central, agent


async def a_companion_answers_over_bluetooth(rig, world):
    central = Central(FREE)
    await central.connect()
    assert (await central.ask(APP_START, 5))[-7:] == b"Radio 1", central.frames
    assert not (await world.bus.device(FREE))["Paired"]
    await central.disconnect()


async def a_passkey_is_asked_for_once(rig, world):
    central, agent = await _paired(world, ROOF)
    assert agent.asked == 1 and (await world.bus.device(ROOF))["Bonded"], agent.asked
    assert (await central.ask(APP_START, 5))[-7:] == b"Radio 0", central.frames
    await central.disconnect()
    await central.connect()
    assert (await central.ask(APP_START, 5))[-7:] == b"Radio 0"
    assert agent.asked == 1
    await central.disconnect()


async def every_notification_of_a_burst_arrives_in_order(rig, world):
    central, _ = await _paired(world, YARD)
    await world.burst.command("burst 500 100")
    await central.until(lambda: len(central.numbers()) >= 500, "500 pushes")
    numbers = central.numbers()
    assert numbers == list(range(numbers[0], numbers[0] + 500)), numbers
    rig.note(f"500 in {central.times[-1] - central.times[-500]:.2f} s")
    await central.disconnect()


async def a_bond_that_the_radio_lost_is_made_anew_by_hand(rig, world):
    central, _ = await _paired(world, YARD)
    async with harm.bond_lost_by_radio(world, YARD):
        with contextlib.suppress(Exception):
            await central.disconnect(timeout=3)
        begin = time.monotonic()
        try:
            await central.connect()
        except Exception as error:
            rig.note(f"refused after {time.monotonic() - begin:.1f} s: {type(error).__name__}: {error}")
        else:
            raise AssertionError("connected with a bond that the radio does not know")
    await world.bus.remove(YARD)
    central, _ = await _paired(world, YARD)
    assert (await central.ask(APP_START, 5))[0] == 5
    await central.disconnect()


async def _survives(rig, world, harm):
    """A link that a person would make anew works again, from the bond."""
    central, agent = await _paired(world, YARD)
    for _ in range(min(world.repeats, 3)):
        begin = time.monotonic()
        async with harm(world, YARD):
            done = time.monotonic()
        undone = time.monotonic()
        with contextlib.suppress(Exception):
            await central.disconnect(timeout=3)
        await central.connect()
        await central.ask(APP_START, 5)
        seen = len(central.frames)
        await world.burst.command("burst 20 100")
        await central.until(lambda: len(central.numbers(seen)) >= 20, "20 pushes")
        rig.note(f"{harm.__name__}: done in {done - begin:.1f} s, undone in {undone - done:.1f} s, "
                 f"then {time.monotonic() - undone:.1f} s")
    assert agent.asked == 1
    await central.disconnect()


async def radio_out_of_range(rig, world):
    await _survives(rig, world, harm.radio_out_of_range)


async def radio_hangs_up(rig, world):
    await _survives(rig, world, harm.radio_hangs_up)


async def bluetoothd_stopped(rig, world):
    await _survives(rig, world, harm.bluetoothd_stopped)


async def bluetoothd_killed(rig, world):
    await _survives(rig, world, harm.bluetoothd_killed)


async def adapter_switched_off(rig, world):
    await _survives(rig, world, harm.adapter_switched_off)


async def adapter_removed(rig, world):
    await _survives(rig, world, harm.adapter_removed)


async def every_controller_pulled(rig, world):
    await _survives(rig, world, harm.every_controller_pulled)
