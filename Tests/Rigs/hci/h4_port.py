# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The host's end of a virtual controller: H4 packets over TCP, a Unix socket or a pseudo terminal.

    tcp-server:HOST:PORT     port 0 takes a free one; `spec` then names the real port
    unix-server:PATH
    pty:PATH                 PATH becomes a link to the terminal
    anything else            a Bumble transport, for instance tcp-client:HOST:PORT or vhci

One host at a time: a newcomer replaces the one before. A packet that a dying host left half-written is thrown away.
"""
import asyncio
import os
import pty
import tty

from bumble.transport import open_transport
from bumble.transport.common import PacketParser


class H4Port:
    """Looks to a controller like a Bumble packet source and sink."""

    def __init__(self, on_attached, on_detached):
        self.on_attached, self.on_detached = on_attached, on_detached
        self.parser, self.host, self.server, self.refusing = PacketParser(), None, None, False
        self.close_listener = lambda: None

    # the two interfaces that a controller expects
    def set_packet_sink(self, sink):
        self.parser.set_packet_sink(sink)

    def on_packet(self, packet):
        if self.host is not None:
            self.host.write(packet)

    # connections
    def attach(self, transport):
        if self.refusing:
            transport.abort()
            return
        if self.host is not None:
            self.host.abort()
        self.parser.reset()
        self.host = transport
        self.on_attached()

    def detach(self, transport):
        if self.host is transport:
            self.host = None
            self.parser.reset()
            self.on_detached()

    def feed(self, transport, data):
        if transport is not self.host:
            return
        try:
            self.parser.feed_data(data)
        except Exception:                       # not an H4 packet type: a real UART controller sends a hardware error
            self.parser.reset()
            self.on_packet(bytes((0x04, 0x10, 0x01, 0x01)))

    def unplug(self):
        """What pulling the dongle does: the host's connection breaks and new ones are refused."""
        self.refusing = True
        if self.host is not None:
            host, self.host = self.host, None
            host.abort()
            self.parser.reset()

    def plug(self):
        self.refusing = False

    def close(self):
        if self.server is not None:
            self.server.close()
        self.close_listener()


class _Protocol(asyncio.Protocol):
    def __init__(self, port):
        self.port = port

    def connection_made(self, transport):
        self.transport = transport
        self.port.attach(transport)

    def connection_lost(self, error):
        self.port.detach(self.transport)

    def data_received(self, data):
        self.port.feed(self.transport, data)


class _Terminal:
    """Enough of an asyncio transport for the primary side of a pty."""

    def __init__(self, port, path):
        self.port, self.path = port, path
        self.primary, self.replica = pty.openpty()      # the replica stays open, so that hosts may come and go
        tty.setraw(self.primary)
        tty.setraw(self.replica)
        os.set_blocking(self.primary, False)
        if path:
            os.symlink(os.ttyname(self.replica), path)
        self.name = os.ttyname(self.replica)
        self.waiting = bytearray()
        asyncio.get_running_loop().add_reader(self.primary, self._readable)

    def _readable(self):
        self.port.feed(self, os.read(self.primary, 4096))

    def write(self, packet):
        self.waiting.extend(packet)
        self._writable()

    def _writable(self):
        loop = asyncio.get_running_loop()
        try:
            del self.waiting[:os.write(self.primary, self.waiting)]
        except BlockingIOError:
            pass
        if self.waiting:
            loop.add_writer(self.primary, self._writable)
        else:
            loop.remove_writer(self.primary)

    def abort(self):
        self.waiting.clear()

    def close(self):
        if self.path and os.path.islink(self.path):
            os.unlink(self.path)


class _Foreign:
    """Any Bumble transport behind the same face."""

    def __init__(self, port, transport):
        self.transport = transport
        transport.source.set_packet_sink(self)
        self.port = port

    def on_packet(self, packet):
        if self.port.parser.sink is not None:
            self.port.parser.sink.on_packet(packet)

    def write(self, packet):
        self.transport.sink.on_packet(packet)

    def abort(self):
        pass


async def open_port(spec, on_attached=lambda: None, on_detached=lambda: None):
    """Open one exposed controller end; `.spec` is what a host has to be told."""
    loop = asyncio.get_running_loop()
    port = H4Port(on_attached, on_detached)
    kind, _, rest = spec.partition(":")
    if kind == "tcp-server":
        host, _, number = rest.rpartition(":")
        port.server = await loop.create_server(lambda: _Protocol(port), host or "127.0.0.1", int(number))
        port.spec = f"tcp-server:{host or '127.0.0.1'}:{port.server.sockets[0].getsockname()[1]}"
    elif kind == "unix-server":
        port.server = await loop.create_unix_server(lambda: _Protocol(port), rest)
        port.spec = spec
    elif kind == "pty":
        terminal = _Terminal(port, rest)
        port.host, port.close_listener = terminal, terminal.close
        port.spec = f"pty:{rest or terminal.name}"
    else:
        port.host = _Foreign(port, await open_transport(spec))
        port.spec = spec
    return port


def host_spec(spec):
    """The Bumble transport name that reaches such a port: what a host on this machine opens."""
    kind, _, rest = spec.partition(":")
    return {"tcp-server": "tcp-client:", "unix-server": "unix:", "pty": "serial:"}.get(kind, kind + ":") + rest
