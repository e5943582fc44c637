# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Stations that answer: a repeater and a room server, on openhop-core's protocol handlers.

Both know an admin password and a guest password, and answer a logged-in client's status, telemetry, access list,
neighbours and owner requests. A repeater relays (flood, direct, trace) and takes commands from an admin; a room server
keeps posts and hands each one to every other client, and at login what a client missed.
"""
import asyncio
import struct
import time

from openhop_core.companion.contact_store import ContactStore
from openhop_core.companion.models import Contact
from openhop_core.node.handlers.login_server import LoginServerHandler
from openhop_core.node.handlers.protocol_request import (
    REQ_TYPE_GET_ACCESS_LIST, REQ_TYPE_GET_NEIGHBOURS, REQ_TYPE_GET_OWNER_INFO, REQ_TYPE_GET_STATUS,
    REQ_TYPE_GET_TELEMETRY_DATA, ProtocolRequestHandler)
from openhop_core.node.handlers.text import TextMessageHandler
from openhop_core.node.node import MeshNode
from openhop_core.protocol import CryptoUtils, Identity, PacketBuilder
from openhop_core.protocol.cayenne_lpp import encode_temperature, encode_voltage
from openhop_core.protocol.constants import (
    ADVERT_FLAG_HAS_NAME, ADVERT_FLAG_IS_REPEATER, ADVERT_FLAG_IS_ROOM_SERVER, PAYLOAD_TYPE_ADVERT,
    PAYLOAD_TYPE_ANON_REQ, PAYLOAD_TYPE_REQ, PAYLOAD_TYPE_TXT_MSG, PERM_ACL_ADMIN, PERM_ACL_GUEST,
    PERM_ACL_READ_WRITE, TXT_TYPE_CLI_COMMAND, TXT_TYPE_CLI_DATA, TXT_TYPE_PLAIN, TXT_TYPE_SIGNED_PLAIN)

BATTERY_MV, TEMPERATURE = 4100, 21.5


class Station:
    kind, advert_flag, guest_role, relays = "", 0, PERM_ACL_GUEST, False

    def __init__(self, radio, identity, name, password, guest, log):
        self.radio, self.identity, self.name, self.log = radio, identity, name, log
        self.password, self.guest = password, guest
        self.clients = ContactStore(64)          # who logged in, with `role`, `last_timestamp` and `sync_since`
        self.heard = {}                          # public key -> time of its last zero-hop advert
        self.started = time.monotonic()
        self.node = MeshNode(radio, identity, {"node": {"name": name}}, contacts=self.clients)
        self._register(self.node.dispatcher)

    def _register(self, dispatcher):
        quiet = lambda text: None                                       # noqa: E731
        login = LoginServerHandler(self.identity, quiet, self._authenticate, is_room_server=self.kind == "room",
                                   get_out_path=self._out_path, clear_out_path=self._clear_out_path)
        login.set_send_packet_callback(lambda packet, delay_ms: self._soon(self._send(packet, delay_ms / 1000)))
        dispatcher.register_handler(PAYLOAD_TYPE_ANON_REQ, login, local_delivery=True)

        answers = {
            REQ_TYPE_GET_STATUS: lambda client, stamp, data: self.status(),
            REQ_TYPE_GET_TELEMETRY_DATA: lambda client, stamp, data: self.telemetry(data),
            REQ_TYPE_GET_ACCESS_LIST: self._access_list,
            REQ_TYPE_GET_NEIGHBOURS: lambda client, stamp, data: self._neighbours(data),
            REQ_TYPE_GET_OWNER_INFO: lambda client, stamp, data: f"v1.17.1-rig\n{self.name}\nmeshhost rigs".encode()}
        self.requests = ProtocolRequestHandler(self.identity, self.clients, get_clients_fn=self._clients_by_hash,
                                               request_handlers=answers)
        dispatcher.register_handler(PAYLOAD_TYPE_REQ, self._requested, local_delivery=True)

        self.texts = TextMessageHandler(self.identity, self.clients, quiet, dispatcher.send_packet,
                                        should_ack_fn=self._accepts)
        dispatcher.register_handler(PAYLOAD_TYPE_TXT_MSG, self._texted, local_delivery=True)
        adverts = dispatcher.get_handler_instance(PAYLOAD_TYPE_ADVERT)

        async def advert(packet):
            if packet.path_len == 0 and len(packet.payload) >= 32:
                self.heard[bytes(packet.payload[:32])] = time.monotonic()
            return await adverts(packet)
        dispatcher.register_handler(PAYLOAD_TYPE_ADVERT, advert)

    async def start(self):
        self.task = asyncio.ensure_future(self.node.start())
        await asyncio.sleep(0)
        self.node.dispatcher.set_client_repeat_enabled(self.relays)
        await self.advertise()

    async def advertise(self):
        flags = ADVERT_FLAG_HAS_NAME | self.advert_flag
        await self.node.send_packet(PacketBuilder.create_advert(self.identity, self.name, flags=flags))

    def _soon(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        task.add_done_callback(lambda done: done.exception() and self.log("station_error", station=self.name,
                                                                          error=repr(done.exception())))

    async def _send(self, packet, delay=0.0):
        await asyncio.sleep(delay)
        await self.node.send_packet(packet)

    # who is who -------------------------------------------------------------------------------------------------------
    def _authenticate(self, client, secret, password, timestamp, sync_since=0):
        role = {self.password: PERM_ACL_ADMIN, self.guest: self.guest_role}.get(password)
        key = bytes(client.get_public_key())
        self.log("login", station=self.name, client=key[:6].hex(), role=role)
        if role is None:
            return False, 0
        contact = self.clients.get_by_key(key) or Contact(public_key=key, name=key[:4].hex(), adv_type=1)
        contact.role, contact.last_timestamp, contact.sync_since = role, timestamp, sync_since or 0
        self.clients.update(contact)
        self.logged_in(contact)
        return True, role

    def logged_in(self, client):
        pass

    def _clients_by_hash(self, first_byte):
        return [c for c in self.clients.get_all() if c.public_key[0] == first_byte]

    def _out_path(self, client):
        contact = self.clients.get_by_key(bytes(client.get_public_key()))
        return (contact.out_path, contact.out_path_len) if contact and contact.out_path_len >= 0 else None

    def _clear_out_path(self, client):
        contact = self.clients.get_by_key(bytes(client.get_public_key()))
        if contact:
            contact.out_path, contact.out_path_len = b"", -1

    # requests ---------------------------------------------------------------------------------------------------------
    async def _requested(self, packet):
        result = await self.requests(packet)
        if result.response is not None:
            self._soon(self._send(result.response, 0.05))
        return result

    def status(self):
        uptime = int(time.monotonic() - self.started)
        return struct.pack("<HHhhIIIIIIIIHhHHI", BATTERY_MV, 0, -110, self.radio.rssi, self.radio.received,
                           self.radio.sent, 1, uptime, self.radio.sent, 0, self.radio.received, 0, 0,
                           int(self.radio.snr * 4), 0, 0, 1)

    def telemetry(self, data):
        wanted = ~(data[0] if data else 0)
        lpp = encode_voltage(1, BATTERY_MV / 1000)
        return lpp + encode_temperature(1, TEMPERATURE) if wanted & 0x04 else lpp

    def _access_list(self, client, stamp, data):
        if client.role != PERM_ACL_ADMIN:
            return None
        return b"".join(c.public_key[:6] + bytes([c.role]) for c in self.clients.get_all())

    def _neighbours(self, data):
        """Request: version, count, offset u16, order, prefix length, nonce u32."""
        count, offset, size = (data[1], int.from_bytes(data[2:4], "little"), data[5]) if len(data) >= 6 else (10, 0, 6)
        now = time.monotonic()
        rows = sorted(self.heard.items(), key=lambda row: -row[1])
        shown = rows[offset:offset + count]
        body = b"".join(key[:size] + struct.pack("<Ib", int(now - at), int(self.radio.snr * 4)) for key, at in shown)
        return struct.pack("<HH", len(rows), len(shown)) + body

    # texts ------------------------------------------------------------------------------------------------------------
    def _accepts(self, sender, kind, timestamp):
        """Whether a text earns a delivery acknowledgement."""
        client = self.clients.get_by_key(sender)
        return client is not None and kind == TXT_TYPE_PLAIN and client.role >= PERM_ACL_READ_WRITE

    async def _texted(self, packet):
        result = await self.texts(packet)
        if result.authenticated and getattr(packet, "decrypted", None):
            for client in self._clients_by_hash(packet.payload[1]):
                if self._made_by(client, packet):
                    self.text(client, packet.decrypted)
                    break
        return result

    def _made_by(self, client, packet):
        secret = Identity(client.public_key).calc_shared_secret(self.identity.get_private_key())
        try:
            CryptoUtils.mac_then_decrypt(secret[:16], secret, bytes(packet.payload[2:]))
            return True
        except Exception:
            return False

    def text(self, client, message):
        if message["txt_type"] in (TXT_TYPE_CLI_DATA, TXT_TYPE_CLI_COMMAND, TXT_TYPE_PLAIN) \
                and client.role == PERM_ACL_ADMIN:
            self.log("cli", station=self.name, text=message["text"])
            self.say(client, self.cli(message["text"]), TXT_TYPE_CLI_DATA)

    def cli(self, text):
        answers = {"ver": "v1.17.1-rig (Build: 30 Nov 2026)", "board": "Ether", "get name": f"> {self.name}",
                   "get role": f"> {self.kind}", "clock": time.strftime("%H:%M - %d/%m/%Y UTC", time.gmtime())}
        prefix, bar, rest = text.partition("|")              # clients may number their commands: "07|ver"
        if bar and len(prefix) == 2:
            return prefix + bar + self.cli(rest)
        if text == "advert":
            self._soon(self.advertise())
            return "OK - Advert sent"
        return answers.get(text, "Unknown command")

    def say(self, client, text, kind, timestamp=None):
        proxy = self.clients.get_proxy_by_key(client.public_key)
        packet, _ = PacketBuilder.create_text_message(
            proxy, self.identity, text, message_type="flood" if proxy.out_path_len < 0 else "direct", txt_type=kind,
            timestamp=timestamp)
        self._soon(self._send(packet, 0.1))


class Repeater(Station):
    kind, advert_flag, relays = "repeater", ADVERT_FLAG_IS_REPEATER, True


class RoomServer(Station):
    kind, advert_flag, guest_role = "room", ADVERT_FLAG_IS_ROOM_SERVER, PERM_ACL_READ_WRITE

    def __init__(self, *args):
        self.posts = []                          # (timestamp, author's key, text)
        super().__init__(*args)

    def text(self, client, message):
        if message["txt_type"] != TXT_TYPE_PLAIN:
            super().text(client, message)
        elif client.role >= PERM_ACL_READ_WRITE:
            last = self.posts[-1][0] if self.posts else 0
            post = (max(int(time.time()), last + 1), client.public_key, message["text"])
            self.posts.append(post)
            self.log("post", station=self.name, text=message["text"], author=client.public_key[:6].hex())
            for other in self.clients.get_all():
                self._push(other, post)

    def logged_in(self, client):
        missed = [post for post in self.posts if post[0] > client.sync_since]

        async def later():
            await asyncio.sleep(1)               # after the answer to the login
            for post in missed:
                self._push(client, post)
                await asyncio.sleep(0.3)
        self._soon(later())

    def _push(self, client, post):
        timestamp, author, text = post
        if author != client.public_key:
            self._say_for(client, author, text, timestamp)

    def _say_for(self, client, author, text, timestamp):
        """A signed text carries the author's key prefix; openhop-core's builder only knows the sender's own."""
        secret = Identity(client.public_key).calc_shared_secret(self.identity.get_private_key())
        plain = struct.pack("<IB", timestamp, TXT_TYPE_SIGNED_PLAIN << 2) + author[:4] + text.encode()
        known = client.out_path_len >= 0
        packet = PacketBuilder.create_datagram(PAYLOAD_TYPE_TXT_MSG, Identity(client.public_key), self.identity, secret,
                                               plain, route_type="direct" if known else "flood")
        if known:
            packet.set_path(bytearray(client.out_path), client.out_path_len)
        self._soon(self._send(packet, 0.1))

    def status(self):
        return super().status()[:48] + struct.pack("<HH", len(self.posts), len(self.posts))
