# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A daemon with one radio `roof` and two shares, on different radios that are told what to do in the same words."""
from companion import Client
from gate import Gate
from host import Host, equal, eventually, mock, share, tcp, unix_share

# Exercises would use up the air time that a share has by default.
FREE_AIR = {"airtime_percent": 0}
# A send that waits for a radio that is away waits until a test has it come back.
LONG_WAIT = {"companion": {"send_wait": "1h"}}


class World:
    """`address` is the share of ordinary clients, `path` the same on a Unix socket, `owner` the share of those who may do
    everything."""

    def __init__(self, rig):
        self.rig = rig
        self.host = Host(rig, f"{self.name}-{len(rig.children)}")
        self.arrived = 0                          # messages that were made to come

    async def _start(self, device, role):
        self.path = self.rig.path(f"{self.host.name}.sock")
        self.host.configure(device, share("roof", role=role, **FREE_AIR), share("roof", role="owner", **FREE_AIR),
                            unix_share("roof", self.path, role=role, **FREE_AIR))
        await self.host.start()
        await self.host.ready("roof")
        self.address, self.owner = await self.host.address("roof"), await self.host.address("roof", 1)
        return self

    async def client(self, name="rig", version=3, owner=False, local=False):
        """A client that has said its name, and its version if there is one."""
        client = await Client.connect(self.owner if owner else self.path if local else self.address)
        self.rig.closers.append(client.close)
        return await client.greet(name, version)

    async def counters(self):
        return (await self.host.json("device", "roof", "status"))["device"]["session"]

    async def journalled(self, number):
        """Wait until so many messages are in the journal: the bus tells of each after that."""
        events = self.host.events
        await events.until(lambda: events.count("message.direct") + events.count("message.channel") >= number,
                           f"{number} messages in the journal")


class Simulated(World):
    """Module `mock`."""
    name = "simulated"

    async def start(self, role="chat", **options):
        quiet = {"advert_interval": "0s", "message_interval": "0s", "rx_log_interval": "0s", "reply": False,
                 "answer_delay": "1ms", "trip_time": "30ms"}
        # A lost link comes back when it is told to: see `away`.
        self.host.link.update(backoff={"first": "1h", "max": "1h"}, contention_backoff="1h")
        await self._start(mock("roof", **LONG_WAIT, **{**quiet, **options}), role)
        self.control = await self.client("control", owner=True)
        # Frames are not kept for later: what the daemon sends from here on.
        self.tap = await self.host.listen("--type", "frame.tx")
        return self

    async def tell(self, variable):
        equal(await self.control.ask(b"\x29" + variable.encode()), b"\x00", f"answer to {variable}")

    async def arrive(self, count):
        """Messages come to the radio; their texts."""
        await self.tell(f"messages:{count}")
        texts = [f"Message {self.arrived + number}" for number in range(count)]
        self.arrived += count
        return texts

    async def reached_the_radio(self):
        """The frames that the radio was sent, up to now."""
        marker = b"\x38\x02"                      # not cached
        before = len(self.tap.all("frame.tx", where=lambda each: each["data"]["hex"] == marker.hex()))
        equal((await self.control.ask(marker))[:2], b"\x18\x02")
        await self.tap.until(lambda: len(self.tap.all(
            "frame.tx", where=lambda each: each["data"]["hex"] == marker.hex())) > before, "the marker")
        return [bytes.fromhex(each["data"]["hex"]) for each in self.tap.all("frame.tx")]

    async def unanswered(self, client, command):
        """Ask the radio while it says nothing for long enough; the host's answer. The client has to be an owner."""
        # From one client, so that the one follows the other at once. The host gives up after 5 s, the link after 11 s.
        client.send(b"\x29silent:7000")
        client.send(command)
        equal(await client.reply(), b"\x00", "answer of the simulated radio")
        return await client.reply()

    async def stray(self):
        await self.tell("stray:20")

    async def away(self):
        await self.tell("away:1")

    async def back(self):
        await self.host.json("device", "roof", "reconnect")

    async def nodes(self, kind):
        """The keys of nodes of this type that answer: 2 repeaters, 3 room servers."""
        _, rows, _ = await self.control.contacts()
        return [row[1:33] for row in rows if row[33] == kind]


class OpenHop(World):
    """openhop-core radios with a gate before them. Radio 0 is the one behind the daemon."""
    name = "openhop"

    async def start(self, *options, role="chat"):
        self.radios = await self.rig.radios("--count", 2, "--repeaters", 2, "--rooms", 1, *options)
        self.gate = await Gate(self.radios.ports[0]).serve()
        self.rig.closers.append(self.gate.close)
        await self._start(tcp("roof", self.gate.port, **LONG_WAIT), role)
        return self

    async def arrive(self, count):
        text = f"mail {self.arrived}"
        await self.radios.command(f"mail 0 1 {count} {text}")
        self.arrived += count
        return [f"{text} {number}" for number in range(count)]

    async def reached_the_radio(self):
        return [bytes.fromhex(each) for each in (await self.radios.command("log 0 20000"))["frames"]]

    async def unanswered(self, client, command):
        self.gate.shut_answers()
        answer = await client.ask(command)
        self.gate.open()
        return answer

    async def stray(self):
        self.gate.inject(b"\x00")

    async def away(self):
        self.gate.stop()

    async def back(self):
        await self.gate.serve()

    async def nodes(self, kind):
        title = {2: "Repeater", 3: "Room"}[kind]
        return [bytes.fromhex(key) for name, key in sorted(self.radios.keys.items()) if name.startswith(title)]


def without_sender(text):
    """Channel messages begin with their sender's name."""
    return text.rpartition(": ")[2]


async def counted(world, name, least=1):
    """Wait until a counter of the radio's session has come so far."""
    async def look():
        return (await world.counters())[name] >= least
    await eventually(look, f"{name} at {least}")
