#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Companion radios without LoRa hardware: openhop-core nodes that hear each other inside this process.

    radios.py --count 2                            two companions, each on a free TCP port of 127.0.0.1
    radios.py --count 1 --port 5100 --contacts 300 --repeaters 1 --rooms 1

Prints one JSON line for each companion {"ev": "radio", "name", "port", "public_key"} and each station
{"ev": "station", "kind", "name", "public_key"}, then {"ev": "ready"}, and serves until told to stop.

Commands on standard input; I and J number the radios, stations after companions.
    say I J TEXT         companion I sends a direct message to companion J
    chan I N TEXT        companion I says something on channel N (0 is Public)
    advert I             radio or station I floods an advert
    drop I / serve I     stop companion I's TCP server / start it again on the same port
    kick I               close companion I's client connection, keep serving
    deaf I J / hear I J  radios I and J stop / start hearing each other (for paths over a repeater)
    latency SECONDS      from now on
    loss P               share of packets that get lost from now on, 0 to 1
    contacts I N         give companion I N more synthetic contacts
    mail I J N TEXT      N messages `TEXT 0` ... from companion J wait at companion I, without the air; channels take turns
    log I [N]            commands that companion I got from clients: how many of each code, and the last N frames
    status               packets sent and heard by each radio
"""
import argparse
import asyncio
import collections
import hashlib
import logging
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))

from openhop_core import CompanionRadio, LocalIdentity                          # noqa: E402
from openhop_core.companion.frame_server import CompanionFrameServer            # noqa: E402
from openhop_core.companion.models import Contact                               # noqa: E402
from openhop_core.protocol.cayenne_lpp import encode_temperature                # noqa: E402

from ether import Ether, EtherRadio                                             # noqa: E402
from rigio import event, read_commands                                          # noqa: E402
from stations import BATTERY_MV, TEMPERATURE, Repeater, RoomServer              # noqa: E402

NEVER = 10 ** 9
FRAMES_KEPT = 20000
PUBLIC_CHANNEL = bytes.fromhex("8b3387e9c5cdea6ac9e5edbaa115cd72")      # every MeshCore radio has it
SHOWN = {"frequency": 869525000, "bandwidth": 250000, "spreading_factor": 11, "coding_rate": 5, "tx_power": 20}


class Server(CompanionFrameServer):
    """openhop-core's companion server, silent until asked as the firmware is, with a battery and a sensor."""

    def _get_batt_and_storage(self):
        return BATTERY_MV, 12, 1024

    def _get_self_telemetry_lpp(self):
        return encode_temperature(1, TEMPERATURE)

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.counts, self.frames = collections.Counter(), collections.deque(maxlen=FRAMES_KEPT)

    async def _handle_cmd(self, payload):
        self.counts[payload[0] if payload else None] += 1
        self.frames.append(payload.hex())
        await super()._handle_cmd(payload)

    async def serve(self):
        await self.start()
        self.port = self._server.sockets[0].getsockname()[1]

    def kick(self):
        if self._client_writer:
            self._client_writer.close()


def identity(name):
    """The same key in every run."""
    return LocalIdentity(hashlib.sha256(name.encode()).digest())


class Rig:
    def __init__(self, options):
        self.options = options
        self.ether = Ether(options.latency, options.loss, options.seed)
        self.companions, self.servers, self.stations = [], [], []
        self.mailed = 0

    async def start(self):
        options = self.options
        for number in range(options.count):
            name = f"Radio {number}"
            companion = CompanionRadio(EtherRadio(self.ether), identity(f"radio-{number}"), node_name=name,
                                       max_contacts=max(350, options.contacts + 50), radio_config=dict(SHOWN))
            await companion.start()
            self.companions.append(companion)
            companion.set_channel(0, "Public", PUBLIC_CHANNEL)
            self.add_contacts(companion, options.contacts)
            key = companion.get_public_key()
            server = Server(companion, f"{key[0]:02x}", port=options.port + number if options.port else 0,
                            bind_address=options.bind, device_model="Ether", device_version="v1.17.1",
                            build_date="30 Nov 2026", heartbeat_interval=options.heartbeat or NEVER,
                            client_idle_timeout_sec=None)
            await server.serve()
            self.servers.append(server)
            event("radio", name=name, port=server.port, public_key=key.hex())
        for kind, wanted, title in ((Repeater, options.repeaters, "Repeater"), (RoomServer, options.rooms, "Room")):
            for number in range(wanted):
                name = f"{title} {number}"
                station = kind(EtherRadio(self.ether), identity(name), name, options.password, options.guest, event)
                await station.start()
                self.stations.append(station)
                event("station", kind=station.kind, name=name, public_key=station.identity.get_public_key().hex())
        for companion in self.companions:
            await companion.advertise()
        await asyncio.sleep(options.latency + 0.2)           # what is relayed has gone by
        while not options.loss and not self.are_acquainted():
            await asyncio.sleep(0.01)

    def are_acquainted(self):
        """Whether everybody has heard who has advertised since they are there."""
        keys = [bytes(each.get_public_key()) for each in self.companions]
        stations = [bytes(each.identity.get_public_key()) for each in self.stations]
        return (all(companion.get_contact_by_key(key) for companion, own in zip(self.companions, keys)
                    for key in keys + stations if key != own)
                and all(set(keys + stations[number + 1:]) <= set(each.heard)
                        for number, each in enumerate(self.stations)))

    def add_contacts(self, companion, count):
        have = companion.get_contact_count()
        now = int(time.time())
        for number in range(have, have + count):
            key = hashlib.sha256(f"contact-{number}".encode()).digest()
            companion.add_update_contact(Contact(
                public_key=key, name=f"Contact {number}", adv_type=1 + number % 4, out_path_len=number % 3,
                out_path=key[:number % 3], last_advert_timestamp=now - number, lastmod=now - number,
                gps_lat=47 + number / 1000, gps_lon=8 + number / 1000))

    async def mail(self, companion, sender, count, text):
        """As if the packets had just been heard and decrypted; every second one came on channel 0."""
        key = self.companions[sender].get_public_key().hex()
        for number in range(count):
            self.mailed += 1
            heard = {"timestamp": int(time.time()), "packet_hash": f"mail-{self.mailed}", "path_len": 0,
                     "network_info": {"snr": EtherRadio.snr, "rssi": EtherRadio.rssi}}
            if number % 2:
                await companion._handle_new_channel_message(
                    {**heard, "channel_name": "Public", "full_content": f"Radio {sender}: {text} {number}"})
            else:
                await companion._handle_new_message(
                    {**heard, "contact_pubkey": key, "txt_type": 0, "message_text": f"{text} {number}"})

    def radio(self, number):
        return self.ether.radios[int(number)]

    async def command(self, words):
        """One line of standard input."""
        word, rest = words[0], words[1:]
        if word == "say":
            sender, receiver = self.companions[int(rest[0])], self.companions[int(rest[1])]
            result = await sender.send_text_message(receiver.get_public_key(), " ".join(rest[2:]))
            return {"success": result.success, "ack": result.expected_ack}
        if word == "chan":
            sender = self.companions[int(rest[0])]
            return {"success": await sender.send_channel_message(int(rest[1]), " ".join(rest[2:]))}
        if word == "advert":
            await (self.companions + self.stations)[int(rest[0])].advertise()
        elif word == "drop":
            await self.servers[int(rest[0])].stop()
        elif word == "serve":
            await self.servers[int(rest[0])].serve()
        elif word == "kick":
            self.servers[int(rest[0])].kick()
        elif word in ("deaf", "hear"):
            self.ether.hears(self.radio(rest[0]), self.radio(rest[1]), word == "hear")
        elif word in ("latency", "loss"):
            setattr(self.ether, word, float(rest[0]))
        elif word == "contacts":
            self.add_contacts(self.companions[int(rest[0])], int(rest[1]))
        elif word == "mail":
            await self.mail(self.companions[int(rest[0])], int(rest[1]), int(rest[2]), " ".join(rest[3:]))
        elif word == "log":
            server = self.servers[int(rest[0])]
            last = int(rest[1]) if len(rest) > 1 else 0
            return {"counts": {str(code): count for code, count in server.counts.items()},
                    "frames": list(server.frames)[len(server.frames) - last:] if last else []}
        elif word == "status":
            return {"radios": [{"sent": r.sent, "heard": r.received} for r in self.ether.radios]}
        else:
            raise ValueError("unknown command")
        return None


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--count", type=int, default=2, help="companions")
    add("--port", type=int, default=0, help="first TCP port; 0 takes free ones")
    add("--bind", default="127.0.0.1")
    add("--repeaters", type=int, default=0)
    add("--rooms", type=int, default=0)
    add("--password", default="password", help="admin password of the stations")
    add("--guest", default="hello", help="guest password of the stations")
    add("--contacts", type=int, default=0, help="synthetic contacts in each companion")
    add("--latency", type=float, default=0.03, metavar="SECONDS",
        help="from one radio to another; without any, clients miss answers that come before they listen")
    add("--loss", type=float, default=0.0, metavar="P", help="share of packets that get lost")
    add("--seed", type=int, default=1, help="of the losses")
    add("--heartbeat", type=int, default=0, metavar="SECONDS", help="openhop-core's unasked time frames; 0 for none")
    add("--debug", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.ERROR, stream=sys.stderr)
    rig = Rig(options)
    await rig.start()
    event("ready")
    commands = read_commands(rig.command)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    if commands:
        commands.cancel()

if __name__ == "__main__":
    asyncio.run(main())
