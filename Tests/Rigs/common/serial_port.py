# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A serial port with a companion radio behind it: a pseudo terminal before the radio's TCP server, whose framing is the
same. It can be unplugged and plugged in again under the same name, and can say what is no frame."""
import asyncio
import contextlib
import os
import pty
import tty


class SerialPort:
    """`path` is what a host opens; like the names in /dev/serial/by-id it is a link that is there while the radio is."""

    def __init__(self, folder, radio_port):
        self.path, self.radio_port = os.path.join(folder, "by-id", "usb-Radio-if00"), radio_port
        self.device = None
        self.heard = bytearray()                  # what the host has sent since the last plugging in

    async def plug(self):
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.radio_port)
        self.device, port = pty.openpty()
        tty.setraw(port)
        os.set_blocking(self.device, False)
        self.heard.clear()
        self.outgoing = bytearray()
        self._read_on(self.device)
        self.task = asyncio.ensure_future(self._from_radio(reader))
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        os.symlink(os.ttyname(port), self.path)
        os.close(port)                            # nobody but the host may have it open
        return self

    def unplug(self):
        """The link goes, and with the last link its folder, as udev does it; whoever has the port open gets a hang-up."""
        if self.device is None:
            return
        os.unlink(self.path)
        os.rmdir(os.path.dirname(self.path))
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.device)
        loop.remove_writer(self.device)
        self.task.cancel()
        self.writer.transport.abort()
        os.close(self.device)
        self.device = None

    async def close(self):
        self.unplug()

    def say(self, data):
        """Bytes that the radio did not send: boot text, or what a broken USB stack makes of a frame."""
        self.outgoing += data
        self._writable()

    def _read_on(self, device):
        if device == self.device:
            asyncio.get_running_loop().add_reader(device, self._readable)

    def _readable(self):
        try:
            data = os.read(self.device, 4096)
        except OSError:                           # nobody has the port open, and nothing tells when somebody does
            loop = asyncio.get_running_loop()
            loop.remove_reader(self.device)
            loop.call_later(0.02, self._read_on, self.device)
            return
        self.heard += data
        self.writer.write(data)

    async def _from_radio(self, reader):
        while data := await reader.read(4096):
            self.say(data)

    def _writable(self):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(BlockingIOError):
            del self.outgoing[:os.write(self.device, self.outgoing)]
        if self.outgoing:
            loop.add_writer(self.device, self._writable)
        else:
            loop.remove_writer(self.device)
