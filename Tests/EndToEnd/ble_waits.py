# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Radios that are not heard: what the host does while it waits for them. R23 and its like are the requirements of the
handbook's page BlueZ."""
from ble_worlds import PIN, ROOF, Air, bluez, equal, eventually
from harness import PATIENCE

SILENCE = 90            # seconds without a sign after which a search is begun anew
WORTH_A_WORD = 60       # seconds without a sign from which on an error says what a radio may need


async def _looked_for(rig, **keys):
    """The daemon looks for a radio that is not there yet, in a search that hears nothing from now on."""
    air = await Air.make(rig)
    await air.tell("radio", "adv off Roof")
    air.host.configure(bluez(pin=PIN, **keys))
    await air.host.start()
    await eventually(lambda: air.calls("StartDiscovery") == 1, "the search")
    await air.tell("bluez", "deaf on")
    await air.tell("radio", "adv on Roof")
    return air


async def r23_a_search_that_has_gone_silent_is_begun_anew(rig):
    air = await _looked_for(rig, connect_timeout="300s")
    # The search alone, in one attempt: nothing else begins it anew.
    await air.host.events.event("link.ready", timeout=SILENCE + PATIENCE, device="roof")
    equal((air.calls("StopDiscovery") >= 1, air.calls("StartDiscovery")), (True, 2), "searches ended, begun")
    equal(air.host.events.count("link.down"), 0, "attempts that failed")


async def r23_each_attempt_begins_a_search_of_its_own(rig):
    air = await _looked_for(rig, connect_timeout="2s")
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.timeout", "transient"), str(end))
    await air.host.ready("roof")
    assert air.calls("StartDiscovery") >= 2, air.calls("StartDiscovery")


async def r33_a_radio_that_thinks_it_is_connected_is_tried_on_and_said_to_need_power(rig):
    air = await Air.bound(rig, connect_timeout="2s")
    air.host.events.mark()
    await air.tell("radio", "adv off Roof")        # as ghosts do that believe in their old link
    await air.tell("radio", "linkloss Roof")
    lost = await air.down()
    assert "power-cycle" not in lost["message"], lost
    told = []

    def says(each):
        told.append("power-cycle the radio" in each["data"]["message"])
        return told[-1]
    end = (await air.host.events.event("link.down", WORTH_A_WORD + PATIENCE, says, device="roof"))["data"]
    equal((end["code"], end["disposition"]), ("link.timeout", "transient"), str(end))
    assert "nothing was heard of it for" in end["message"] and len(told) > 1, (end, told)
    # It goes on without a person, and the next link is a new beginning.
    await air.down()
    await air.tell("radio", "adv on Roof")
    await air.host.ready("roof")
    await air.burst(await air.frames(), 10)


async def r38_an_address_means_a_device_of_its_kind_only(rig):
    air = await Air.make(rig)
    document = await air.host.json("scan", "--for", "2s", "--config", _configured(air, f"{ROOF}/public"))
    (found,) = document["devices"]
    equal((found["address"].partition("/")[0], found.get("device")), (ROOF, None), "what is in the air")
    await air.host.start()
    end = await air.down()
    equal((end["code"], end["disposition"]), ("link.timeout", "transient"), str(end))
    equal((air.calls("Connect"), air.calls("Pair")), (0, 0), "links to, and pairings with, the device of the other kind")
    _configured(air, f"{ROOF}/random")
    equal((await air.host.cli("reload"))[0], 0)
    await air.host.ready("roof")


def _configured(air, address):
    air.host.configure(bluez(address=address, pin=PIN, connect_timeout="2s"))
    return air.host.config
