# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Adapter1 and AgentManager1: power, discovery sessions of several clients, devices as they are seen, agents."""
import asyncio
import time

from bumble.core import UUID
from bumble.pairing import PairingConfig

from device import Device
from gatt import uuid_text
from objects import DBusError


class AgentManager:
    """Whose passkey is asked for: the agent of the client that calls Pair, else the default agent, else nobody's."""
    PATH = "/org/bluez"

    def __init__(self, tree):
        self.tree, self.agents, self.defaults = tree, {}, []
        tree.gone.append(self.forget)

    def export(self):
        self.agents, self.defaults = {}, []
        self.tree.add(self.PATH, self, AgentManager1={})

    def forget(self, client):
        self.agents.pop(client, None)
        self.defaults = [name for name in self.defaults if name != client]

    def choose(self, client):
        """(client, path, capability) or None."""
        for name in [client, *self.defaults]:
            if name in self.agents:
                return (name, *self.agents[name])
        return None

    async def AgentManager1_RegisterAgent(self, call, path, capability):
        if call.sender in self.agents:
            raise DBusError("AlreadyExists", "Already Exists")
        if capability not in ("", "DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay"):
            raise DBusError("InvalidArguments", "Invalid arguments in method call")
        self.agents[call.sender] = (path, capability or "KeyboardDisplay")

    async def AgentManager1_UnregisterAgent(self, call, path):
        if self.agents.get(call.sender, ("",))[0] != path:
            raise DBusError("DoesNotExist", "Does Not Exist")
        self.forget(call.sender)

    async def AgentManager1_RequestDefaultAgent(self, call, path):
        if call.sender not in self.agents:
            raise DBusError("DoesNotExist", "Does Not Exist")
        self.defaults.insert(0, call.sender)


class Adapter:
    def __init__(self, tree, index, radio, agents, faults, temporary=30.0):
        """`radio` is Bumble's device, the LE host below; `temporary`: seconds that an unused device is remembered."""
        self.name, self.path = f"hci{index}", f"/org/bluez/hci{index}"
        self.address = f"00:AA:BB:CC:DD:{index:02X}"
        self.tree, self.radio, self.agents, self.faults, self.temporary = tree, radio, agents, faults, temporary
        self.pairing_configs = {}                # by link; pairing that nobody here asked for has the other
        radio.pairing_config_factory = lambda link: self.pairing_configs.get(
            link.handle, PairingConfig(identity_address_type=PairingConfig.AddressType.RANDOM))
        self.devices = {}                        # address -> Device
        self.sessions = {}                       # client -> discovery filter
        self.filters = {}                        # what SetDiscoveryFilter said before StartDiscovery
        self.powered, self.blocked, self.present, self.scanning = True, False, False, False
        self.connecting = asyncio.Lock()         # the controller sets up one link at a time
        radio.on("advertisement", self._advertisement)
        tree.gone.append(self._client_gone)

    # life -------------------------------------------------------------------------------------------------------------
    def export(self):
        """The adapter and its bonded devices come up, as at the start of bluetoothd."""
        self.present = True
        self.sessions, self.filters = {}, {}
        on = self.powered and not self.blocked
        self.tree.add(self.path, self, Adapter1={
            "Address": self.address, "AddressType": "public", "Name": self.name, "Alias": self.name, "Class": ("u", 0),
            "Powered": on, "PowerState": self._power_state(), "Discoverable": False, "Pairable": True,
            "Discovering": False, "UUIDs": [], "Modalias": "usb:v1D6Bp0246d0557", "Roles": ["central", "peripheral"]})
        for device in list(self.devices.values()):
            if device.bonded:
                device.export()
            else:
                del self.devices[device.address]

    async def withdraw(self):
        """The adapter is gone: links drop, every object below it goes."""
        self.present = False
        await self._scan(False)
        for device in self.devices.values():
            await device.drop()
        self.tree.remove(self.path)
        self.devices = {a: d for a, d in self.devices.items() if d.bonded}

    def _power_state(self):
        return "off-blocked" if self.blocked else "on" if self.powered else "off"

    async def power(self, on):
        if on == self.powered and not self.blocked:
            return
        self.powered = on
        await self._power_changed()

    async def block(self, yes):
        """rfkill: powered off from outside, and Powered cannot be set until it is lifted."""
        self.blocked = yes
        if yes:
            self.powered = False
        await self._power_changed()

    async def _power_changed(self):
        on = self.powered and not self.blocked
        if not on:
            self.sessions.clear()
            await self._scan(False)
            for device in list(self.devices.values()):
                await device.drop()
        self.tree.set(self.path, "Adapter1", Powered=on, PowerState=self._power_state(), Discovering=False)

    def ready(self):
        if not (self.present and self.powered and not self.blocked):
            raise DBusError("NotReady", "Resource Not Ready")

    # properties -------------------------------------------------------------------------------------------------------
    async def set_Powered(self, on):
        if on and self.blocked:
            raise DBusError("Blocked", "Blocked through rfkill")
        await self.power(on)

    async def set_Alias(self, name):
        self.tree.set(self.path, "Adapter1", Alias=name)

    async def set_Pairable(self, yes):
        self.tree.set(self.path, "Adapter1", Pairable=yes)

    async def set_Discoverable(self, yes):
        self.tree.set(self.path, "Adapter1", Discoverable=yes)

    # discovery --------------------------------------------------------------------------------------------------------
    async def Adapter1_SetDiscoveryFilter(self, call, wanted):
        self.ready()
        self.filters[call.sender] = {name: value.value for name, value in wanted.items()}

    async def Adapter1_StartDiscovery(self, call):
        self.ready()
        if call.sender in self.sessions:
            raise DBusError("InProgress", "Operation already in progress")
        self.sessions[call.sender] = self.filters.get(call.sender, {})
        await self._scan(True)

    async def Adapter1_StopDiscovery(self, call):
        self.ready()
        if self.sessions.pop(call.sender, None) is None:
            raise DBusError("Failed", "No discovery started")
        if not self.sessions:
            await self._scan(False)

    async def Adapter1_RemoveDevice(self, call, path):
        device = next((d for d in self.devices.values() if d.path == path), None)
        if device is None:
            raise DBusError("DoesNotExist", "Does Not Exist")
        await self.remove(device)

    async def remove(self, device, keep_bond=False):
        await device.drop()
        if not keep_bond:
            await device.unbond()
        self.devices.pop(device.address, None)
        self.tree.remove(device.path)

    def _client_gone(self, client):
        for device in list(self.devices.values()):
            device.gatt.client_gone(client)
        self.filters.pop(client, None)
        if self.sessions.pop(client, None) is not None and not self.sessions:
            asyncio.get_running_loop().create_task(self._scan(False))

    async def _scan(self, on):
        if on == self.scanning:
            return
        self.scanning = on
        if on:
            self.faults.deaf = False
        await (self.radio.start_scanning(filter_duplicates=False) if on else self.radio.stop_scanning())
        self.tree.set(self.path, "Adapter1", Discovering=on)
        if not on:
            for device in self.devices.values():
                self.tree.set(device.path, "Device1", RSSI=None)

    def _advertisement(self, seen):
        if not self.scanning or not self.present or self.faults.deaf:
            return
        address = str(seen.address).split("/")[0]
        uuids = [uuid_text(u if isinstance(u, UUID) else UUID.from_bytes(bytes(u))) for u in seen.data.get(7) or []]
        wanted = [{u.lower() for u in f["UUIDs"]} if f.get("UUIDs") else None for f in self.sessions.values()]
        device = self.devices.get(address)
        if device is None:
            if wanted and all(w is not None and not w & set(uuids) for w in wanted):
                return                           # every client asks for other services
            device = self.device(address, "public" if seen.address.is_public else "random")
        device.seen_at = time.monotonic()
        facts = {"RSSI": ("n", seen.rssi)}
        if uuids:
            facts["UUIDs"] = uuids
        if name := seen.data.get(9):
            facts["Name"] = facts["Alias"] = name if isinstance(name, str) else name.decode()
        always = any(f.get("DuplicateData", True) for f in self.sessions.values())
        self.tree.set(device.path, "Device1", **{k: v for k, v in facts.items() if k != "RSSI"})
        self.tree.set(device.path, "Device1", always=always, RSSI=facts["RSSI"])

    def device(self, address, kind="random"):
        if address not in self.devices:
            self.devices[address] = Device(self, address, kind)
            self.devices[address].export()
        return self.devices[address]

    async def sweep(self):
        """Forget what was only seen, some time after it was seen last."""
        while True:
            await asyncio.sleep(min(1.0, self.temporary / 4))
            for device in list(self.devices.values()):
                if device.temporary and time.monotonic() - device.seen_at > self.temporary:
                    await self.remove(device)
