# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A mesh radio as a BLE peripheral: Nordic UART service behind the pairing that MeshCore firmware asks for.

Without a bridge it echoes, and obeys a few frames that tests send to RX:

    F0 ...          counted and swallowed (bulk)
    F1              answered with "echo:" F1 u32 frames u32 bytes counted since the last F1 of this link
    F2 u16 n, len   n notifications of len bytes: F2, u16 number, zeros
    F3              the radio drops the link
    F4              the same, and its handles move, as with another firmware
    F5              the radio asks for 15-30 ms, latency 4, supervision 2 s
    F6              it drops the link and takes another private address
    anything else   answered with "echo:" and the same bytes
"""
import asyncio
import secrets
import struct
from dataclasses import dataclass

from bumble import att, hci, smp
from bumble.core import AdvertisingData, UUID
from bumble.device import Device, DeviceConfiguration
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.gatt_server import Server
from bumble.keys import MemoryKeyStore
from bumble.pairing import PairingConfig, PairingDelegate

from companion_bridge import CompanionBridge

SERVICE, RX, TX = (UUID(f"6E40000{n}-B5A3-F393-E0A9-E50E24DCCA9E") for n in (1, 2, 3))
Properties = Characteristic.Properties

# btvirt 5.66 answers this command with the status alone. Bumble 0.0.236 fails to read the handle behind it, takes the
# command as one that is never answered, and sends no other for ever.
hci.HCI_LE_Remote_Connection_Parameter_Request_Reply_Command.return_parameters_class = hci.HCI_StatusReturnParameters

# What the two firmware families differ in, as far as a host can see it.
PRESETS = {
    "esp32": dict(mtu=176, rx_props="write", legacy=False, gap_ms=60, cut=True, database_hash=False),
    "nrf52": dict(mtu=247, rx_props="both", legacy=True, tx_protected=True, database_hash=False),
}


@dataclass
class RadioSettings:
    name: str = "MeshCore-Rig"
    address: str = "C0:11:22:33:44:55"
    security: str = "passkey"      # none, justworks, passkey
    passkey: int = 123456
    legacy: bool = False           # no LE Secure Connections
    mtu: int = 185
    rx_props: str = "both"         # write, wnr, both
    tx_protected: bool = False     # the CCCD of TX asks for the same security as RX
    gap_ms: int = 0                # least time between notifications
    cut: bool = False              # a frame over MTU-3 is cut instead of refused
    early: bool = False            # one notification between the CCCD write and its response
    keep_bond: bool = True         # False: the radio forgets its bond at every disconnection
    bridge: str = ""               # HOST:PORT of a companion radio
    hci: str = ""                  # Bumble transport of a controller of its own, else it is in the air of this process
    repeat_ms: int = 0             # restart advertising so often, on controllers that do not repeat it by themselves
    unused_s: float = 0            # ends a link that nobody has subscribed on for so long
    advertise: bool = True
    database_hash: bool = True     # Database Hash and Service Changed
    private: bool = False          # advertises resolvable private addresses

    @classmethod
    def parse(cls, defaults, text):
        """`defaults` with KEY=VALUE,KEY=VALUE,... laid over; `like=esp32` takes a preset."""
        values = dict(defaults)
        for part in filter(None, text.split(",")):
            key, _, value = part.partition("=")
            if key == "like":
                values.update(PRESETS[value])
                continue
            kind = cls.__dataclass_fields__[key].type
            values[key] = value in ("1", "true", "yes", "") if kind is bool else kind(value)
        return cls(**values)


class _ShownPasskey(PairingDelegate):
    """Display-only, with a fixed passkey, like the firmware."""

    def __init__(self, radio):
        super().__init__(io_capability=PairingDelegate.IoCapability.DISPLAY_OUTPUT_ONLY)
        self.radio = radio

    async def generate_passkey(self):
        return self.radio.settings.passkey

    async def display_number(self, number, digits=6):
        self.radio.log("display_passkey", passkey=f"{number:0{digits}}")


class Radio:
    def __init__(self, settings, source, sink, log):
        self.settings = self.begun = settings
        self.log = lambda name, /, **fields: log(name, radio=settings.name, **fields)
        self.counted_frames = self.counted_bytes = self.sent = 0
        self.last_sent = 0.0
        self.order = asyncio.Lock()
        self.bridge = CompanionBridge(settings.bridge, self.notify, self.log) if settings.bridge else None
        self.device = Device.from_config_with_hci(
            DeviceConfiguration(name=settings.name, address=hci.Address(settings.address), keystore=None,
                                advertising_interval_min=100, advertising_interval_max=100,
                                gatt_service_enabled=settings.database_hash, irk=secrets.token_bytes(16),
                                le_privacy_enabled=settings.private, le_rpa_timeout=0), source, sink)
        self.firmware = 1
        self.controller = None                   # this process's own, if it is one
        self.repeating = None
        self.advertised = False                  # whether it should be
        self.advertiser = asyncio.Lock()         # its commands come in no other's midst
        self.device.gatt_server.max_mtu = settings.mtu
        self._add_service()
        self._set_pairing()
        self.device.on("connection", self._connected)

    # set-up -----------------------------------------------------------------------------------------------------------
    def _add_service(self):
        s = self.settings
        write, read, notify = Characteristic.WRITEABLE, Characteristic.READABLE, 0
        if s.security == "passkey":
            write |= Characteristic.WRITE_REQUIRES_AUTHENTICATION
            read |= Characteristic.READ_REQUIRES_AUTHENTICATION
            notify = att.Attribute.WRITE_REQUIRES_AUTHENTICATION
        elif s.security == "justworks":
            write |= Characteristic.WRITE_REQUIRES_ENCRYPTION
            notify = att.Attribute.WRITE_REQUIRES_ENCRYPTION
        properties = {"write": Properties.WRITE, "wnr": Properties.WRITE_WITHOUT_RESPONSE,
                      "both": Properties.WRITE | Properties.WRITE_WITHOUT_RESPONSE}[s.rx_props]
        rx = Characteristic(RX, properties, write, CharacteristicValue(write=self._written))
        tx_properties = Properties.NOTIFY if s.tx_protected else Properties.NOTIFY | Properties.READ
        self.tx = Characteristic(TX, tx_properties, read, b"")
        self.tx.on(Characteristic.EVENT_SUBSCRIPTION, self._subscribed)
        self.device.add_services([Service(SERVICE, [rx, self.tx])])
        if s.tx_protected and notify:
            for attribute in self.device.gatt_server.attributes:
                if attribute.type == UUID.from_16_bits(0x2902) and attribute.handle == self.tx.handle + 1:
                    attribute.permissions |= notify

    def move_handles(self):
        """Another firmware has services of its own before these."""
        self.firmware += 1
        self._renew_services(Service(UUID.from_16_bits(0xFE00 + n), []) for n in range(self.firmware))

    def _renew_services(self, first=()):
        """Links that are open keep the old ones."""
        self.device.gatt_server = Server(self.device)
        self.device.gatt_server.max_mtu = self.settings.mtu
        self.device.add_services(list(first))
        self.device.add_default_services(add_gatt_service=self.settings.database_hash)
        self._add_service()

    def become(self, text):
        """Another radio in its place, without bonds: its settings are those at the beginning with these laid over, of
        which security, legacy, tx_protected, rx_props and mtu take effect."""
        passkey, self.settings = self.settings.passkey, RadioSettings.parse(vars(self.begun), text)
        self.settings.passkey = passkey
        self.forget()
        self._renew_services()
        self._set_pairing()

    async def _change_address(self, connection):
        async with self.advertiser:
            await self.device.stop_advertising()
            await connection.disconnect()
            self.device.random_address = hci.Address.generate_private_address(self.device.irk)
            await self.device.send_command(hci.HCI_LE_Set_Random_Address_Command(
                random_address=self.device.random_address))
        await self.advertise(True)

    def _set_pairing(self):
        mitm = self.settings.security == "passkey"
        config = PairingConfig(sc=not self.settings.legacy, mitm=mitm, bonding=True,
                               delegate=_ShownPasskey(self) if mitm else PairingDelegate(),
                               identity_address_type=PairingConfig.AddressType.RANDOM)
        self.device.pairing_config_factory = lambda connection: config

    async def start(self, bonds=None):
        """`bonds` are those of a radio that this one takes the place of."""
        self.device.advertising_data = bytes(AdvertisingData([
            (AdvertisingData.FLAGS, bytes([6])),
            (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(SERVICE))]))
        self.device.scan_response_data = bytes(AdvertisingData([
            (AdvertisingData.COMPLETE_LOCAL_NAME, self.settings.name.encode())]))
        await self.device.power_on()
        self.device.keystore = MemoryKeyStore() if bonds is None else bonds
        self._answer_legacy_keys()
        if self.settings.advertise:
            await self.advertise(True)
        if self.settings.repeat_ms:
            self.repeating = asyncio.get_running_loop().create_task(self._repeat())

    async def _repeat(self):
        while True:
            await asyncio.sleep(self.settings.repeat_ms / 1000)
            try:
                async with self.advertiser:
                    await self._advertise_again()
            except hci.HCI_Error as error:       # a link began in the midst of it; the next time will do
                self.log("not_advertising", error=repr(error))

    async def _advertise_again(self):
        if not self.advertised or self.connection:
            return
        if not self.device.is_advertising:
            await self.device.start_advertising()
            return
        for enable in (0, 1):
            await self.device.send_command(hci.HCI_LE_Set_Advertising_Enable_Command(enable))

    def close(self):
        """The radio is not heard of again; its links are not ended."""
        if self.repeating:
            self.repeating.cancel()
        if self.bridge:
            self.bridge.close()

    def _answer_legacy_keys(self):
        """Bumble 0.0.236 as peripheral answers the re-encryption of a legacy bond with the central's key, not its own:
        the link ends with 0x3D. This answers with the key that this side handed out."""
        device, stock = self.device, self.device.get_long_term_key

        async def answer(handle, rand, ediv):
            connection = device.lookup_connection(handle)
            if connection and handle not in device.smp_manager.sessions:
                keys = await device.keystore.get(str(connection.peer_address))
                if keys and not keys.ltk and keys.ltk_central:
                    match = keys.ltk_central.ediv == ediv and keys.ltk_central.rand == rand
                    self.log("legacy_key_request", match=match)
                    return keys.ltk_central.value if match else None
            return await stock(handle, rand, ediv)
        device.get_long_term_key = device.host.long_term_key_provider = answer

    async def lose_link(self):
        """As by a supervision timeout, on both sides."""
        if self.controller:
            self.controller.link_loss()
            return
        for connection in list(self.device.connections.values()):
            try:
                await asyncio.wait_for(connection.disconnect(hci.HCI_CONNECTION_TIMEOUT_ERROR), 2)
            except (asyncio.TimeoutError, hci.HCI_Error) as error:
                self.log("link_not_ended", error=repr(error))   # it was gone, and nobody had told

    async def advertise(self, on):
        async with self.advertiser:
            self.advertised = on
            if not on:
                await self.device.stop_advertising()
                return
            # Bumble's own restart after a link would come in the midst of `_repeat`, which does it as well.
            await self.device.start_advertising(auto_restart=not self.settings.repeat_ms)
        self.log("advertising", address=self.settings.address, security=self.settings.security,
                 sc=not self.settings.legacy)

    # a link -----------------------------------------------------------------------------------------------------------
    @property
    def connection(self):
        return next(iter(self.device.connections.values()), None)

    def _connected(self, connection):
        self.log("connected", peer=str(connection.peer_address))
        self.counted_frames = self.counted_bytes = self.sent = 0
        self.in_use = False
        loop = asyncio.get_running_loop()

        def disconnected(reason):
            self.log("disconnected", reason=hex(int(reason)))
            if self.bridge:
                self.bridge.close()
            if not self.settings.keep_bond:
                self.forget()

        def unused():
            """A controller notices that its peer has gone; one that is simulated is not always told."""
            if not self.in_use and self.device.connections.get(connection.handle) is connection:
                self.log("unused")
                loop.create_task(self.lose_link())

        def encrypted():
            connection.authenticated = self._key_is_authenticated(connection)
            self.log("encryption", on=int(connection.encryption), authenticated=connection.authenticated)

        def failed(reason):
            self.log("pairing_failure", reason=int(reason))
            asyncio.get_running_loop().call_later(0.05, end, hci.HCI_AUTHENTICATION_FAILURE_ERROR)

        def end(reason):                         # the firmware gives up the link, too
            if connection.handle in self.device.connections:
                asyncio.get_running_loop().create_task(connection.disconnect(reason))

        def paired(keys):
            connection.authenticated = bool((keys.ltk or keys.ltk_central).authenticated)
            self.log("paired", sc=bool(keys.ltk), authenticated=connection.authenticated)
        if self.settings.unused_s:
            loop.call_later(self.settings.unused_s, unused)
        connection.on("disconnection", disconnected)
        connection.on("connection_encryption_change", encrypted)
        connection.on("pairing", paired)
        connection.on("pairing_failure", failed)
        connection.on("connection_att_mtu_update", lambda *_: self.log("mtu", mtu=connection.att_mtu))

    def _key_is_authenticated(self, connection):
        """Bumble calls every encrypted link authenticated; radios only one whose key came from a passkey."""
        session = self.device.smp_manager.sessions.get(connection.handle)
        if session:
            return session.pairing_method != smp.PairingMethod.JUST_WORKS
        keys = self.device.keystore.all_keys.get(str(connection.peer_address))
        key = keys and (keys.ltk or keys.ltk_central)
        return bool(key and key.authenticated)

    def _subscribed(self, bearer, notify, indicate):
        """Called inside the CCCD write, so what is sent here goes out before the write response."""
        self.log("subscribed", on=bool(notify))
        self.in_use = True
        if notify and self.settings.early:
            self._send_at_once(bearer, b"early")
        if notify and self.bridge:
            asyncio.get_running_loop().create_task(self._open_bridge())

    def _send_at_once(self, bearer, value):
        self.device.gatt_server.send_gatt_pdu(bearer, bytes(att.ATT_Handle_Value_Notification(
            attribute_handle=self.tx.handle, attribute_value=value)))

    def oversend(self, length):
        """A notification that no MTU limits."""
        self._send_at_once(self.connection, bytes(length))

    async def _open_bridge(self):
        try:
            await self.bridge.open()             # what the companion radio pushes has a way out from now on
        except OSError as error:
            self.log("bridge_error", error=str(error))

    def forget(self):
        self.device.keystore = MemoryKeyStore()

    # frames -----------------------------------------------------------------------------------------------------------
    def _written(self, connection, value):
        value = bytes(value)
        if value[:1] == b"\xf0" and not self.bridge:
            self.counted_frames += 1
            self.counted_bytes += len(value)
            return
        self.log("rx_write", len=len(value), hex=value[:24].hex(), encrypted=bool(connection.encryption),
                 authenticated=connection.authenticated)
        asyncio.get_running_loop().create_task(self._answer(connection, value))

    async def _answer(self, connection, value):
        if self.bridge:
            async with self.order:               # frames reach the companion radio in the order they were written
                await self.bridge.send(value)
        elif value[:1] == b"\xf1":
            counted = struct.pack("<II", self.counted_frames, self.counted_bytes)
            self.counted_frames = self.counted_bytes = 0
            await self.notify(b"echo:\xf1" + counted)
        elif value[:1] == b"\xf2" and len(value) >= 4:
            await self.burst(*struct.unpack_from("<HB", value, 1))
        elif value[:1] == b"\xf3":
            await connection.disconnect()
        elif value[:1] == b"\xf4":
            self.move_handles()
            await connection.disconnect()
        elif value[:1] == b"\xf5":
            await connection.update_parameters(15, 30, 4, 2000, use_l2cap=True)
        elif value[:1] == b"\xf6":
            await self._change_address(connection)
        else:
            await self.notify(b"echo:" + value)

    async def burst(self, count, length, rate=None):
        """`rate` notifications a second; without one as fast as they go."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for number in range(count):
            if rate:
                await asyncio.sleep(begin + number / rate - loop.time())
            await self.notify(struct.pack("<BH", 0xF2, number) + bytes(max(length - 3, 0)))

    async def notify(self, payload):
        """One notification on TX, if a central subscribed; True when it went out."""
        connection = self.connection
        if connection is None:
            return False
        room = connection.att_mtu - 3
        if len(payload) > room:
            if not self.settings.cut:
                self.log("refused", len=len(payload), room=room)
                return False
            self.log("cut", len=len(payload), room=room)
            payload = payload[:room]
        if self.settings.gap_ms:
            loop = asyncio.get_running_loop()
            wait = self.last_sent + self.settings.gap_ms / 1000 - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            self.last_sent = loop.time()
        await self.device.gatt_server.notify_subscriber(connection, self.tx, payload)
        self.sent += 1
        return True
