# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A central made of bleak, in the place of the host under test: it shows that the machine and its faults work when the
host does not, and is what figures are compared with."""
import asyncio
import time
import warnings

from bleak import BleakClient, BleakScanner
from dbus_fast.service import ServiceInterface, dbus_method

from harness import PATIENCE

RX, TX = "6e400002-b5a3-f393-e0a9-e50e24dcca9e", "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
APP_START = b"\x01\x03      rig"
AGENT = "/rig/agent"

warnings.filterwarnings("ignore", "Using default MTU value")


class Agent(ServiceInterface):
    """Answers every question with one passkey, or agrees to all when there is none. It is the default agent, because bleak pairs on a connection of its own.
    bluetoothd forgets it when it is started anew."""

    def __init__(self, passkey=None):
        super().__init__("org.bluez.Agent1")
        self.passkey, self.asked = passkey, 0

    async def register(self, bus):
        if not getattr(self, "exported", False):
            bus.bus.export(AGENT, self)
            self.exported = True
        await bus.call("/org/bluez", "AgentManager1.RegisterAgent", "os", AGENT,
                       "NoInputNoOutput" if self.passkey is None else "KeyboardOnly")
        await bus.call("/org/bluez", "AgentManager1.RequestDefaultAgent", "o", AGENT)
        return self

    async def unregister(self, bus):
        await bus.call("/org/bluez", "AgentManager1.UnregisterAgent", "o", AGENT)
        bus.bus.unexport(AGENT, self)

    @dbus_method()
    def RequestPasskey(self, device: "o") -> "u":        # noqa: F821 (D-Bus signatures)
        self.asked += 1
        return self.passkey

    @dbus_method()
    def RequestAuthorization(self, device: "o"):         # noqa: F821
        self.asked += 1

    @dbus_method()
    def Cancel(self):
        pass

    @dbus_method()
    def Release(self):
        pass


class Central:
    """One link at a time. `frames` are all notifications, with `times`."""

    def __init__(self, address):
        self.address = address
        self.frames, self.times = [], []
        self.came, self.lost = asyncio.Event(), asyncio.Event()
        self.client = None

    def _notified(self, _, value):
        self.frames.append(bytes(value))
        self.times.append(time.monotonic())
        self.came.set()

    async def find(self, timeout=PATIENCE):
        device = await BleakScanner.find_device_by_address(self.address, timeout=timeout)
        if device is None:
            raise TimeoutError(f"{self.address} not found")
        return device

    async def connect(self, pair=False, timeout=60):
        """Scan, connect, pair if told to, subscribe."""
        await self.subscribe(BleakClient(await self.find(), lambda _: self.lost.set(), pair=pair), timeout)

    async def subscribe(self, client, timeout=60):
        self.lost.clear()
        self.client = client
        async with asyncio.timeout(timeout):
            if not client.is_connected:
                await client.connect()
            await client.start_notify(TX, self._notified)

    async def disconnect(self, timeout=PATIENCE):
        client, self.client = self.client, None
        if client:
            async with asyncio.timeout(timeout):   # bleak waits for ever for a forgotten device
                await client.disconnect()

    async def write(self, payload, timeout=PATIENCE):
        async with asyncio.timeout(timeout):
            await self.client.write_gatt_char(RX, payload, response=True)

    async def until(self, condition, what, timeout=PATIENCE):
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    self.came.clear()
                    await self.came.wait()
        except TimeoutError:
            raise AssertionError(f"no {what} within {timeout} s; {len(self.frames)} frames came") from None

    async def ask(self, payload, code, timeout=PATIENCE):
        """Send a frame; the first frame with this code that came since."""
        since = len(self.frames)
        await self.write(payload)
        await self.until(lambda: any(frame[:1] == bytes([code]) for frame in self.frames[since:]), f"answer {code}",
                         timeout)
        return next(frame for frame in self.frames[since:] if frame[:1] == bytes([code]))

    def numbers(self, since=0):
        """Of burst_radio's pushes."""
        return [int.from_bytes(frame[3:7], "little") for frame in self.frames[since:] if frame[:1] == b"\x88"]
