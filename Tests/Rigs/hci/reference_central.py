#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A central that is known to work, in the place of the host under test. It opens an exposed controller, for instance

    reference_central.py tcp-client:127.0.0.1:9701        (or unix:PATH, serial:PATH)

and goes: scan, connect, MTU, discover, write before pairing, pair with a passkey, subscribe, echo, bulk both ways,
leave, connect again, encrypt from the bond, echo. One JSON line for each step; the exit status is 0 only if all went as
asked.
"""
import argparse
import asyncio
import json
import logging
import os
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))

from bumble import core, hci                                          # noqa: E402
from bumble.core import UUID                                          # noqa: E402
from bumble.device import Device, DeviceConfiguration, Peer           # noqa: E402
from bumble.keys import JsonKeyStore                                  # noqa: E402
from bumble.pairing import PairingConfig, PairingDelegate             # noqa: E402
from bumble.snoop import BtSnooper                                    # noqa: E402
from bumble.transport import open_transport                           # noqa: E402

from rigio import event                                               # noqa: E402

SERVICE, RX, TX = (UUID(f"6E40000{n}-B5A3-F393-E0A9-E50E24DCCA9E") for n in (1, 2, 3))


class Failed(Exception):
    pass


class Keyboard(PairingDelegate):
    def __init__(self, passkey):
        super().__init__(io_capability=PairingDelegate.IoCapability.KEYBOARD_INPUT_ONLY)
        self.passkey = passkey

    async def get_number(self):
        event("passkey_requested", answer=self.passkey)
        return self.passkey


class Central:
    def __init__(self, options, device, keys):
        self.options, self.device, self.keys = options, device, keys
        self.received = asyncio.Queue()

    async def find(self):
        found = asyncio.get_running_loop().create_future()

        def advertisement(seen):
            wanted = self.options.address in (None, str(seen.address).split("/")[0])
            if wanted and SERVICE in (seen.data.get(0x07) or []) and not found.done():
                found.set_result(seen.address)
        self.device.on("advertisement", advertisement)
        await self.device.start_scanning(filter_duplicates=False)
        self.address = await asyncio.wait_for(found, 10)
        await self.device.stop_scanning()
        event("found", address=str(self.address))

    async def connect(self):
        own = hci.OwnAddressType.PUBLIC if self.options.public else hci.OwnAddressType.RANDOM
        for attempt in range(1, 9):
            try:
                self.link = await asyncio.wait_for(self.device.connect(self.address, own_address_type=own), 10)
                break
            except core.ConnectionError as error:      # btvirt answers 0x3E at once while nobody advertises
                event("connect_retry", attempt=attempt, error=hex(error.error_code))
                await asyncio.sleep(0.25)
        else:
            raise Failed("never connected")
        event("connected", handle=self.link.handle)
        self.link.on("disconnection", lambda reason: event("link_ended", reason=hex(int(reason))))
        self.link.on("security_request", lambda asked: event("security_request", auth_req=int(asked)))
        peer = Peer(self.link)
        event("mtu", mtu=await peer.request_mtu(517))
        await peer.discover_services([SERVICE])
        service = peer.get_services_by_uuid(SERVICE)[0]
        await service.discover_characteristics()
        self.rx, self.tx = (service.get_characteristics_by_uuid(u)[0] for u in (RX, TX))
        event("discovered", rx=self.rx.handle, tx=self.tx.handle, rx_props=str(self.rx.properties))
        self.with_response = bool(self.rx.properties & 0x08)
        self.subscribed = False

    def notified(self, value):
        self.received.put_nowait(bytes(value))

    async def pair(self):
        try:
            await self.rx.write_value(b"too-early", with_response=self.with_response)
            event("early_write", result="accepted")
        except core.ProtocolError as error:
            event("early_write", result="rejected", att_error=hex(error.error_code))
        if self.options.no_pairing:
            return
        try:
            await self.tx.subscribe(self.notified)
            event("early_subscribe", result="accepted")
            await self.tx.unsubscribe(self.notified)
            self.received = asyncio.Queue()
        except core.ProtocolError as error:
            event("early_subscribe", result="rejected", att_error=hex(error.error_code))
        try:
            await self.link.pair()
        except core.ProtocolError as error:
            event("pairing_failed", code=error.error_code, name=error.error_name)
            raise Failed("pairing") from error
        event("paired", encrypted=int(self.link.encryption), sc=self.link.sc)
        stored = json.load(open(self.keys)).get("central", {})
        event("bond_store", keys=list(stored))

    async def encrypt(self):
        try:
            await self.link.encrypt()
        except hci.HCI_Error as error:
            event("bond_refused", hci_error=hex(error.error_code), name=error.error_name)
            raise Failed("bond") from error
        event("encrypted_from_bond", encrypted=int(self.link.encryption))

    async def echo(self, text):
        if not self.subscribed:
            await self.subscribe()
        await self.rx.write_value(text, with_response=self.with_response)
        while (value := await asyncio.wait_for(self.received.get(), 5)) != b"echo:" + text:
            event("unasked", value=value.hex())
        event("echo", value=text.decode())

    async def send_bulk(self, count):
        payload = b"\xf0" + bytes(self.link.att_mtu - 3 - 1)
        for with_response in ([True, False] if self.rx.properties & 0x04 else [True]):
            if with_response and not self.with_response:
                continue
            event("bulk_begin", with_response=with_response, count=count)
            start = time.monotonic()
            for _ in range(count):
                await self.rx.write_value(payload, with_response=with_response)
            await self.rx.write_value(b"\xf1", with_response=self.with_response)
            answer = await asyncio.wait_for(self.received.get(), self.options.patience)
            seconds = time.monotonic() - start
            frames, size = struct.unpack("<II", answer[-8:])
            event("bulk", with_response=with_response, sent=count, received=frames, bytes=size,
                  seconds=round(seconds, 3), kB_per_s=round(size / seconds / 1000, 1))
            if frames != count:
                raise Failed("frames lost")

    async def receive_bulk(self, count):
        length = min(self.link.att_mtu - 3, 200)
        start = time.monotonic()
        await self.rx.write_value(b"\xf2" + struct.pack("<HB", count, length), with_response=self.with_response)
        for number in range(count):
            value = await asyncio.wait_for(self.received.get(), self.options.patience)
            if value[:3] != struct.pack("<BH", 0xF2, number) or len(value) != length:
                raise Failed(f"notification {number} is {value[:3].hex()}")
        event("bulk_in", received=count, seconds=round(time.monotonic() - start, 3))

    async def subscribe(self):
        await self.tx.subscribe(self.notified)
        self.subscribed = True
        event("subscribed", already_received=self.received.qsize())

    async def exchange(self):
        """Write the frames asked for and tell what comes back; for a radio with a bridge, or to listen only."""
        await self.subscribe()
        for frame in self.options.send:
            await self.rx.write_value(bytes.fromhex(frame), with_response=self.with_response)
        deadline = time.monotonic() + self.options.listen
        while (left := deadline - time.monotonic()) > 0:
            try:
                value = await asyncio.wait_for(self.received.get(), left)
            except asyncio.TimeoutError:
                break
            event("notification", len=len(value), hex=value.hex())

    async def run(self):
        await self.find()
        await self.connect()
        await self.pair()
        if self.options.send or self.options.listen:
            await self.exchange()
            await self.link.disconnect()
            return
        await self.echo(b"hello")
        if self.options.bulk:
            await self.send_bulk(self.options.bulk)
            await self.receive_bulk(self.options.bulk)
        for _ in range(self.options.again):
            await self.link.disconnect()
            await self.connect()
            if not self.options.no_pairing:
                await self.encrypt()
            await self.echo(b"again")
        await self.link.disconnect()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("hci", help="Bumble transport of the controller")
    add("--address", help="only this radio")
    add("--passkey", type=int, default=123456)
    add("--justworks", action="store_true")
    add("--no-pairing", action="store_true", help="for a radio without security")
    add("--legacy", action="store_true", help="no LE Secure Connections")
    add("--own", default="C0:00:00:00:00:01", metavar="ADDRESS", help="random static address of this host")
    add("--public", action="store_true", help="connect from the controller's public address")
    add("--bulk", type=int, default=500, help="frames each way; 0 for none")
    add("--again", type=int, default=1, help="how often to come back with the bond")
    add("--send", action="append", default=[], metavar="HEX", help="instead: write this frame (repeatable)")
    add("--listen", type=float, default=0, metavar="SECONDS", help="instead: print notifications for so long")
    add("--patience", type=float, default=30, help="seconds to wait for an answer in a bulk run")
    add("--expect", choices=["pairing", "bond"], help="succeed if this is what fails")
    add("--snoop", metavar="FILE", help="btsnoop capture of the host side")
    add("--debug", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, stream=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="meshrig-") as scratch:
        async with await open_transport(options.hci) as transport:
            device = Device.from_config_with_hci(
                DeviceConfiguration(name="Central", address=hci.Address(options.own)),
                transport.source, transport.sink)
            if options.snoop:
                device.host.snooper = BtSnooper(open(options.snoop, "wb", buffering=0))
            delegate = PairingDelegate() if options.justworks else Keyboard(options.passkey)
            kind = PairingConfig.AddressType.PUBLIC if options.public else PairingConfig.AddressType.RANDOM
            # the identity handed out is the address connected from, or the peer files the bond under another one
            device.pairing_config_factory = lambda link: PairingConfig(
                sc=not options.legacy, mitm=not options.justworks, bonding=True, delegate=delegate,
                identity_address_type=kind)
            device.keystore = None
            await device.power_on()
            keys = os.path.join(scratch, "keys.json")
            device.keystore = JsonKeyStore("central", keys)
            queue = device.host.le_acl_packet_queue
            event("power_on", acl_len=queue.max_packet_size, acl_num=queue.max_in_flight)
            outcome, why = None, None
            try:
                await Central(options, device, keys).run()
            except Failed as failure:
                outcome = why = str(failure)
            except (core.BaseBumbleError, asyncio.TimeoutError, asyncio.CancelledError) as error:
                outcome, why = "error", f"{type(error).__name__}: {error}"
            good = outcome == options.expect
            event("result", good=good, failed=outcome, why=why, unfinished=queue.pending)
            return 0 if good else 1

if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
