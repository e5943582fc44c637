#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Mesh radios without hardware, and controllers to reach them: one process is the air.

    ble_radio.py --hci tcp-server:127.0.0.1:0
    ble_radio.py --hci unix-server:/run/x/hci0 --bridge 127.0.0.1:5100 --esp32
    ble_radio.py --hci pty:/run/x/tty --radio name=Roof --radio name=Free,address=C0:00:00:00:00:02,security=none

Each --hci exposes one controller to a host (see h4_port.py for the forms); the event `hci_ready` names what the host
opens. Each --radio adds one radio; its settings (radio.py, `RadioSettings`) start from the options given for all.
With --radio-hci (hci= in --radio) it runs on somebody else's controller instead of this air; with --no-radio there is
only air.

Commands on standard input. NAME picks one radio, no name means every radio; N picks an exposed controller, none all.
    terminate [NAME]         the radio ends its link: 0x13
    linkloss [NAME]          both sides see a supervision timeout: 0x08
    micfail [NAME]           both sides see that a packet was not encrypted with their key: 0x3D
    vanish [NAME]            the radio is gone, the host's controller is not told
    gone [NAME], back [NAME]  out of range: not advertising and 0x08 on both sides; in range again
    adv on|off [NAME]        start or stop advertising
    forget [NAME]            the radio loses its bonds: the next encryption fails with 0x06
    passkey N [NAME]         what it displays from now on
    become KEY=VALUE,...|- [NAME]  another radio, without bonds; `-` is the one it was at the beginning
    reflash [NAME]           its handles move, as with another firmware, and its link ends: 0x13; bonds are kept
    security_request [NAME]  ask the central for security
    conn_params [NAME]       ask for 15-30 ms, latency 4, supervision 2 s over L2CAP
    notify HEX|- COUNT [NAME]  COUNT notifications of these bytes, `-` for an empty one
    oversend LENGTH [NAME]   one notification of LENGTH zeros, whatever the MTU
    burst COUNT LENGTH [NAME]  COUNT numbered notifications
    pace COUNT LENGTH RATE [NAME]  the same, RATE of them a second
    shut [NAME], reopen [NAME]  let go of the controller of --radio-hci, which was pulled; open it anew, bonds are kept
    early on|off [NAME]      send a notification between the CCCD write and its response
    stats                    answered with the frames and bytes counted so far (frame F0)
    stall [N] / unstall [N]  withhold and release Number_Of_Completed_Packets
    mute [N] / unmute [N]    the controller says nothing any more
    unplug [N] / plug [N]    the host's connection breaks and is refused / accepted again; links are lost
    timeout [N]              the host's controller ends its links with 0x08, as it would some time after `vanish`
    hwerror [N]              Hardware Error event
"""
import argparse
import asyncio
import contextlib
import logging
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

from bumble import hci                                   # noqa: E402
from bumble.transport import open_transport              # noqa: E402

from controller import Air, RigController                # noqa: E402
from h4_port import host_spec, open_port                 # noqa: E402
from radio import PRESETS, Radio, RadioSettings          # noqa: E402
from rigio import event, read_commands                   # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--hci", action="append", default=[], metavar="PORT", help="expose a controller (repeatable)")
    add("--radio", action="append", default=[], metavar="KEY=VALUE,...", help="add a radio (repeatable)")
    add("--radio-hci", metavar="TRANSPORT", help="run the radio on this Bumble transport")
    add("--no-radio", action="store_true", help="only air and controllers, for two hosts of one's own")
    radio = parser.add_argument_group("radios")
    radio.add_argument("--name")
    radio.add_argument("--address")
    radio.add_argument("--security", choices=["none", "justworks", "passkey"])
    radio.add_argument("--passkey", type=int)
    radio.add_argument("--legacy", action="store_true", default=None, help="no LE Secure Connections")
    radio.add_argument("--mtu", type=int)
    radio.add_argument("--rx-props", choices=["write", "wnr", "both"])
    radio.add_argument("--forget-bond", dest="keep_bond", action="store_false", default=None,
                       help="no bond survives a disconnection: the next encryption fails with 0x06")
    radio.add_argument("--early", action="store_true", default=None,
                       help="a notification between the CCCD write and its response")
    radio.add_argument("--private", action="store_true", default=None,
                       help="advertise resolvable private addresses")
    radio.add_argument("--no-hash", dest="database_hash", action="store_false", default=None,
                       help="no Database Hash, as on both firmware families")
    radio.add_argument("--repeat-ms", type=int, help="restart advertising so often; btvirt does not repeat it")
    radio.add_argument("--bridge", metavar="HOST:PORT",
                       help="forward frames to this companion radio instead of echoing")
    radio.add_argument("--esp32", action="store_const", dest="like", const="esp32",
                       help="MTU 176, write only, 60 ms between notifications, long frames cut")
    radio.add_argument("--nrf52", action="store_const", dest="like", const="nrf52",
                       help="MTU 247, legacy pairing, TX protected as well")
    control = parser.add_argument_group("exposed controllers")
    control.add_argument("--acl-len", type=int, default=27, help="LE_ACL_Data_Packet_Length")
    control.add_argument("--acl-num", type=int, default=64, help="Total_Num_LE_ACL_Data_Packets")
    control.add_argument("--rx-acl-len", type=int, default=0, help="fragment ACL towards the host at this size")
    control.add_argument("--completed-delay-ms", type=float, default=0)
    control.add_argument("--coalesce-completed", type=int, default=1)
    control.add_argument("--enhanced", action="store_true", help="LE Enhanced Connection Complete")
    control.add_argument("--no-ext-adv", action="store_true", help="no extended advertising, no LL privacy")
    add("--seconds", type=float, default=0, help="end after this long")
    add("--debug", action="store_true")
    return parser.parse_args()


async def expose(options, air, index, spec):
    controller = None

    def attached():
        event("host_attached", hci=index)

    def detached():
        event("host_detached", hci=index)
    port = await open_port(spec, attached, detached)
    controller = RigController(f"HOST{index}", host_source=port, host_sink=port, link=air,
                               public_address=f"00:AA:BB:CC:DD:{index:02X}")
    controller.le_acl_data_packet_length = options.acl_len
    controller.total_num_le_acl_data_packets = options.acl_num
    controller.fragment_to_host = options.rx_acl_len
    controller.completed_delay = options.completed_delay_ms / 1000
    controller.completed_collect = options.coalesce_completed
    controller.enhanced_complete = options.enhanced
    if options.no_ext_adv:
        controller.le_features &= ~(hci.LeFeatureMask.LL_PRIVACY | hci.LeFeatureMask.LE_EXTENDED_ADVERTISING)
    controller.port = port
    event("hci_ready", hci=index, spec=port.spec, host=host_spec(port.spec), address=str(controller.public_address))
    return controller


async def add_radios(options, air):
    given = {k: v for k, v in vars(options).items() if k in RadioSettings.__dataclass_fields__ and v is not None}
    given.pop("hci")                             # which is not a radio's, but what is exposed
    defaults = {**PRESETS.get(options.like, {}), **given, "hci": options.radio_hci or ""}
    radios = []
    for number, text in enumerate([] if options.no_radio else options.radio or [""]):
        settings = RadioSettings.parse(defaults, text)
        if number and "address" not in text:
            settings.address = f"C0:11:22:33:44:{0x55 + number:02X}"
        if number and "name" not in text:
            settings.name += f"-{number + 1}"
        radios.append(await open_radio(settings, air))
    return radios


async def open_radio(settings, air, bonds=None):
    """A radio on a controller of this air, or on somebody else's."""
    if settings.hci:
        transport = await open_transport(settings.hci)
        radio = Radio(settings, transport.source, transport.sink, event)
    else:
        controller = RigController(settings.name, link=air)
        radio = Radio(settings, controller, controller, event)
        radio.controller = controller

    async def reopen():
        await close()
        return await open_radio(settings, air, radio.device.keystore)

    async def close():
        radio.close()
        if settings.hci:
            with contextlib.suppress(Exception):         # the controller may be gone
                await asyncio.wait_for(transport.close(), 1)
    radio.reopen, radio.shut = reopen, close
    await radio.start(bonds)
    event("radio", radio=settings.name, address=settings.address)
    return radio


class Commands:
    """One method for each command word."""

    def __init__(self, radios, hosts):
        self.radios, self.hosts = radios, hosts

    async def __call__(self, words):
        word, rest = words[0], words[1:]
        if word in ("stall", "unstall", "mute", "unmute", "unplug", "plug", "timeout", "hwerror"):
            for host in self.hosts if not rest else [self.hosts[int(rest[0])]]:
                self.on_host(word, host)
            return None
        taken = {"adv": 1, "passkey": 1, "become": 1, "notify": 2, "burst": 2, "pace": 3, "early": 1,
                 "oversend": 1}.get(word, 0)
        names = rest[taken:]
        chosen = [r for r in self.radios if not names or r.settings.name in names]
        if not chosen:
            raise ValueError(f"no radio called {names}")
        answer = {}
        for radio in chosen:
            answer = await getattr(self, word)(radio, *rest[:taken]) or answer
        return answer

    def on_host(self, word, host):
        if word in ("stall", "unstall"):
            host.stall(word == "stall")
        elif word in ("mute", "unmute"):
            host.mute(word == "mute")
        elif word == "unplug":
            host.port.unplug()
            host.power_cycle()
        elif word == "plug":
            host.port.plug()
        elif word == "timeout":
            host.link_loss()
        else:
            host.hardware_error()

    async def terminate(self, radio):
        for connection in list(radio.device.connections.values()):
            await connection.disconnect()

    async def linkloss(self, radio):
        await radio.lose_link()

    async def micfail(self, radio):
        radio.controller.link_loss(hci.HCI_ErrorCode.CONNECTION_TERMINATED_DUE_TO_MIC_FAILURE_ERROR)

    async def reflash(self, radio):
        radio.move_handles()
        await self.terminate(radio)

    async def gone(self, radio):
        await radio.advertise(False)
        await radio.lose_link()

    async def back(self, radio):
        await radio.advertise(True)

    async def shut(self, radio):
        await radio.shut()

    async def reopen(self, radio):
        self.radios[self.radios.index(radio)] = await radio.reopen()

    async def vanish(self, radio):
        radio.controller.vanish()

    async def adv(self, radio, on):
        await radio.advertise(on == "on")

    async def forget(self, radio):
        radio.forget()

    async def passkey(self, radio, number):
        radio.settings.passkey = int(number)

    async def become(self, radio, text):
        radio.become("" if text == "-" else text)

    async def early(self, radio, on):
        radio.settings.early = on == "on"

    async def security_request(self, radio):
        radio.device.smp_manager.request_pairing(radio.connection)

    async def conn_params(self, radio):
        await radio.connection.update_parameters(15, 30, 4, 2000, use_l2cap=True)

    async def notify(self, radio, text, count):
        payload = b"" if text == "-" else bytes.fromhex(text)
        for _ in range(int(count)):
            await radio.notify(payload)

    async def oversend(self, radio, length):
        radio.oversend(int(length))

    async def burst(self, radio, count, length):
        await radio.burst(int(count), int(length))

    async def pace(self, radio, count, length, rate):
        await radio.burst(int(count), int(length), float(rate))

    async def stats(self, radio):
        return {"frames": radio.counted_frames, "bytes": radio.counted_bytes, "sent": radio.sent}


async def main():
    options = arguments()
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, stream=sys.stderr)
    air = Air()
    hosts = [await expose(options, air, index, spec) for index, spec in enumerate(options.hci)]
    radios = await add_radios(options, air)
    event("ready", radios=[radio.settings.name for radio in radios])
    commands = read_commands(Commands(radios, hosts))
    try:
        await (asyncio.sleep(options.seconds) if options.seconds else asyncio.get_running_loop().create_future())
    finally:
        if commands:
            commands.cancel()
        for host in hosts:
            host.port.close()
        for radio in radios:
            await radio.shut()


if __name__ == "__main__":
    import signal

    async def until_told():
        task = asyncio.ensure_future(main())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            pass
    asyncio.run(until_told())
