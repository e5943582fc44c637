# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""meshcore_py, the library that most programs are made with, does the same through the host as on the radio itself."""
import asyncio
import inspect
import time

from harness import PATIENCE
from host import Host, equal, share, tcp
from meshcore import EventType
from meshcore.commands import CommandHandler
from meshcore.packets import BinaryReqType
from patient_meshcore import connect
from worlds import FREE_AIR

OPTIONS = ("--count", 2, "--repeaters", 1, "--rooms", 1, "--contacts", 5)
# In this order, each on a radio of its own that has just been started: first without the host, then through it. A call is
# a method of `MeshCore.commands`, and what it is called with; `{0}` and the like name nodes: see `_argument`.
CALLS = [
    ("send_appstart",), ("send_device_query",), ("get_path_hash_mode",), ("get_bat",), ("get_time",),
    ("get_contacts",), ("get_contacts", 1), ("get_contacts", 2 ** 32 - 1),
    ("get_contact_by_key", "bytes:repeater"), ("get_contact_by_key", bytes(32)),
    ("export_contact",), ("export_contact", "contact:repeater"),
    ("get_advert_path", "contact:repeater"), ("get_advert_path", "contact:Contact 3"),
    ("get_channel", 0), ("get_channel", 3), ("get_channel", 99), ("set_channel", 2, "#harbour"), ("get_channel", 2),
    ("set_channel", 3, "Workshop", bytes(range(16))), ("get_channel", 3),
    ("get_custom_vars",), ("set_custom_var", "gps", "1"), ("get_custom_vars",),
    ("get_tuning",), ("set_tuning", 2000, 3000), ("get_tuning",),
    ("get_autoadd_config",), ("set_autoadd_config", 6), ("get_autoadd_config",),
    ("get_default_flood_scope",), ("set_default_flood_scope", "#north"), ("get_default_flood_scope",),
    ("set_default_flood_scope", "*"), ("get_default_flood_scope",),
    ("set_flood_scope", "#harbour"), ("force_unscoped",), ("reset_flood_scope",), ("set_flood_scope", None),
    ("get_stats_core",), ("get_stats_radio",), ("get_stats_packets",), ("get_allowed_repeat_freq",),
    ("get_self_telemetry",),
    ("set_name", "Renamed"), ("set_coords", 47.5, 8.25), ("set_tx_power", 14), ("set_radio", 869.618, 62.5, 8, 8),
    ("set_radio", 1.0, 62.5, 8, 8), ("send_appstart",),
    ("set_other_params", False, 1, 0, 0, 1), ("set_telemetry_mode_base", 2), ("set_telemetry_mode_loc", 1),
    ("set_telemetry_mode_env", 1), ("set_manual_add_contacts", True), ("set_advert_loc_policy", 0),
    ("set_multi_acks", 1), ("send_appstart",), ("set_other_params_from_infos", "self_info"),
    ("set_manual_add_contacts", False),
    ("set_path_hash_mode", 1), ("get_path_hash_mode",), ("set_path_hash_mode", 7), ("set_path_hash_mode", 0),
    ("set_time", "soon"), ("set_time", 1),
    ("set_devicepin", 123456), ("run_cli_command", "ver"),
    ("change_contact_path", "contact:Contact 1", "a1b2"), ("change_contact_flags", "contact:Contact 1", 1),
    ("get_contact_by_key", "bytes:Contact 1"), ("update_contact", "contact:Contact 2", "", 3),
    ("reset_path", "contact:Contact 1"), ("get_contact_by_key", "bytes:Contact 1"), ("share_contact", "contact:repeater"),
    ("remove_contact", "contact:Contact 4"), ("remove_contact", "contact:Contact 4"),
    ("add_contact", "contact:Contact 4"), ("get_contacts",), ("import_contact", bytes(120)),
    ("sign", b"what is signed " * 30), ("sign_start",), ("sign_data", b"part"), ("sign_finish",), ("sign_finish",),
    ("export_private_key",),
    ("send_advert",), ("send_advert", True), ("send_control_data", 0x10, b"\x01"),
    ("send_node_discover_req", 4, True, 99), ("send_raw_data", b"raw data", b""), ("send_raw_packet", bytes(20)),
    ("send_channel_data", 0, 7, b"data"), ("send_channel_data", 9, 7, b"data"),
    ("send_chan_msg", 0, "hello everybody", 1_704_067_200), ("send_chan_msg", 9, "nobody there", 1_704_067_200),
    ("send_msg", "contact:Radio 1", "hello", 1_704_067_200), ("send_msg", b"nobody", "hello", 1_704_067_200),
    ("send_msg_with_retry", "contact:Radio 1", "hello again", 1_704_067_300),
    ("get_msg",),
    ("send_login_sync", "contact:repeater", "password"), ("send_login", "contact:repeater", "password"),
    ("send_statusreq", "contact:repeater"), ("req_status", "contact:repeater"), ("req_status_sync", "contact:repeater"),
    ("send_telemetry_req", "contact:repeater"), ("req_telemetry", "contact:repeater"),
    ("req_telemetry_sync", "contact:repeater"), ("req_acl", "contact:repeater"), ("req_acl_sync", "contact:repeater"),
    ("req_neighbours_async", "contact:repeater"), ("req_neighbours_sync", "contact:repeater"),
    ("fetch_all_neighbours", "contact:repeater"), ("send_binary_req", "contact:repeater", "status"),
    ("send_path_discovery", "contact:repeater"), ("send_path_discovery_sync", "contact:repeater"),
    ("send_trace", 0, 5, None, "hash:repeater"), ("send_cmd", "contact:repeater", "ver", 1_704_067_200),
    ("get_msg",), ("get_msg",), ("send_logout", "contact:repeater"),
    ("request_factory_reset",),
]
# After these the answer comes as an event of its own, which the next call must not take for its.
FOLLOWED_BY = {
    "send_login": EventType.LOGIN_SUCCESS, "send_statusreq": EventType.STATUS_RESPONSE,
    "send_telemetry_req": EventType.TELEMETRY_RESPONSE, "send_path_discovery": EventType.PATH_RESPONSE,
    "send_trace": EventType.TRACE_DATA, "send_binary_req": EventType.BINARY_RESPONSE,
    "req_neighbours_async": EventType.BINARY_RESPONSE, "send_msg": EventType.ACK, "send_cmd": EventType.MESSAGES_WAITING,
}
LEFT_OUT = {
    "set_connection": "nothing goes to the radio",
    "set_reader": "nothing goes to the radio",
    "set_dispatcher": "nothing goes to the radio",
    "set_contact_getter_by_prefix": "nothing goes to the radio",
    "send": "what every other method is made of",
    "wait_for_events": "nothing goes to the radio",
    "get_contacts_async": "get_contacts without its end",
    "has_connection": "sends no key, which the host refuses (01 06) and openhop-core answers",
    "reset_default_flood_scope": "fails within the library: it takes the length of None",
    "reboot": "openhop-core does not know it; see MeshSharingTests",
    "confirm_factory_reset": "sends no word, which the host refuses (01 06) and openhop-core does not know",
    "import_private_key": "openhop-core answers DISABLED, for which the library does not wait",
    "req_mma_sync": "the stations are no sensors",
    "send_anon_req": "the stations do not answer anonymous requests",
    "req_regions_async": "the stations do not answer anonymous requests",
    "req_regions_sync": "the stations do not answer anonymous requests",
    "req_owner_async": "the stations do not answer anonymous requests",
    "req_owner_sync": "the stations do not answer anonymous requests",
    "req_basic_async": "the stations do not answer anonymous requests",
    "req_basic_sync": "the stations do not answer anonymous requests",
}
# What differs between two runs whoever is asked: clocks, counters, tags and what is made from them.
VARYING = {
    "lastmod", "last_advert", "time", "expected_ack", "tag", "uptime", "timestamp", "sender_timestamp", "recv_time",
    "uptime_secs", "queue_len", "recv", "sent", "flood_tx", "direct_tx", "flood_rx", "direct_rx", "tx_air_secs",
    "rx_air_secs", "nb_recv", "nb_sent", "airtime", "sent_flood", "sent_direct", "recv_flood", "recv_direct", "rx_airtime",
    "secs_ago", "suggested_timeout", "trip_time", "raw", "data", "code", "server_timestamp", "uri",
}


def _normal(value):
    """What is compared of an answer."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): "varies" if key in VARYING else _normal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normal(item) for item in value]
    if hasattr(value, "payload"):
        return [value.type.name, _normal(value.payload)]
    return repr(value)


class Run:
    """One client that goes through all calls."""

    def __init__(self, client):
        self.client = client
        self.answers = []

    def _node(self, name):
        name = {"repeater": "Repeater 0"}.get(name, name)
        contact = self.kept.get(name)
        assert contact, f"no contact named {name}: {sorted(self.kept)}"
        return contact

    def _argument(self, value):
        if value == "self_info":
            return self.client.self_info
        if value == "soon":
            return int(time.time()) + 60
        if value == "status":
            return BinaryReqType.STATUS
        if isinstance(value, str) and ":" in value and value.split(":")[0] in ("contact", "bytes", "hash"):
            kind, name = value.split(":")
            key = self._node(name)["public_key"]
            return {"contact": self._node(name), "bytes": bytes.fromhex(key), "hash": key[:2]}[kind]
        return value

    async def all(self):
        await self.client.commands.get_contacts()
        self.kept = {contact["adv_name"]: dict(contact) for contact in self.client.contacts.values()}
        for name, *arguments in CALLS:
            method = getattr(self.client.commands, name)
            follower = FOLLOWED_BY.get(name)
            following = follower and asyncio.ensure_future(self.client.wait_for_event(follower, timeout=PATIENCE))
            await asyncio.sleep(0)                # so that it is waiting
            result = await asyncio.wait_for(method(*map(self._argument, arguments)), PATIENCE)
            answer = [_normal(result)]
            if following:
                if getattr(result, "is_error", bool)():
                    following.cancel()
                else:
                    answer.append(_normal(await following))
            if name == "request_factory_reset":
                answer = [len(result)]
            self.answers.append(answer)
        return self.answers


def _methods():
    return {name for name, _ in inspect.getmembers(CommandHandler, inspect.isfunction) if not name.startswith("_")}


async def every_method_is_tried_or_left_out_for_a_reason(rig):
    tried = {name for name, *_ in CALLS}
    equal(sorted(tried & set(LEFT_OUT)), [], "tried and left out")
    known = _methods()
    equal(sorted(known - tried - set(LEFT_OUT)), [], "methods that are neither tried nor left out")
    equal(sorted((tried | set(LEFT_OUT)) - known), [], "methods that the library does not have")
    rig.note(f"{len(tried)} methods of meshcore_py are tried in {len(CALLS)} calls, {len(LEFT_OUT)} are left out")


async def the_library_gets_the_same_answers_as_from_the_radio_itself(rig):
    direct, shared = await rig.radios(*OPTIONS), await rig.radios(*OPTIONS)
    host = Host(rig)
    host.configure(tcp("roof", shared.ports[0]), share("roof", role="owner", **FREE_AIR))
    await host.start()
    await host.ready("roof")
    runs = []
    for port in (direct.ports[0], await host.address("roof")):
        client = await connect(port)
        rig.closers.append(client.disconnect)
        runs.append(Run(client))
    await asyncio.gather(*(run.all() for run in runs))
    wrong = [f"{name}({', '.join(map(repr, arguments))}): {ours} through the host, {theirs} without it"
             for (name, *arguments), theirs, ours in zip(CALLS, *(run.answers for run in runs)) if ours != theirs]
    assert not wrong, f"{len(wrong)} of {len(CALLS)} calls differ: " + "; ".join(wrong[:4])


async def messages_and_acknowledgements_come_as_from_the_radio_itself(rig):
    direct, shared = await rig.radios("--count", 2), await rig.radios("--count", 2)
    host = Host(rig)
    host.configure(tcp("roof", shared.ports[0]), share("roof", **FREE_AIR))
    await host.start()
    await host.ready("roof")

    async def conversation(radios, port):
        client = await connect(port)
        rig.closers.append(client.disconnect)
        heard = asyncio.Queue()

        async def received(event):
            heard.put_nowait(_normal(event))
        for kind in (EventType.CONTACT_MSG_RECV, EventType.CHANNEL_MSG_RECV):
            client.subscribe(kind, received)
        await client.start_auto_message_fetching()
        await client.ensure_contacts()
        talk = []
        for number in range(3):
            waiting = asyncio.ensure_future(client.wait_for_event(EventType.ACK, timeout=PATIENCE))
            await asyncio.sleep(0)
            sent = await client.commands.send_msg(client.get_contact_by_name("Radio 1"), f"to you {number}",
                                                  1_704_067_200 + number)
            acknowledged = await waiting
            equal(acknowledged and acknowledged.payload["code"], sent.payload["expected_ack"].hex(), "acknowledgement")
            await radios.command(f"say 1 0 answer {number}")
            talk.append(await asyncio.wait_for(heard.get(), PATIENCE))
            await radios.command(f"chan 1 0 everybody {number}")
            talk.append(await asyncio.wait_for(heard.get(), PATIENCE))
        return talk
    theirs, ours = await asyncio.gather(conversation(direct, direct.ports[0]),
                                        conversation(shared, await host.address("roof")))
    equal(ours, theirs, "what was heard through the host")
