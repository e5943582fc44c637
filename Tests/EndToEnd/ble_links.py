# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Links through bluetoothd: frames, ends and returns. R4 and its like are the requirements of the handbook's page BlueZ."""
import asyncio
import contextlib
import os
import random
import signal

from ble_worlds import BARN, PIN, ROOF, Air, ble, bluez, equal, eventually, once
from companion import Client as Companion
from host import mock, share, tcp
from meshcore_cli import meshcore_cli

RECONNECTIONS = int(os.environ.get("MESHHOST_RECONNECTIONS", "100"))
ENDS = int(os.environ.get("MESHHOST_BLE_FAULTS", "20"))


async def _counted(air, tap, number):
    """One frame that says its number; it comes once."""
    frame = f"{number:08x}"
    await air.tell("radio", f"notify {frame} 1 Roof")
    await tap.until(lambda: tap.count("frame.rx", where=lambda each: each["data"]["hex"] == frame), f"frame {number}")
    return frame


async def five_hundred_frames_arrive_once_each_and_in_order(rig):
    air = await Air.bound(rig)
    await air.burst(await air.frames(), 500, 100)


async def a_companion_behind_ble_is_shared(rig):
    radios = await rig.radios("--count", 2)
    air = await Air.make(rig, ble(name="Roof", address=ROOF, bridge=radios.ports[0]))
    air.host.configure(bluez(pin=PIN, protocol="companion"), share("roof"))
    await air.host.start()
    await air.host.ready("roof")
    port = await air.host.address("roof")
    (infos,) = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "infos")
    equal(infos["name"], "Radio 0")
    sent = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "msg", "Radio 1", "over BLE", "wait_ack")
    assert any(isinstance(each, dict) and each.get("trip_time") for each in sent), sent
    (received,) = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", radios.ports[1], "recv")
    equal(received["text"], "over BLE")
    await radios.command("say 1 0 answered")
    await air.host.events.event("message.direct", device="roof")
    texts = await meshcore_cli(rig.scratch.name, "-t", "127.0.0.1", "-p", port, "sync_msgs")
    assert any("answered" in str(each) for each in texts), texts


async def r6_a_device_that_is_connected_already_is_adopted(rig):
    air = await Air.bound(rig)
    equal(await air.host.stop(), 0)
    await air.tell("bluez", f"connect {ROOF}")
    since = len(air.bluez.events)
    await air.host.start()
    await air.host.ready("roof")
    equal((air.calls("Connect", since), air.calls("StartDiscovery", since)), (0, 0), "Connect and StartDiscovery")
    await air.burst(await air.frames(), 20)


async def a_bonded_device_that_looks_as_before_is_used_at_once(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", "keep-gatt on")
    for _ in range(5):
        await air.tell("radio", "terminate Roof")
        await air.host.events.event("link.down", device="roof")
        await air.host.ready("roof")
        await air.burst(await air.frames(), 20)


async def r7_the_daemon_leaves_no_device_connected(rig):
    air = await Air.bound(rig)
    mark = air.radio.mark()
    equal(await air.host.stop(), 0)
    equal(air.radio.count("disconnected", mark), 1, "links that the radio saw end")


async def r7_after_a_kill_the_next_start_takes_the_device_over(rig):
    air = await Air.bound(rig)
    air.host.process.kill(signal.SIGKILL)
    await air.host.process.ended()
    await air.host.start()
    await air.host.ready("roof")
    tap = await air.frames()
    await air.burst(tap, 50)
    equal(air.calls("Pair"), 1, "pairings")


async def r15_what_comes_before_the_subscription_is_confirmed_is_delivered(rig):
    air = await Air.make(rig, ble(name="Roof", address=ROOF, early=1))
    air.host.configure(bluez(pin=PIN, autoconnect=False))
    await air.host.start()
    tap = await air.frames()
    await air.host.cli("device", "roof", "connect")
    await air.host.ready("roof")
    await tap.until(lambda: tap.count("frame.rx"), "the early frame")
    equal([bytes.fromhex(each["data"]["hex"]) for each in tap.all("frame.rx")], [b"early"])


async def r16_each_frame_is_delivered_once_after_any_number_of_reconnections(rig):
    air = await Air.bound(rig)
    tap, frames = await air.frames(), []
    for number in range(RECONNECTIONS):
        frames.append(await _counted(air, tap, number))
        air.host.events.mark()
        await air.tell("radio", "terminate Roof" if number % 2 else "linkloss Roof")
        await air.host.ready("roof")
    frames.append(await _counted(air, tap, RECONNECTIONS))
    equal([each["data"]["hex"] for each in tap.all("frame.rx")], frames)


async def r16_equal_frames_in_a_row_are_all_delivered(rig):
    air = await Air.bound(rig)
    tap = await air.frames()
    await air.tell("radio", "notify 0102 3 Roof")
    await _counted(air, tap, 7)
    equal([each["data"]["hex"] for each in tap.all("frame.rx")], ["0102"] * 3 + ["00000007"])


async def r17_an_empty_notification_does_not_end_the_link(rig):
    for notifications in ("signals", "acquire"):
        air = await Air.bound(rig, notifications=notifications)
        tap = await air.frames()
        await air.tell("radio", "notify - 1 Roof")
        await _counted(air, tap, 1)
        equal((await air.state())["state"], "ready", notifications)
        await air.host.stop()
        for child in (air.bluez, air.radio):
            await child.stop()
        os.rename(air.host.folder, air.host.folder + "-" + notifications)


async def a_socket_of_our_own_instead_of_signals(rig):
    air = await Air.bound(rig, notifications="acquire")
    equal((air.calls("AcquireNotify"), air.calls("StartNotify")), (1, 0))
    tap = await air.frames()
    await air.burst(tap, 200)
    for _ in range(3):
        air.host.events.mark()
        await air.tell("radio", "terminate Roof")
        await air.host.ready("roof")
        await air.burst(tap, 20)


async def r18_a_frame_that_is_too_long_for_the_link_is_refused_here(rig):
    radios = await rig.radios("--count", 1)
    air = await Air.make(rig, ble(name="Roof", address=ROOF, mtu=140, bridge=radios.ports[0]))
    air.host.configure(bluez(pin=PIN, protocol="companion"), share("roof"))
    await air.host.start()
    await air.host.ready("roof")
    client = await Companion.connect(await air.host.address("roof"))
    await client.greet("rig", 3)
    mark = air.radio.mark()
    answer = await client.ask(bytes([0x03, 0, 0, 0, 0, 0, 0]) + b"x" * 135)   # a channel message
    equal(answer[0], 1, "answer to a frame of 142 bytes on a link for 137")
    assert all(each["len"] <= 137 for each in air.radio.all("rx_write", mark)), air.radio.all("rx_write", mark)
    equal((await air.state())["state"], "ready")


async def r29_a_value_of_any_length_is_taken_from_a_radio_with_a_small_mtu(rig):
    """Up to this side's own MTU of 517, whatever the radio's is; what goes to the radio keeps to the lesser (r18)."""
    air = await Air.bound(rig, ble(name="Roof", address=ROOF, mtu=60))
    tap = await air.frames()
    for length in (57, 58, 200, 514):
        await air.tell("radio", f"oversend {length} Roof")
    await tap.until(lambda: tap.count("frame.rx") >= 4, "the values")
    equal([len(each["data"]["hex"]) // 2 for each in tap.all("frame.rx")], [57, 58, 200, 514], "lengths")
    equal(air.host.events.count("link.down"), 0, "ends of the link")


async def r39_values_beyond_any_mtu_are_taken_and_told_of_once(rig):
    air = await Air.bound(rig)
    tap = await air.frames()
    for _ in range(3):
        await air.tell("radio", "oversend 600 Roof")
    await _counted(air, tap, 1)
    equal([len(each["data"]["hex"]) // 2 for each in tap.all("frame.rx")], [600, 600, 600, 4], "lengths")
    equal((await air.state())["state"], "ready")
    equal(len([line for line in air.host.process.errors if "than the MTU allows" in line]), 1, "times it was told of")


async def r28_nothing_of_an_old_link_counts_for_a_new_one(rig):
    """Ends of all kinds in a random order, some in the midst of the way to the next link. Every frame that comes was sent
    on the link that it comes over, and comes once."""
    seed = os.environ.get("MESHHOST_SEED") or str(random.randrange(1 << 32))
    rig.note(f"MESHHOST_SEED={seed}")
    dice = random.Random(seed)
    air = await Air.bound(rig)
    tap, sent = await air.frames(), 0

    async def send():
        nonlocal sent
        sent += 1
        await air.tell("radio", f"notify {sent:08x} 1 Roof")
        return f"{sent:08x}"

    async def comes():
        """Whether a frame comes; one that finds no link is lost, and another is sent."""
        frame = await send()
        with contextlib.suppress(TimeoutError):
            return await tap.until(lambda: tap.count("frame.rx", where=lambda each: each["data"]["hex"] == frame),
                                   f"frame {frame}", 2)

    ends = (("radio terminate Roof",), ("radio linkloss Roof",), (f"bluez disconnect {ROOF}",),
            ("bluez power off", "bluez power on"), ("bluez crash stay", "bluez come-back"), ("bluez restart 0.1",),
            (f"bluez removedev {ROOF}",), ("bluez adapter remove", "bluez adapter add"))
    for _ in range(ENDS):
        air.host.events.mark()
        for end in dice.sample(ends, dice.choice((1, 1, 2))):
            await send()                           # under way when the link ends, if there is one
            for command in end:
                await air.bluetooth.command(command)
        await air.down()
        await air.host.ready("roof")
        await eventually(comes, "a frame over the new link")
    frames = [int(each["data"]["hex"], 16) for each in tap.all("frame.rx")]
    assert once(frames) and frames == sorted(frames), frames
    equal(frames[-1], sent, "the last frame")


async def two_devices_on_one_adapter_are_connected_one_after_the_other(rig):
    air = await Air.make(rig, ble(name="Roof", address=ROOF), ble(name="Barn", address=BARN))
    burst = await rig.burst("--quiet")
    await air.tell("bluez", "delay Device1.Connect 1 2")
    air.host.configure(bluez(pin=PIN, adapter="hci0"), bluez("barn", BARN, pin=PIN, adapter="hci0"),
                       tcp("shed", burst.port))
    await air.host.start()
    await air.host.ready("shed", "roof", "barn")
    order = [(each["type"], each["device"]) for each in air.host.events.events
             if each["type"] in ("link.connecting", "link.ready")]
    assert order.index(("link.ready", "shed")) < min(order.index(("link.ready", "roof")),
                                                     order.index(("link.ready", "barn"))), order
    first, second = sorted(("roof", "barn"), key=lambda name: order.index(("link.ready", name)))
    assert order.index(("link.ready", first)) < order.index(("link.connecting", second)), order
    tap = await air.frames()
    await air.burst(tap, 30, radio="Barn")


async def out_of_range_in_the_middle_of_a_stream_and_back(rig):
    air = await Air.bound(rig)
    tap = await air.frames()
    await air.tell("radio", "pace 200 20 400 Roof")
    await tap.until(lambda: tap.count("frame.rx") >= 50, "a part of the stream")
    air.host.events.mark()
    await air.tell("radio", "gone Roof")
    await air.down()
    await air.tell("radio", "back Roof")
    await air.host.ready("roof")
    mark = tap.mark()
    await _counted(air, tap, 0xABCDEF)
    numbers = [each["data"]["hex"][:6] for each in tap.events if each["type"] == "frame.rx"]
    assert once(numbers), "a frame twice"
    assert mark >= 50, mark


async def a_disconnect_while_a_retry_is_scheduled_starts_nothing(rig):
    air = await Air.bound(rig)
    await air.tell("radio", "gone Roof")
    await air.down()
    await air.waiting("backoff")
    equal((await air.host.cli("device", "roof", "disconnect"))[0], 0)
    since = len(air.bluez.events)
    await air.tell("radio", "back Roof")
    await asyncio.sleep(1.5)                      # several times the longest pause between attempts
    equal(air.calls("Connect", since), 0, "Connect")
    equal((await air.state())["state"], "disconnected")


async def scanning_does_not_disturb_links(rig):
    air = await Air.make(rig, ble(name="Roof", address=ROOF), ble(name="MeshCore-Barn", address=BARN))
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    await air.host.ready("roof")
    tap = await air.frames()
    scan = asyncio.ensure_future(air.host.json("scan", "--for", "3s"))
    await air.burst(tap, 100)
    document = await scan
    found = {each["address"].partition("/")[0]: each for each in document["devices"]}
    assert BARN in found, document
    equal(found[BARN]["name"], "MeshCore-Barn")
    assert found[BARN].get("device") is None, found[BARN]
    await air.burst(tap, 100)
    equal(air.host.events.count("link.down"), 0, "ends of the link")


async def scanning_needs_no_daemon(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN))
    document = await air.host.json("scan", "--for", "2s", "--config", air.host.config)
    (found,) = document["devices"]
    equal((found["address"].partition("/")[0], found["name"], found.get("device")), (ROOF, "Roof", "roof"))
    equal(air.calls("StartDiscovery"), 1, "searches")


async def a_device_is_found_by_its_name(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(address="", options={"name": "Roof"}, pin=PIN))
    await air.host.start()
    await air.host.ready("roof")


async def bluetooth_tcp_and_mock_in_one_config(rig):
    air = await Air.make(rig)
    burst = await rig.burst("--quiet")
    air.host.configure(bluez(pin=PIN), tcp("shed", burst.port), mock("sim"))
    await air.host.start()
    await air.host.ready("roof", "shed", "sim")
    air.host.events.mark()
    await air.tell("bluez", "power off")
    await air.waiting("adapter")
    devices = await air.host.devices()
    equal([devices[name]["state"] for name in ("shed", "sim")], ["ready", "ready"])
    await air.tell("bluez", "power on")
    await air.host.ready("roof")
    equal(air.host.events.count("link.down", device="shed") + air.host.events.count("link.down", device="sim"), 0)
