# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Bluetooth LE without hardware, for programs that talk to bluetoothd: a private system bus, radios in the air, and a
stand-in for bluetoothd (`dbus/fakebluez.py`) that owns org.bluez on that bus."""
import os

from harness import RIGS


def ble(**settings):
    """Options for one radio: `*ble(name="Roof", security="none", bridge=port)`. See `RadioSettings` in hci/radio.py;
    `bridge` may be a port of this machine, `like` is esp32 or nrf52."""
    if isinstance(settings.get("bridge"), int):
        settings["bridge"] = f"127.0.0.1:{settings['bridge']}"
    return ["--radio", ",".join(f"{name}={value}" for name, value in settings.items())]


class Bluetooth:
    """`radio` and `bluez` are the two programs, `radios` the addresses of the radios by name, `adapters` those of
    hci0, hci1, ... `environment` is for the programs under test."""

    def __init__(self, address, radio, bluez):
        self.address, self.radio, self.bluez = address, radio, bluez
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": address}
        self.radios = {item["radio"]: item["address"] for item in radio.all("radio")}
        self.adapters = bluez.all("up")[0]["adapters"]

    def process(self, whom):
        return {"radio": self.radio, "bluez": self.bluez}[whom]

    async def command(self, line, timeout=None):
        """`radio COMMAND` (see hci/ble_radio.py) or `bluez COMMAND` (see dbus/fakebluez.py); its answer."""
        whom, _, command = line.partition(" ")
        return await self.process(whom).command(command, timeout)

    async def event(self, whom, name, timeout=None, where=None, **fields):
        """The next such event of `radio` or `bluez` after the last one waited for."""
        return await self.process(whom).event(name, timeout, where, **fields)

    def calls(self, member, since=0, address=None):
        """How often clients called a method of org.bluez; of one device when an address is given."""
        part = (address or "").replace(":", "_")
        return self.bluez.count("call", since, lambda item: part in item["path"], member=member)


async def start_bus(rig):
    """A private dbus-daemon; returns its address. Which bus it is, the rig's scratch folder decides."""
    socket, config = rig.path("bus"), rig.path("bus.conf")
    with open(os.path.join(RIGS, "dbus", "bus.conf.in"), encoding="utf-8") as template, \
            open(config, "w", encoding="utf-8") as out:
        out.write(template.read().replace("@SOCKET@", socket))
    bus = await rig.start("bus", "dbus-daemon", f"--config-file={config}", "--nofork", "--nosyslog", "--print-address")
    await bus.event("text")
    return f"unix:path={socket}"


async def start_bluetooth(rig, *options, adapters=1, temporary=30):
    """`options` are those of hci/ble_radio.py, `temporary` the seconds that a device that was only seen is known."""
    address = await start_bus(rig)
    ports = ["--hci", "tcp-server:127.0.0.1:0"] * adapters
    radio = await rig.start("radio", "hci/ble_radio.py", *ports, *options)
    hosts = [(await radio.event("hci_ready"))["host"] for _ in range(adapters)]
    await radio.event("ready")
    bluez = await rig.start("bluez", "dbus/fakebluez.py", *hosts, "--temporary", temporary,
                            env={"DBUS_SYSTEM_BUS_ADDRESS": address})
    await bluez.event("up")
    return Bluetooth(address, radio, bluez)
