# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Pairing without a person, through the real bluetoothd."""
import asyncio

from central import Agent, Central
from host import bluez, equal
from hosts import PIN, at, device, refusal, start, stop, within
from world import FREE, NAMES, ROOF

SOON = 5                # seconds within which a fresh radio has to be ready


async def a_fresh_radio_is_paired_once_and_ready_soon_and_the_bond_serves_the_next_start(rig, world):
    host = await start(rig, bluez("ble", ROOF, pin=PIN))
    begin, end = (host.events.all(name)[0] for name in ("link.connecting", "link.ready"))
    rig.note(f"ready after {at(end) - at(begin):.1f} s")
    within(at(end) - at(begin), SOON, "ready")
    equal((world.told("display_passkey", ROOF), world.told("paired", ROOF, authenticated=True)), (1, 1), "pairings")
    assert (await world.bus.device(ROOF))["Bonded"], "not bonded"
    await stop(host, world)

    host = await start(rig, bluez("ble", ROOF, pin=PIN), name="again")
    begin, end = (host.events.all(name)[0] for name in ("link.connecting", "link.ready"))
    rig.note(f"from the bond after {at(end) - at(begin):.1f} s")
    equal((world.told("display_passkey", ROOF), world.told("paired", ROOF)), (1, 1), "pairings after the second start")
    await stop(host, world)


async def a_wrong_pin_is_tried_once_and_told(rig, world):
    host = await start(rig, bluez("ble", ROOF, pin="111111"), wait=False)
    failed = await refusal(host)
    equal((failed["data"]["code"], failed["data"]["disposition"]), ("link.authentication-failed", "permanent"))
    await asyncio.sleep(5)                        # a second attempt would come by now
    equal(world.told("pairing_failure", ROOF), 1, "attempts to pair")
    state = await device(host, "ble")
    equal(state["last_error"]["code"], "link.authentication-failed")
    assert "pin" in state["last_error"]["message"].lower() or "passkey" in state["last_error"]["message"].lower(), state
    assert "111111" not in str(state), "the state tells the PIN"

    host.configure(bluez("ble", ROOF, pin=PIN))
    equal((await host.cli("reload"))[0], 0, "status of the reload")
    await host.ready("ble")
    await stop(host, world)


async def a_radio_that_needs_no_pairing_is_not_paired(rig, world):
    host = await start(rig, bluez("ble", FREE))
    equal((world.told("paired", FREE), world.told("pairing_failure", FREE)), (0, 0), "pairings")
    assert not (await world.bus.device(FREE))["Paired"], "paired"
    await stop(host, world)


async def a_bond_without_the_passkey_is_made_anew(rig, world):
    """A desktop has paired with the radio and asked nobody for a passkey; the firmware then refuses to be used."""
    agent = await Agent().register(world.bus)
    other = Central(ROOF)
    try:
        await other.connect(pair=True)
    except Exception as error:                    # which is how BlueZ tells it of the subscription
        rig.note(f"the other program: {type(error).__name__}: {error}")
    finally:
        await other.disconnect()
        await agent.unregister(world.bus)
    equal(world.told("paired", ROOF, authenticated=False), 1, "bonds without the passkey")
    host = await start(rig, bluez("ble", ROOF, pin=PIN))
    equal(world.told("paired", ROOF, authenticated=True), 1, "bonds with the passkey")
    await stop(host, world)


async def a_radio_is_found_by_its_name(rig, world):
    host = await start(rig, bluez("ble", advertised=NAMES[ROOF], pin=PIN))
    await stop(host, world)
