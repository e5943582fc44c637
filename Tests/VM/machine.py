# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The virtual machine that this program runs in: what can be done to its controllers and to bluetoothd.

The work is done by the shell functions of Tests/Rigs/vm/guest/lib.sh. Everything here returns when it has taken effect.
"""
import asyncio
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path += [os.path.join(TESTS, "Rigs", "common"), os.path.join(TESTS, "EndToEnd")]

from bumble.transport import open_transport                            # noqa: E402
from dbus_fast import BusType, Message, MessageType, Variant           # noqa: E402
from dbus_fast.aio import MessageBus                                   # noqa: E402

ADAPTER = "/org/bluez/hci0"


def path(address, adapter=ADAPTER):
    return f"{adapter}/dev_{address.replace(':', '_')}"


async def shell(line, timeout=60):
    """Run a line of shell that may use the functions of lib.sh."""
    child = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", f'. "$VMRIG/guest/lib.sh"; {line}', stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    out, _ = await asyncio.wait_for(child.communicate(), timeout)
    if child.returncode:
        raise RuntimeError(f"{line}: status {child.returncode}: {out.decode(errors='replace')[-300:]}")
    return out.decode(errors="replace")


# controllers and power --------------------------------------------------------------------------------------------

async def power(on, adapter="hci0"):
    """Through the kernel, as rfkill would, not through bluetoothd."""
    await shell(f"power {'on' if on else 'off'} {adapter}")


async def controllers_stop():
    """As if all dongles were pulled, those of the radios with them."""
    await shell("controllers_stop")


async def controllers_start():
    """All of them back; hci0 is on when bluetoothd knows it again."""
    await shell("controllers_start && wait_for 20 adapter_ready && power on")


async def adapter_remove():
    """bluetoothd and the kernel's sockets lose hci0, the radios stay: a user channel takes the controller away.
    Returns what `adapter_add` gives back."""
    await power(False)
    return await open_transport("hci-socket:0")


async def adapter_add(taken):
    await taken.close()
    await shell("wait_for 20 adapter_ready && power on")


# bluetoothd -------------------------------------------------------------------------------------------------------

async def bluetoothd_stop(number=signal.SIGTERM):
    """Returns when the process is gone. The signal is sent at once: tests measure from there."""
    with open("/run/bluetoothd.pid", encoding="ascii") as file:
        pid = int(file.read())
    os.kill(pid, number)
    while os.path.exists(f"/proc/{pid}"):
        await asyncio.sleep(0.02)


async def bluetoothd_start():
    """Returns when it serves hci0, which is on."""
    await shell("bluetoothd_start")


# its objects ------------------------------------------------------------------------------------------------------

class Refused(Exception):
    """An error reply."""


class Bus:
    """A connection to the system bus for looking at bluetoothd's objects, and for the few things a person would do."""

    async def __aenter__(self):
        self.bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        return self

    async def __aexit__(self, *_):
        self.bus.disconnect()

    async def call(self, where, method, signature="", *body, timeout=30):
        interface, _, member = method.rpartition(".")
        interface = interface if "." in interface else f"org.bluez.{interface}"
        reply = await asyncio.wait_for(self.bus.call(Message(
            "org.bluez", where, interface, member, signature=signature, body=list(body))), timeout)
        if reply.message_type == MessageType.ERROR:
            raise Refused(f"{reply.error_name}: {reply.body[0] if reply.body else ''}")
        return reply.body[0] if reply.body else None

    async def objects(self):
        """All of bluetoothd's objects with their interfaces; none when it does not run."""
        try:
            return await self.call("/", "org.freedesktop.DBus.ObjectManager.GetManagedObjects")
        except Refused:
            return {}

    async def device(self, address):
        """Plain values of a device's properties; empty when bluetoothd does not know it."""
        facts = (await self.objects()).get(path(address), {}).get("org.bluez.Device1", {})
        return {name: value.value for name, value in facts.items()}

    async def set(self, where, interface, name, signature, value):
        await self.call(where, "org.freedesktop.DBus.Properties.Set", "ssv", f"org.bluez.{interface}", name,
                        Variant(signature, value))

    async def remove(self, address):
        """This machine's side of the bond, and all else that any adapter knows of the device."""
        for where in await self.objects():
            if where.endswith(path(address, "")):
                await self.call(where.rpartition("/")[0], "Adapter1.RemoveDevice", "o", where)

    async def connected(self):
        """Paths of the devices that are connected."""
        return [where for where, interfaces in (await self.objects()).items()
                if "org.bluez.Device1" in interfaces and interfaces["org.bluez.Device1"]["Connected"].value]
