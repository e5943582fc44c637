# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The daemon with radios behind bluetoothd."""
import datetime
import os
import time
import tomllib

from companion import Client
from host import Host, equal, share

PIN = "123456"
SLOWNESS = float(os.environ.get("VM_SLOWNESS", "0"))   # how many times longer than promised anything may take; 0: any time

# Repeats would take long with pauses of up to 30 s; a radio that hangs up again and again is not another host's here.
LINK = {"backoff": {"first": "250ms", "max": "2s"}, "contention_backoff": "500ms"}


async def start(rig, *devices, name="host", wait=True):
    """A host with these devices (`bluez`), each with a share, all of them ready."""
    host = Host(rig, name)
    host.link = dict(LINK)
    names = [tomllib.loads(each)["device"][0]["name"] for each in devices]
    host.shares = [share(each) for each in names]
    host.configure(*devices, *host.shares)
    await host.start()
    if wait:
        await host.ready(*names)
    return host


async def stop(host, world):
    """The host ends in good order and leaves no device connected."""
    equal(await host.stop(), 0, "status of the host")
    equal(await world.bus.connected(), [], "devices still connected")


def within(took, limit, what):
    """A time that is promised for a machine that does nothing else; elsewhere it says nothing, and is only told."""
    if SLOWNESS:
        assert took < limit * SLOWNESS, f"{what} after {took:.2f} s"


def at(event):
    """When the daemon told of it, as time.time() has it."""
    return datetime.datetime.fromisoformat(event["ts"]).timestamp()


async def device(host, name):
    return (await host.json("device", name, "status"))["device"]


async def refusal(host):
    """The next reason to wait, but for a link that did not come up (HCI 0x3E): that is no answer, and tried again."""
    return await host.events.event(
        "link.waiting", where=lambda each: each["data"].get("code") not in (None, "link.connection-failed"))


class Pushes:
    """A client that counts the numbered pushes of the radio with burst_radio behind it: each exactly once, in order."""

    def __init__(self, rig, world):
        self.rig, self.world, self.expected = rig, world, 0

    async def start(self, address):
        self.load = await self.rig.load(address, "--interactive", "--timeout", 7200)
        await self.load.event("connected")
        return self

    async def come(self, count=20, length=100):
        """So many are sent now, and arrive."""
        self.expected += count
        await self.load.command(f"expect {self.expected}")
        begin = time.monotonic()
        await self.world.burst.command(f"burst {count} {length}")
        await self.load.event("reached", pushes=self.expected)
        return time.monotonic() - begin

    async def end(self):
        """What the client got in all."""
        self.load.child.stdin.write(b"end\n")
        result = await self.load.event("result")
        equal((result["received"], result["gaps"], result["noise"]), (self.expected, 0, 0), "pushes, gaps, noise")


async def quiet_client(rig, address):
    client = await Client.connect(address)
    rig.closers.append(client.close)
    return await client.greet(version=3)
