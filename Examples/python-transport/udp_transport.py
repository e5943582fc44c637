#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A transport as a program: each link is a UDP socket, each datagram a frame. Needs nothing but Python.

It speaks the protocol of the handbook's page "ModuleWire" on the socket that MESHHOST_SOCKET names, and is configured as

    [module.udp]
    command = ["/usr/local/lib/meshhost/udp_transport.py"]

    [[device]]
    name = "roof"
    module = "udp"
    host = "192.0.2.7"
    port = 5000

To make a transport of your own, keep Wire and change Udp.
"""
import errno
import json
import os
import selectors
import socket
import struct
import sys

HEAD = struct.Struct("<BBHiQQ")                          # kind, flags, 0, code, link, cookie
LONGEST, MORE = 65536 - HEAD.size, 1
HELLO, PING, PONG = 1, 2, 3
START, STOP, CONNECT, DISCONNECT, SEND, CREDIT, SCAN, MANAGE, CANCEL, DIAGNOSE, VALIDATE, FORGET, IDENTIFY = range(16, 29)
(REFUSED, STARTED, STOPPED, LINK_UP, LINK_DOWN, SENT, FRAME, FOUND, METRIC, LINK_EVENT, SCANNED, MANAGED, DIAGNOSTICS,
 VALIDATED, LOG, FRAMES, IDENTIFIED) = range(64, 81)
DOCUMENTS = {HELLO, START, CONNECT, MANAGE, VALIDATE, IDENTIFY, MANAGED, DIAGNOSTICS, VALIDATED}
# Statuses and the like, those of meshhost_transport.h, and a level of syslog.
OK, ECLOSED, EINVAL, ENOSUP, EIO, EREFUSED, EHOST, ECANCELED = 0, -1, -2, -3, -4, -8, -9, -15
EVENT_PHASE, PHASE_CONNECTING, PHASE_CONNECTED, INFO = 1, 2, 7, 6


class Wire:
    """Whole messages both ways. A message is never in pieces: the socket keeps them apart. Sends wait for room, which is
    short: the host always reads."""

    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["MESHHOST_SOCKET"]))
        self.parts = b""

    def say(self, kind, payload=b"", code=0, link=0, cookie=0):
        while kind in DOCUMENTS and len(payload) > LONGEST:
            self.socket.send(HEAD.pack(kind, MORE, 0, code, link, cookie) + payload[:LONGEST])
            payload = payload[LONGEST:]
        self.socket.send(HEAD.pack(kind, 0, 0, code, link, cookie) + payload)

    def document(self, kind, value, **fields):
        self.say(kind, json.dumps(value).encode(), **fields)

    def hear(self):
        """The next message as (kind, flags, code, link, cookie, payload); None when the host has gone."""
        while True:
            message = self.socket.recv(65536)
            if not message:
                return None
            kind, flags, _, code, link, cookie = HEAD.unpack_from(message)
            payload = message[HEAD.size:]
            if kind in DOCUMENTS:
                payload = self.parts + payload
                self.parts = payload if flags & MORE else b""
                if flags & MORE:
                    continue
            return kind, flags, code, link, cookie, payload


class Udp:
    """The transport: one process carries the links of all devices."""

    HELLO = {
        "protocols": [1], "name": "udp", "version": "1.0.0", "vendor": "meshhost examples", "license": "Apache-2.0",
        "capabilities": ["multilink", "network"], "validates": True, "identifies": True,
        "options": [
            {"name": "host", "type": "string", "help": "Where datagrams go: a name or an address."},
            {"name": "port", "type": "int", "help": "The port there."},
            {"name": "largest", "type": "int", "default": "176", "help": "How long a frame may be, in bytes."},
        ],
    }
    LARGEST = 4096                                       # that any frame may be

    def __init__(self, wire):
        self.wire = wire
        self.watched = selectors.DefaultSelector()
        self.watched.register(wire.socket, selectors.EVENT_READ, self.host)
        self.links = {}                                  # sockets by the number of the link
        # How many frames and bytes of a link the host still takes; it says with how many each begins.
        self.credit, self.limits = {}, (0, 0)
        self.running = True

    def run(self):
        self.wire.document(HELLO, self.HELLO)
        while self.running:
            for key, _ in self.watched.select():
                key.data()

    # from the host

    def host(self):
        message = self.wire.hear()
        if message is None:
            self.running = False
            return
        kind, _, code, link, cookie, payload = message
        if kind == PING:
            self.wire.say(PONG)
        elif kind == VALIDATE:
            self.wire.document(VALIDATED, self.problems(json.loads(payload)), cookie=cookie)
        elif kind == IDENTIFY:
            # Two devices with one text would take the link from each other.
            options = json.loads(payload)
            self.wire.say(IDENTIFIED, f"{options['host'].lower()}:{options['port']}".encode(), cookie=cookie)
        elif kind == START:
            request = json.loads(payload)
            self.limits = request["frames"], request["bytes"]
            self.wire.say(STARTED)
        elif kind == CONNECT:
            self.connect(link, json.loads(payload))
        elif kind == SEND:
            self.send(link, cookie, payload)
        elif kind == CREDIT:
            self.taken(link, -code, -cookie)
        elif kind == DISCONNECT:
            self.down(link, ECANCELED)
        elif kind == SCAN:
            self.wire.say(SCANNED, code=ENOSUP, cookie=cookie)
        elif kind == MANAGE:
            self.wire.document(MANAGED, {}, code=ENOSUP, cookie=cookie)
        elif kind == DIAGNOSE:
            facts = {str(number): {"credit": self.credit[number][0]} for number in self.links}
            self.wire.document(DIAGNOSTICS, {"pid": os.getpid(), "links": facts}, cookie=cookie)
        elif kind == STOP:
            for number in list(self.links):
                self.down(number, ECANCELED)
            self.wire.say(STOPPED)
        # Of what is left nothing concerns this transport, and a later host may say more.

    @staticmethod
    def problems(options):
        """What the table of options cannot say. Touches nothing."""
        found = []
        if not 1 <= options["port"] <= 65535:
            found.append({"ptr": "/port", "msg": f"{options['port']} is no port", "hint": "1 to 65535"})
        if not 1 <= options["largest"] <= Udp.LARGEST:
            found.append({"ptr": "/largest", "msg": f"{options['largest']} bytes is no length", "hint": "1 to 4096"})
        return found

    def connect(self, link, request):
        options = request["options"]
        self.wire.say(LINK_EVENT, code=EVENT_PHASE, link=link, cookie=PHASE_CONNECTING)
        try:
            family, kind, _, _, address = socket.getaddrinfo(
                options["host"], options["port"], type=socket.SOCK_DGRAM)[0]
            peer = socket.socket(family, kind)
            peer.connect(address)
            peer.setblocking(False)
        except socket.gaierror as error:
            self.wire.say(LINK_DOWN, f"{options['host']}: {error.strerror}".encode(), code=EHOST, link=link)
            return
        except OSError as error:
            self.wire.say(LINK_DOWN, str(error).encode(), code=EIO, link=link)
            return
        self.links[link], self.credit[link] = peer, self.limits
        self.watched.register(peer, selectors.EVENT_READ, lambda: self.received(link))
        name = f"{address[0]}:{address[1]}"
        self.wire.say(LOG, f"{request['device']} sends to {name}".encode(), code=INFO)
        self.wire.say(LINK_EVENT, code=EVENT_PHASE, link=link, cookie=PHASE_CONNECTED)
        self.wire.say(LINK_UP, name.encode(), code=options.get("largest", 176), link=link)

    def send(self, link, cookie, frame):
        status = ECLOSED
        if link in self.links:
            try:
                self.links[link].send(frame)
                status = OK
            except BlockingIOError:
                status = OK                              # The network drops datagrams, and so may we.
            except OSError as error:
                self.failed(link, error)
        self.wire.say(SENT, code=status, link=link, cookie=cookie)

    # from the device

    def may_receive(self, link):
        frames, size = self.credit[link]
        return frames > 0 and size >= self.LARGEST

    def taken(self, link, frames, size):
        """Credit is used, or given back. Without it, what comes waits in the system's buffer."""
        if link not in self.links:
            return
        before = self.may_receive(link)
        self.credit[link] = self.credit[link][0] - frames, self.credit[link][1] - size
        if before and not self.may_receive(link):
            self.watched.unregister(self.links[link])
        elif self.may_receive(link) and not before:
            self.watched.register(self.links[link], selectors.EVENT_READ, lambda: self.received(link))

    def received(self, link):
        if link not in self.links:
            return                                       # It ended since this was noticed.
        try:
            frame = self.links[link].recv(self.LARGEST)
        except BlockingIOError:
            return
        except OSError as error:
            self.failed(link, error)
            return
        if not frame:
            return                                       # An empty datagram is no frame.
        self.wire.say(FRAME, frame, link=link)
        self.taken(link, 1, len(frame))

    def failed(self, link, error):
        """Nobody listens there any more, or the network is away."""
        self.down(link, EREFUSED if error.errno == errno.ECONNREFUSED else EIO, str(error))

    def down(self, link, status, detail=""):
        peer = self.links.pop(link, None)
        if peer is not None:
            if self.may_receive(link):
                self.watched.unregister(peer)
            del self.credit[link]
            peer.close()
            self.wire.say(LINK_DOWN, detail.encode(), code=status, link=link)


if __name__ == "__main__":
    if "MESHHOST_SOCKET" not in os.environ:
        sys.exit(__doc__)
    Udp(Wire()).run()
