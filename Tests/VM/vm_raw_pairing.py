# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Pairing and bonds through a controller of the daemon's own, beside bluetoothd: what Tests/EndToEnd/ble_hci shows on
controllers without a kernel. A companion client on the share is what a link is judged by."""
import asyncio

import harm
from adapter import comes_back, own, taken
from companion import text
from host import equal
from hosts import PIN, device, quiet_client, refusal, start, stop
from world import NAMES, ROOF

MAIL = 0x83             # a message waits at the radio


async def _serves(rig, world, host, words):
    """A client of the share gets a message from another radio of the mesh."""
    client = await quiet_client(rig, await host.address("roof"))
    await world.radios.command(f"say 1 0 {words}")
    await client.push(MAIL)
    texts = [text(frame) for frame in await client.mail()]
    assert words in texts, texts
    await client.close()


async def _bond(rig, world, settings, bond, **keys):
    """A radio is paired once; a hung-up link and the next start of the daemon use the bond."""
    async with world.other(ROOF, settings):
        host = await start(rig, own(rig, "roof", ROOF, **keys))
        await taken(world)
        equal(world.told("paired", ROOF, **bond), 1, f"bonds with {bond}")
        await _serves(rig, world, host, "after the pairing")
        host.events.mark()
        async with harm.radio_hangs_up(world, ROOF):
            await host.ready("roof")
        await _serves(rig, world, host, "after the radio hung up")
        await stop(host, world)
        await comes_back(world)
        host = await start(rig, own(rig, "roof", ROOF, **keys), name="again")
        await _serves(rig, world, host, "after the second start")
        await stop(host, world)
        await comes_back(world)
        equal((world.told("paired", ROOF), world.told("pairing_failure", ROOF)), (1, 0), "pairings in three links")
        # Each link after the first begins its encryption with the key of the bond.
        authenticated = bond["authenticated"]
        equal(world.told("encryption", ROOF, on=1, authenticated=authenticated), 3, "encrypted links")


async def a_passkey_with_secure_connections_and_the_bond_of_it(rig, world):
    await _bond(rig, world, "-", {"sc": True, "authenticated": True}, pin=PIN)
    equal(world.told("display_passkey", ROOF), 1, "passkeys shown")


async def a_passkey_with_legacy_pairing_and_the_bond_of_it(rig, world):
    await _bond(rig, world, "legacy=1", {"sc": False, "authenticated": True}, pin=PIN)
    equal(world.told("legacy_key_request", ROOF, match=True), 2, "keys that were asked for")


async def just_works_and_the_bond_of_it(rig, world):
    await _bond(rig, world, "security=justworks,tx_protected=1", {"sc": True, "authenticated": False})
    equal(world.told("display_passkey", ROOF), 0, "passkeys shown")


async def _wrong_pin(rig, world, settings):
    async with world.other(ROOF, settings):
        host = await start(rig, own(rig, "roof", ROOF, pin="111111"), wait=False)
        failed = await refusal(host)
        equal((failed["data"]["code"], failed["data"]["disposition"]), ("link.authentication-failed", "permanent"))
        links = world.told("connected", ROOF)
        await asyncio.sleep(5)                    # a second attempt would come by now
        equal((world.told("pairing_failure", ROOF), world.told("connected", ROOF)), (1, links), "attempts and links")
        message = (await device(host, "roof"))["last_error"]["message"]
        assert "PIN" in message and NAMES[ROOF] in message, message
        assert "111111" not in message, "the state tells the PIN"
        host.configure(own(rig, "roof", ROOF, pin=PIN), *host.shares)
        equal((await host.cli("reload"))[0], 0, "status of the reload")
        await host.ready("roof")
        await _serves(rig, world, host, "with the right PIN")
        await stop(host, world)
        await comes_back(world)


async def a_wrong_pin_is_tried_once_and_told(rig, world):
    await _wrong_pin(rig, world, "-")


async def a_wrong_pin_with_legacy_pairing_too(rig, world):
    await _wrong_pin(rig, world, "legacy=1")


async def a_bond_that_the_radio_lost_waits_for_a_person(rig, world):
    host = await start(rig, own(rig, "roof", ROOF, pin=PIN))
    async with harm.bond_lost_by_radio(world, ROOF):
        waiting = await host.events.event("link.waiting", where=lambda each: "unpair" in each["data"]["text"])
    equal(waiting["data"]["code"], "link.authentication-failed")
    equal(world.told("paired", ROOF), 1, "pairings")
    status, out, error = await host.cli("unpair", "roof")
    equal(status, 0, error or out)
    equal((await host.cli("device", "roof", "connect"))[0], 0)
    await host.ready("roof")
    equal(world.told("paired", ROOF), 2, "pairings")
    await _serves(rig, world, host, "from the new bond")
    await stop(host, world)
    await comes_back(world)


async def a_bond_that_the_radio_lost_is_made_anew_where_that_is_allowed(rig, world):
    host = await start(rig, own(rig, "roof", ROOF, pin=PIN, stale_bond_repairs=1))
    host.events.mark()
    async with harm.bond_lost_by_radio(world, ROOF):
        await host.ready("roof")
    equal(world.told("paired", ROOF, authenticated=True), 2, "pairings")
    await _serves(rig, world, host, "from the new bond")
    await stop(host, world)
    await comes_back(world)


async def a_radio_that_was_out_of_range_is_back_with_its_bond(rig, world):
    host = await start(rig, own(rig, "roof", ROOF, pin=PIN))
    host.events.mark()
    async with harm.radio_out_of_range(world, ROOF):
        await host.events.event("link.down")
    await host.ready("roof")
    equal((world.told("paired", ROOF), world.told("encryption", ROOF, on=1)), (1, 2), "pairings and encrypted links")
    await _serves(rig, world, host, "back in range")
    await stop(host, world)
    await comes_back(world)
