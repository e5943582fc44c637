# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""An adapter that the daemon takes from bluetoothd, which goes on with hci0."""
import contextlib
import os
import time

import machine
from host import equal, table
from world import NAMES

OWN = "hci4"            # besides hci0 the adapter that no radio has
OWN_PATH = f"/org/bluez/{OWN}"


def own(rig, name, address, controller=OWN, **keys):
    """A device behind an adapter of the daemon's own."""
    folder = rig.path("bonds")
    os.makedirs(folder, exist_ok=True)
    return table("[device]", name=name, module="hci", address=address, controller=controller, bond_dir=folder, **keys)


async def known(world, where=OWN_PATH):
    """What bluetoothd says of an adapter; None when it does not know it."""
    facts = (await world.bus.objects()).get(where, {}).get("org.bluez.Adapter1")
    return facts and {name: value.value for name, value in facts.items()}


async def taken(world):
    """bluetoothd does not know the daemon's adapter, and serves its own as before."""
    equal(await known(world), None, f"what bluetoothd knows of {OWN} meanwhile")
    assert (await known(world, machine.ADAPTER))["Powered"], "hci0 is not on any more"


async def comes_back(world):
    """bluetoothd knows it again; after how many seconds."""
    async def there():
        return await known(world) is not None
    begin = time.monotonic()
    await world.until(there, f"bluetoothd knows {OWN} again")
    return time.monotonic() - begin


async def serves_bluetoothd(world):
    """bluetoothd switches it on, hears radios through it, and switches it off."""
    async def heard():
        return {f"{OWN_PATH}/dev_{address.replace(':', '_')}" for address in NAMES} <= set(await world.bus.objects())
    await world.bus.set(OWN_PATH, "Adapter1", "Powered", "b", True)
    await world.bus.call(OWN_PATH, "Adapter1.StartDiscovery")
    await world.until(heard, f"every radio heard through {OWN}")
    await world.bus.call(OWN_PATH, "Adapter1.StopDiscovery")
    await world.bus.set(OWN_PATH, "Adapter1", "Powered", "b", False)


@contextlib.asynccontextmanager
async def switched_on():
    """As bluetoothd leaves an adapter with AutoEnable."""
    await machine.power(True, OWN)
    try:
        yield
    finally:
        await machine.power(False, OWN)
