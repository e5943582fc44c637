# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A small org.bluez client: calls, an agent, and a record of the signals that came, for `probe`."""
import asyncio
import time

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method

from harness import PATIENCE

ADAPTER = "/org/bluez/hci0"
RX_UUID, TX_UUID = "6e400002-b5a3-f393-e0a9-e50e24dcca9e", "6e400003-b5a3-f393-e0a9-e50e24dcca9e"


class Refused(Exception):
    """An error reply: `name` without org.bluez.Error., and its text."""

    def __init__(self, name, text):
        self.name = name.replace("org.bluez.Error.", "")
        super().__init__(f"{self.name} {text}")


class Agent(ServiceInterface):
    def __init__(self, passkey):
        super().__init__("org.bluez.Agent1")
        self.passkey, self.asked = passkey, 0

    @dbus_method()
    def RequestPasskey(self, device: "o") -> "u":        # noqa: F821 (D-Bus signatures)
        self.asked += 1
        return self.passkey

    @dbus_method()
    def Cancel(self):
        pass

    @dbus_method()
    def Release(self):
        pass


class Client:
    def __init__(self, address):
        self.address = address
        self.signals = []                                # (time, path, interface.member, body)
        self.came = asyncio.Event()
        self.agent = None

    async def __aenter__(self):
        self.bus = await MessageBus(bus_address=self.address, negotiate_unix_fd=True).connect()
        self.bus.add_message_handler(self._message)
        for rule in ("type='signal',sender='org.bluez'",
                     "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.bluez'"):
            await self.bus.call(Message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                        "AddMatch", signature="s", body=[rule]))
        return self

    async def __aexit__(self, *_):
        self.bus.disconnect()

    def _message(self, message):
        if message.message_type == MessageType.SIGNAL:
            name = f"{message.interface.rpartition('.')[2]}.{message.member}"
            self.signals.append((time.monotonic(), message.path, name, message.body))
            self.came.set()

    async def call(self, path, method, signature="", *body, timeout=10, raw=False):
        """`method` is Interface.Method of org.bluez, or a full name."""
        interface, _, member = method.rpartition(".")
        interface = interface if "." in interface else f"org.bluez.{interface}"
        reply = await asyncio.wait_for(self.bus.call(Message(
            "org.bluez", path, interface, member, signature=signature, body=list(body))), timeout)
        if reply.message_type == MessageType.ERROR:
            raise Refused(reply.error_name, reply.body[0] if reply.body else "")
        return reply if raw else reply.body[0] if reply.body else None

    async def objects(self):
        return await self.call("/", "org.freedesktop.DBus.ObjectManager.GetManagedObjects")

    async def get(self, path, interface, name):
        value = await self.call(path, "org.freedesktop.DBus.Properties.Get", "ss", f"org.bluez.{interface}", name)
        return value.value

    async def set(self, path, interface, name, signature, value):
        await self.call(path, "org.freedesktop.DBus.Properties.Set", "ssv", f"org.bluez.{interface}", name,
                        Variant(signature, value))

    def mark(self):
        return len(self.signals)

    def changes(self, path, name, since=0):
        """The values that a property went through."""
        return [body[1][name].value for _, where, signal, body in self.signals[since:]
                if where == path and signal == "Properties.PropertiesChanged" and name in body[1]]

    def named(self, signal, since=0):
        return [(where, body) for _, where, name, body in self.signals[since:] if name == signal]

    async def until(self, condition, timeout=PATIENCE):
        """Wait until `condition()` holds, looking after each signal; returns what it returned."""
        deadline = time.monotonic() + timeout
        while not (result := condition()):
            self.came.clear()
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no such signal")
            try:
                await asyncio.wait_for(self.came.wait(), left)
            except asyncio.TimeoutError:
                pass
        return result

    async def change(self, path, name, value, since, timeout=5):
        return await self.until(lambda: value in self.changes(path, name, since), timeout)

    # what tests do again and again ------------------------------------------------------------------------------------
    async def use_agent(self, passkey, capability="KeyboardOnly"):
        if self.agent is None:
            self.agent = Agent(passkey)
            self.bus.export("/agent", self.agent)
        self.agent.passkey, self.agent.asked = passkey, 0
        await self.call("/org/bluez", "AgentManager1.RegisterAgent", "os", "/agent", capability)

    def path(self, address):
        return f"{ADAPTER}/dev_{address.replace(':', '_')}"

    async def find(self, *addresses):
        """Scan until all of them are known."""
        await self.call(ADAPTER, "Adapter1.StartDiscovery")
        deadline = time.monotonic() + PATIENCE
        while not set(map(self.path, addresses)) <= set(await self.objects()):
            if time.monotonic() > deadline:
                raise TimeoutError("not found")
            await asyncio.sleep(0.05)
        await self.call(ADAPTER, "Adapter1.StopDiscovery")

    async def connect(self, address, resolved=True):
        since, path = self.mark(), self.path(address)
        await self.call(path, "Device1.Connect")
        if resolved:
            await self.change(path, "ServicesResolved", True, since)

    async def disconnect(self, address):
        since, path = self.mark(), self.path(address)
        await self.call(path, "Device1.Disconnect")
        await self.change(path, "Connected", False, since)

    async def characteristics(self, address):
        """(RX path, TX path), None where there is none."""
        found = {o["org.bluez.GattCharacteristic1"]["UUID"].value: p for p, o in (await self.objects()).items()
                 if "org.bluez.GattCharacteristic1" in o and p.startswith(self.path(address) + "/")}
        return found.get(RX_UUID), found.get(TX_UUID)

    async def write(self, path, value, kind="request"):
        await self.call(path, "GattCharacteristic1.WriteValue", "aya{sv}", value, {"type": Variant("s", kind)})

    async def echo(self, address, text=b"hello"):
        """Subscribe, write, and wait for what comes back."""
        rx, tx = await self.characteristics(address)
        since = self.mark()
        await self.call(tx, "GattCharacteristic1.StartNotify")
        await self.write(rx, text)
        await self.until(lambda: b"echo:" + text in self.changes(tx, "Value", since))
        await self.call(tx, "GattCharacteristic1.StopNotify")
