# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What happens to a link, and ends again: each is a context manager that is entered when the harm is done, and left
when all is well again but for the link."""
import contextlib
import functools
import signal

import machine
from world import NAMES


def _ends_link(harm):
    """A context manager; the radio's own controller tells that the link has ended."""
    @functools.wraps(harm)
    @contextlib.asynccontextmanager
    async def managed(world, address):
        since = len(world.air.events)
        async with contextlib.asynccontextmanager(harm)(world, address):
            await world.air.until(lambda: world.air.count("disconnected", since, radio=NAMES[address]),
                                  "end of the link")
            yield
    return managed


@_ends_link
async def radio_out_of_range(world, address):
    """It does not advertise; the link ended with a supervision timeout."""
    await world.tell("gone", address)
    yield
    await world.tell("back", address)


@_ends_link
async def radio_hangs_up(world, address):
    """It ends the link, and advertises at once."""
    await world.tell("terminate", address)
    yield


@_ends_link
async def bluetoothd_stopped(world, address):
    """As systemctl stop: it switches its adapters off and takes its objects back."""
    await machine.bluetoothd_stop(signal.SIGTERM)
    yield
    await machine.bluetoothd_start()


@_ends_link
async def bluetoothd_killed(world, address):
    """It goes without a word."""
    await machine.bluetoothd_stop(signal.SIGKILL)
    yield
    await machine.bluetoothd_start()


@_ends_link
async def adapter_switched_off(world, address):
    await machine.power(False)
    yield
    await machine.power(True)


@_ends_link
async def adapter_removed(world, address):
    """Only hci0; the radios stay."""
    taken = await machine.adapter_remove()
    yield
    await machine.adapter_add(taken)


@_ends_link
async def bond_lost_by_radio(world, address):
    """It was flashed anew: link and keys are gone."""
    await world.tell("forget", address)
    await world.tell("linkloss", address)
    yield


@contextlib.asynccontextmanager
async def every_controller_pulled(world, address):
    """hci0 without a switching off before, and those of the radios with it."""
    await machine.controllers_stop()
    await world.tell("shut")                     # the kernel would number the new ones on while the old are held
    yield
    await machine.controllers_start()
    await world.tell("reopen")
