# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A gate between a host and a radio's TCP server: it keeps what passes, holds back what it is told to, and can slip
frames in. Unlike the breaker it stops nobody by itself."""
import asyncio

from breaker import frames
from companion import is_message
from harness import reserved_port


class Gate:
    """`port` is where a host finds the radio. `commands` and `answers` are the payloads that passed, in order."""

    def __init__(self, radio_port):
        self.radio_port = radio_port
        self.place = reserved_port()
        self.port = self.place.getsockname()[1]
        self.server = None
        self.commands, self.answers = [], []
        self.changed = asyncio.Condition()
        self.is_shut = self.is_answer_shut = False
        self.instead = {}                         # answers that the radio is not asked for
        self.tasks = set()
        self.connection = None

    async def serve(self):
        if self.server is None:
            self.server = await asyncio.start_server(self._host, "127.0.0.1", self.port)
        return self

    def stop(self):
        """Nothing listens, and the connection ends."""
        if self.server is not None:
            self.server.close()
            self.server = None
        if self.connection:
            self.connection.end()

    async def close(self):
        self.stop()
        self.place.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # what may pass

    def shut(self):
        """From now on the host's commands wait here."""
        self.is_shut = True

    def shut_answers(self):
        """From now on what the radio says waits here."""
        self.is_answer_shut = True

    def open(self):
        """Everything that waits goes on, and what comes passes at once."""
        self.is_shut = self.is_answer_shut = False
        if self.connection:
            self.connection.flush()

    def inject(self, payload):
        """Give the host a frame that the radio did not send."""
        self.connection.to_host(payload)

    def answer_instead(self, command, payload):
        """Answer the next such command with this, once; the radio does not get it."""
        self.instead[command] = payload

    # what has passed

    async def until(self, condition):
        async with self.changed:
            await self.changed.wait_for(condition)

    async def answered(self):
        """Wait until the radio has answered all that was passed on to it."""
        await self.until(lambda: self.connection is None or not self.connection.asked)

    def messages(self, since=0):
        """How many messages the host was given."""
        return sum(is_message(each) for each in self.answers[since:])

    async def tell(self):
        async with self.changed:
            self.changed.notify_all()

    async def _host(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        connection = None
        try:
            radio_reader, radio_writer = await asyncio.open_connection("127.0.0.1", self.radio_port)
            connection = self.connection = _Connection(self, writer, radio_writer)
            await asyncio.wait([asyncio.ensure_future(connection.up(reader)),
                                asyncio.ensure_future(connection.down(radio_reader))],
                               return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            if connection:
                connection.end()
                if self.connection is connection:
                    self.connection = None
            self.tasks.discard(task)
            await self.tell()


class _Connection:
    def __init__(self, gate, host, radio):
        self.gate, self.host, self.radio = gate, host, radio
        self.asked = []                           # codes that the radio has not answered yet
        self.waiting_commands, self.waiting_answers = [], []

    def end(self):
        for each in (self.host, self.radio):
            each.transport.abort()

    def flush(self):
        for payload in self.waiting_commands:
            self.to_radio(payload)
        for payload in self.waiting_answers:
            self.to_host(payload)
        self.waiting_commands, self.waiting_answers = [], []

    def to_radio(self, payload):
        if (answer := self.gate.instead.pop(payload, None)) is not None:
            self.asked.insert(0, payload[0])
            return self.to_host(answer)
        self.gate.commands.append(payload)
        if payload != b"\x27\0\0\0":              # whose answer is a push
            self.asked.append(payload[0] if payload else None)
        self.radio.write(b"<" + len(payload).to_bytes(2, "little") + payload)

    def to_host(self, payload):
        self.gate.answers.append(payload)
        # A contact list is one answer of many frames.
        if self.asked and payload[0] < 0x80 and not (self.asked[0] == 4 and payload[0] in (2, 3)):
            self.asked.pop(0)
        self.host.write(b">" + len(payload).to_bytes(2, "little") + payload)

    async def up(self, reader):
        buffer = bytearray()
        while chunk := await _read(reader):
            buffer += chunk
            for frame in frames(buffer, ord("<")):
                if self.gate.is_shut:
                    self.waiting_commands.append(frame[3:])
                else:
                    self.to_radio(frame[3:])
            await self.gate.tell()

    async def down(self, reader):
        buffer = bytearray()
        while chunk := await _read(reader):
            buffer += chunk
            for frame in frames(buffer, ord(">")):
                if self.gate.is_answer_shut:
                    self.waiting_answers.append(frame[3:])
                else:
                    self.to_host(frame[3:])
            await self.gate.tell()


async def _read(reader):
    try:
        return await reader.read(65536)
    except OSError:
        return b""
