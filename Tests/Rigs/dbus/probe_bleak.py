#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""bleak against the facade: what its users do, and what happens to them when bluetoothd goes. Part of `probe`."""
import asyncio
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), HERE]

from bleak import BleakClient, BleakScanner              # noqa: E402

from client import Client                                # noqa: E402
from rigio import event                                  # noqa: E402

NUS, RX, TX = (f"6e40000{n}-b5a3-f393-e0a9-e50e24dcca9e" for n in (1, 2, 3))
BULK, SIZE = 300, 182


async def step(name, work, timeout=12, fails_with=None):
    begin, value = time.monotonic(), None
    try:
        value = await asyncio.wait_for(work, timeout)
        good, detail = fails_with is None, repr(value)
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        good = fails_with is not None and fails_with in detail
    event("step", name=f"{name} ({time.monotonic() - begin:.2f} s)", good=good, detail=detail[:120])
    return value


def scan():
    return BleakScanner.find_device_by_filter(lambda device, seen: NUS in seen.service_uuids, timeout=7)


class Session:
    def __init__(self, device):
        self.gone, self.values = asyncio.Event(), asyncio.Queue()
        self.client = BleakClient(device, disconnected_callback=lambda _: self.gone.set(), timeout=10)

    def notified(self, _, value):
        self.values.put_nowait(bytes(value))

    async def echo(self, text):
        await self.client.write_gatt_char(RX, text, response=True)
        while await asyncio.wait_for(self.values.get(), 3) != b"echo:" + text:
            pass

    async def bulk(self, response):
        begin = time.monotonic()
        for _ in range(BULK):
            await self.client.write_gatt_char(RX, b"\xf0" + bytes(SIZE - 1), response=response)
        await self.client.write_gatt_char(RX, b"\xf1", response=True)
        answer = await asyncio.wait_for(self.values.get(), 10)
        if int.from_bytes(answer[6:10], "little") != BULK:
            raise RuntimeError("frames lost")
        return f"{BULK * SIZE / (time.monotonic() - begin) / 1000:.0f} kB/s"


async def main():
    device = await step("scan", scan())
    first = Session(device)
    await step("connect", first.client.connect())
    await step("write before pairing", first.client.write_gatt_char(RX, b"early", response=True),
               fails_with="Not paired")
    await step("pair() without an agent", first.client.pair(), fails_with="AuthenticationFailed")
    await step("unpair()", first.client.unpair())
    await first.client.disconnect()
    async with Client(os.environ["DBUS_SYSTEM_BUS_ADDRESS"]) as agent:
        await agent.use_agent(123456)
        await agent.call("/org/bluez", "AgentManager1.RequestDefaultAgent", "o", "/agent")
        session = Session(await step("scan again", scan()))
        await step("connect", session.client.connect())
        await step("pair() with a passkey agent on another connection", session.client.pair())
        for plain in (True, False):
            how = "StartNotify" if plain else "AcquireNotify"
            await step(f"start_notify, {how}",
                       session.client.start_notify(TX, session.notified, bluez={"use_start_notify": plain}))
            await step(f"echo, {how}", session.echo(b"hello"))
            await step("300 write requests", session.bulk(True))
            await step("300 write commands", session.bulk(False))
            await session.client.stop_notify(TX)
        await step("disconnect", session.client.disconnect())
        await step("disconnected callback", session.gone.wait(), 2)
        await step("connect with the bond", session.client.connect())
        await step("write without pairing", session.client.write_gatt_char(RX, b"again", response=True))
        session.gone.clear()
        await step("the radio drops the link (F3)", session.client.write_gatt_char(RX, b"\xf3", response=True))
        await step("disconnected callback", session.gone.wait(), 2)
        await step("connect", session.client.connect())
        session.gone.clear()
        event("now_crash")
        await asyncio.sleep(3)
        event("note", text=f"bleak, 3 s after bluetoothd was killed: disconnected callback {session.gone.is_set()}, "
                           f"is_connected {session.client.is_connected}")
    event("end")
    os._exit(0)                                          # bleak would wait for its dead link

asyncio.run(main())
