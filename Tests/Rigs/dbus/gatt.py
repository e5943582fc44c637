# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""GattService1, GattCharacteristic1, GattDescriptor1 of one device, on Bumble's ATT client."""
import asyncio
import socket

from bumble.att import ATT_Error
from bumble.core import ProtocolError
from bumble.gatt import Characteristic

from objects import DBusError

Properties = Characteristic.Properties
FLAGS = [(Properties.BROADCAST, "broadcast"), (Properties.READ, "read"),
         (Properties.WRITE_WITHOUT_RESPONSE, "write-without-response"), (Properties.WRITE, "write"),
         (Properties.NOTIFY, "notify"), (Properties.INDICATE, "indicate")]
ATT_ERRORS = {   # the names that bluetoothd gives to the codes
    0x02: ("NotPermitted", "Read not permitted"), 0x03: ("NotPermitted", "Write not permitted"),
    0x05: ("NotPermitted", "Not paired"), 0x0C: ("NotPermitted", "Not paired"), 0x0F: ("NotPermitted", "Not paired"),
    0x06: ("NotSupported", "Operation is not supported"), 0x07: ("InvalidArguments", "Invalid offset"),
    0x08: ("NotAuthorized", "Operation Not Authorized"), 0x0D: ("InvalidArguments", "Invalid Length")}
LARGEST = 512


def uuid_text(uuid):
    h = uuid.to_bytes(force_128=True)[::-1].hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def att_error(code):
    return DBusError(*ATT_ERRORS.get(code, ("Failed", f"Operation failed with ATT error: 0x{code:02x}")))


class Gatt:
    """All attributes of one device."""

    def __init__(self, device):
        self.device, self.tree, self.faults = device, device.tree, device.faults
        self.characteristics = {}                # path -> GattCharacteristic of the present link
        self.wanted = {}                         # path -> clients with StartNotify; survives disconnections

    async def discover(self, peer):
        """What bluetoothd does after connecting: everything, then ServicesResolved."""
        device = self.device
        await peer.discover_services()
        if self.faults.early_resolved:
            self.tree.set(device.path, "Device1", ServicesResolved=True)
            await asyncio.sleep(self.faults.early_resolved)
        found, characteristics, uuids = {}, {}, []
        for service in peer.services:
            await service.discover_characteristics()
            path = f"{device.path}/service{service.handle:04x}"
            uuids.append(uuid_text(service.uuid))
            found[path] = (service, {"GattService1": {
                "UUID": uuid_text(service.uuid), "Primary": True, "Device": ("o", device.path), "Includes": ("ao", []),
                "Handle": ("q", service.handle)}})
            for proxy in service.characteristics:
                await proxy.discover_descriptors()
                characteristic = GattCharacteristic(self, f"{path}/char{proxy.handle - 1:04x}", proxy)
                characteristics[characteristic.path] = characteristic
                found[characteristic.path] = (characteristic, {"GattCharacteristic1": characteristic.facts(path)})
                for descriptor in proxy.descriptors:
                    found[f"{characteristic.path}/desc{descriptor.handle:04x}"] = (
                        GattDescriptor(self, descriptor), {"GattDescriptor1": {
                            "UUID": uuid_text(descriptor.type), "Characteristic": ("o", characteristic.path),
                            "Value": b"", "Handle": ("q", descriptor.handle)}})
        if device.peer is not peer:
            return                               # the link ended in the meantime
        self.characteristics = characteristics
        for path in [p for p in self.tree.objects if p.startswith(device.path + "/") and p not in found]:
            self.tree.remove(path)               # kept from an earlier link, and no longer true
        for path, (handler, interfaces) in found.items():
            if path in self.tree.objects:
                self.tree.handlers[path] = handler
            else:
                self.tree.add(path, handler, **interfaces)
        self.tree.set(device.path, "Device1", UUIDs=uuids)
        for path in set(self.wanted) & set(self.characteristics):      # bluetoothd arms them again by itself
            await self.characteristics[path].subscribe()
        self.tree.set(device.path, "Device1", ServicesResolved=True)

    def link_gone(self, keep):
        for characteristic in self.characteristics.values():
            characteristic.close()
        self.characteristics = {}
        if not keep:
            for path in [p for p in self.tree.objects if p.startswith(self.device.path + "/service")]:
                self.tree.remove(path)

    def objects_withdrawn(self):
        """bluetoothd, and with it what it knew of its clients, is gone."""
        self.wanted = {}

    def client_gone(self, client):
        for path, clients in list(self.wanted.items()):
            if client in clients:
                asyncio.get_running_loop().create_task(self.stop(path, client))

    async def stop(self, path, client):
        clients = self.wanted.get(path, set())
        clients.discard(client)
        if not clients:
            self.wanted.pop(path, None)
            if path in self.characteristics:
                await self.characteristics[path].unsubscribe()


class GattDescriptor:
    def __init__(self, gatt, proxy):
        self.gatt, self.proxy = gatt, proxy

    async def GattDescriptor1_ReadValue(self, call, options):
        try:
            return "ay", [bytes(await self.gatt.device.while_linked(self.proxy.read_value()))]
        except (ATT_Error, ProtocolError) as error:
            raise att_error(error.error_code) from error


class GattCharacteristic:
    def __init__(self, gatt, path, proxy):
        self.gatt, self.tree, self.device, self.path, self.proxy = gatt, gatt.tree, gatt.device, path, proxy
        self.busy = False                        # one request at a time for each characteristic
        self.notify_end = self.write_end = None  # this side of an acquired socket pair
        self.armed = False

    def facts(self, service):
        has = self.proxy.properties
        facts = {"UUID": uuid_text(self.proxy.uuid), "Service": ("o", service), "Value": b"",
                 "Flags": [name for bit, name in FLAGS if has & bit], "Handle": ("q", self.proxy.handle - 1),
                 "MTU": ("q", self.device.link.att_mtu)}
        if has & Properties.WRITE_WITHOUT_RESPONSE:
            facts["WriteAcquired"] = False
        if has & (Properties.NOTIFY | Properties.INDICATE):
            facts.update(NotifyAcquired=False, Notifying=False)
        return facts

    def _set(self, **properties):
        self.tree.set(self.path, "GattCharacteristic1", **properties)

    async def _att(self, work):
        try:
            return await self.device.while_linked(work)
        except (ATT_Error, ProtocolError) as error:
            raise att_error(error.error_code) from error
        except Exception as error:
            if self.device.link:
                raise
            raise DBusError("Failed", "Not connected") from error

    def _linked(self):
        if self.gatt.characteristics.get(self.path) is not self:
            raise DBusError("Failed", "Not connected")

    def close(self):
        for end in (self.notify_end, self.write_end):
            if end:
                if end is self.write_end:
                    asyncio.get_running_loop().remove_reader(end)
                end.close()
        self.notify_end = self.write_end = None
        self.armed = False
        self._set(Notifying=False, NotifyAcquired=False)

    # read and write ---------------------------------------------------------------------------------------------------
    async def GattCharacteristic1_ReadValue(self, call, options):
        self._linked()
        value = bytes(await self._att(self.proxy.read_value()))
        self.tree.set(self.path, "GattCharacteristic1", always=True, Value=value)
        return "ay", [value]

    async def GattCharacteristic1_WriteValue(self, call, value, options):
        self._linked()
        if self.write_end:
            raise DBusError("NotPermitted", "Write acquired")
        if self.busy:
            raise DBusError("InProgress", "In Progress")
        has, value = self.proxy.properties, bytes(value)
        kind = options["type"].value if "type" in options else "request" if has & Properties.WRITE else "command"
        if not has & (Properties.WRITE if kind == "request" else Properties.WRITE_WITHOUT_RESPONSE):
            raise DBusError("NotSupported", "Operation is not supported")
        if len(value) > LARGEST:
            raise DBusError("InvalidArguments", "Invalid Length")
        if kind == "command":
            if len(value) > self.device.link.att_mtu - 3:
                raise DBusError("Failed", "Failed to initiate write")
            await self._att(self.proxy.write_value(value, with_response=False))
            return
        self.busy = True
        try:
            await self._att(self.proxy.write_value(value, with_response=True))   # a long write beyond MTU-3
        finally:
            self.busy = False

    # notifications ----------------------------------------------------------------------------------------------------
    def _value(self, value):
        for _ in range(2 if self.gatt.faults.duplicate else 1):
            self.tree.set(self.path, "GattCharacteristic1", always=True, Value=bytes(value))

    async def subscribe(self):
        if not self.armed:
            self.armed = True
            try:
                await self._att(self.proxy.subscribe(self._value))
            except DBusError:
                self.armed = False
                raise
            self._set(Notifying=True)

    async def unsubscribe(self):
        if self.armed:
            self.armed = False
            await self._att(self.proxy.unsubscribe(self._value))
            self._set(Notifying=False)

    async def GattCharacteristic1_StartNotify(self, call):
        self._linked()
        if self.notify_end:
            raise DBusError("NotPermitted", "Notify acquired")
        if not self.proxy.properties & (Properties.NOTIFY | Properties.INDICATE):
            raise DBusError("NotSupported", "Operation is not supported")
        await self.subscribe()
        self.gatt.wanted.setdefault(self.path, set()).add(call.sender)

    async def GattCharacteristic1_StopNotify(self, call):
        self._linked()
        if call.sender not in self.gatt.wanted.get(self.path, ()):
            raise DBusError("Failed", "No notify session started")
        await self.gatt.stop(self.path, call.sender)

    async def GattCharacteristic1_AcquireNotify(self, call, options):
        self._linked()
        if self.notify_end:
            raise DBusError("NotPermitted", "Notify acquired")
        if self.armed:
            raise DBusError("InProgress", "In Progress")
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here.setblocking(False)

        def value(data):
            if self.notify_end:                  # nothing yet while the CCCD is being written: lost, as in bluetoothd
                try:
                    here.send(bytes(data))
                except OSError:
                    pass                         # the client does not read: lost as well
        await self._att(self.proxy.subscribe(value))
        self.notify_end = here
        self._set(NotifyAcquired=True)
        return "hq", [0, self.device.link.att_mtu], [there.detach()]

    async def GattCharacteristic1_AcquireWrite(self, call, options):
        self._linked()
        if self.write_end:
            raise DBusError("NotPermitted", "Write acquired")
        if not self.proxy.properties & Properties.WRITE_WITHOUT_RESPONSE:
            raise DBusError("NotSupported", "Operation is not supported")
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here.setblocking(False)
        self.write_end = here
        loop = asyncio.get_running_loop()

        def readable():
            data = here.recv(LARGEST)            # what a datagram holds beyond is lost, as in bluetoothd
            if data:
                loop.create_task(self.proxy.write_value(data, with_response=False))
                return
            loop.remove_reader(here)
            here.close()
            self.write_end = None
            self._set(WriteAcquired=False)
        loop.add_reader(here, readable)
        self._set(WriteAcquired=True)
        return "hq", [0, self.device.link.att_mtu], [there.detach()]
