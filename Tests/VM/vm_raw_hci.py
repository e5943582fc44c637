# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A controller of the daemon's own: an adapter taken from bluetoothd through HCI_CHANNEL_USER, while bluetoothd goes on
with hci0."""
import asyncio
import os
import signal
import stat

import btsnoop
import machine
from adapter import OWN, OWN_PATH, comes_back, known, own, serves_bluetoothd, switched_on, taken
from bumble import hci
from bumble.transport import open_transport
from host import Host, bluez, equal
from hosts import PIN, Pushes, device, start, stop
from world import FREE, ROOF, YARD


async def a_link_on_an_adapter_taken_from_bluetoothd_carries_frames_and_the_adapter_is_given_back(rig, world):
    assert await known(world), f"bluetoothd does not know {OWN}"
    host = await start(rig, own(rig, "yard", YARD, pin=PIN))
    equal((world.told("display_passkey", YARD), world.told("paired", YARD, authenticated=True)), (1, 1), "pairings")
    await taken(world)
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    for _ in range(5):
        await pushes.come(50)
    await pushes.end()
    await stop(host, world)
    rig.note(f"given back {await comes_back(world):.2f} s after the end")
    assert not (await known(world))["Powered"], f"{OWN} was off before"
    await serves_bluetoothd(world)


async def an_adapter_that_was_on_is_on_again(rig, world):
    async with switched_on():
        host = await start(rig, own(rig, "roof", ROOF, pin=PIN))
        await stop(host, world)
        await comes_back(world)

        async def powered():
            return (await known(world) or {}).get("Powered")
        await world.until(powered, f"{OWN} on again")


async def bluetoothd_has_its_links_on_another_adapter_meanwhile(rig, world):
    host = await start(rig, own(rig, "roof", ROOF, pin=PIN), bluez("yard", YARD, pin=PIN))
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    await pushes.come(50)
    await pushes.end()
    equal({name: each["state"] for name, each in (await host.devices()).items()}, {"roof": "ready", "yard": "ready"})
    await stop(host, world)
    await comes_back(world)


async def an_adapter_is_back_after_sigkill_and_the_bond_serves_the_next_start(rig, world):
    for number in range(3):
        host = await start(rig, own(rig, "roof", ROOF, pin=PIN), name=f"host{number}")
        await taken(world)
        host.process.kill(signal.SIGKILL)
        await host.process.ended()
        rig.note(f"back {await comes_back(world):.2f} s after SIGKILL")
        # btvirt does not tell the radio that its central is gone (see Tests/Rigs/vm); air would, after its timeout.
        await world.tell("gone", ROOF)
        await world.tell("back", ROOF)
    equal((world.told("display_passkey", ROOF), world.told("paired", ROOF)), (1, 1), "pairings in three starts")
    await serves_bluetoothd(world)


async def an_adapter_that_another_program_has_is_waited_for(rig, world):
    taken = await open_transport(f"hci-socket:{OWN[3:]}")
    host = await start(rig, own(rig, "free", FREE), wait=False)
    try:
        await host.events.event("link.down", where=lambda each: f"another program has taken {OWN}" in str(each))
        await host.events.event("link.waiting")
        state = await device(host, "free")
        equal(state["waiting"]["why"], "adapter")
        # It is told once, however often it is tried.
        await asyncio.sleep(8)
        told = [line for line in host.process.errors if "the controller cannot be used" in line and "debug" not in line]
        equal(len(told), 1, f"lines about it: {told}")
    finally:
        await taken.close()
    await host.ready("free")
    await stop(host, world)


async def info_tells_what_a_controller_is_and_disturbs_nobody(rig, world):
    host = await start(rig, own(rig, "free", FREE))
    shown = (await host.json("hci", "info", OWN))["adapter"]
    equal((shown["controller"], shown["in_use"], shown["hci_version_name"]), (OWN, True, "5.0"), "what the daemon tells")
    assert shown["buffers"]["count"] > 0 and "encryption" in shown["features"], shown
    equal((await device(host, "free"))["state"], "ready")
    # One that bluetoothd uses is left to it.
    status, _, error = await host.cli("hci", "info", "hci0")
    equal(status, 69, error)
    assert "hci0 is switched on" in error and "bluetoothctl power off" in error, error
    assert (await known(world, machine.ADAPTER))["Powered"], "hci0 is not on any more"
    await stop(host, world)
    await comes_back(world)
    # Without a daemon the command itself takes it.
    shown = (await host.json("hci", "info", OWN, "--config", host.config))["adapter"]
    equal((shown["controller"], shown["in_use"]), (OWN, False), "what the command finds")
    status, out, error = await host.cli("hci", "info", OWN, "--config", host.config)
    equal(status, 0, error)
    for line in out.strip().split("\n"):
        rig.note(line)
    await comes_back(world)
    status, _, error = await host.cli("hci", "info", "hci99", "--config", host.config)
    equal(status, 69, error)
    assert "there is no adapter hci99" in error, error


async def doctor_takes_no_adapter_from_bluetoothd(rig, world):
    host = Host(rig)
    host.configure(own(rig, "free", FREE))
    async with switched_on():
        # A search of somebody's would end with the adapter.
        await world.bus.call(OWN_PATH, "Adapter1.StartDiscovery")
        _, out, error = await host.cli("doctor", "--config", host.config)
        assert OWN in out and "switched on" in out, out + error
        assert (await known(world) or {}).get("Discovering"), "the search has ended"
        await world.bus.call(OWN_PATH, "Adapter1.StopDiscovery")
    _, out, error = await host.cli("doctor", "--config", host.config)
    assert OWN in out and "nobody uses it" in out, out + error


async def one_capability_is_enough_and_its_lack_is_explained(rig, world):
    host = await start(rig, own(rig, "free", FREE))
    await stop(host, world)
    await comes_back(world)
    words = f"\"$0\" hci info {OWN} --config {host.config}"
    status, _, error = await host.shell(f"setpriv --bounding-set -all --inh-caps -all -- {words}")
    equal(status, 77, error)
    assert "AmbientCapabilities=CAP_NET_ADMIN" in error, error
    status, out, error = await host.shell(
        f"setpriv --bounding-set -all,+net_admin --inh-caps -all -- {words}")
    equal(status, 0, error)
    assert OWN in out, out
    await comes_back(world)


async def what_is_recorded_is_what_other_readers_read(rig, world):
    path = rig.path("capture")
    host = await start(rig, own(rig, "yard", YARD, pin=PIN, capture=path))
    pushes = await Pushes(rig, world).start(await host.address("yard"))
    await pushes.come(100)
    await pushes.end()
    await stop(host, world)
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
    records = btsnoop.read(path)
    equal({each.drops for each in records}, {0}, "drops")
    for each in records:
        kind = type(each.packet)
        equal(each.is_control, not issubclass(kind, hci.HCI_AclDataPacket), "flag of control")
        if issubclass(kind, (hci.HCI_Command, hci.HCI_Event)):
            equal(each.from_controller, issubclass(kind, hci.HCI_Event), "direction")
    first = records[0].packet
    assert isinstance(first, hci.HCI_Reset_Command), first
    pushed = sum(b"\x88" == bytes(each.packet.data)[7:8] for each in records
                 if each.from_controller and isinstance(each.packet, hci.HCI_AclDataPacket))
    assert pushed >= 100, f"{pushed} pushes in {len(records)} packets"
    rig.note(f"{len(records)} packets in {os.path.getsize(path)} bytes")
    output = await machine.shell(f"btmon -r {path} | head -n 40")
    assert "Reset (0x03|0x0003)" in output, output
