# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""bluetoothd and adapters that go and come back, or must not be used. R14 and its like are the requirements of the
handbook's page BlueZ."""
import os

from ble_worlds import PIN, Air, bluez, equal, eventually

REPEATS = int(os.environ.get("MESHHOST_BLE_FAULTS", "20"))


async def r14_bluetoothd_killed_is_noticed_and_survived(rig):
    """Noticed while it stays away, with no signal of its own, and back with the first attempt that follows its return. How
    long both take, tests of the virtual machine tell (vm_faults)."""
    air = await Air.bound(rig, connect_timeout="60s")
    tap = await air.frames()
    for _ in range(REPEATS):
        air.host.events.mark()
        agents = air.calls("RegisterAgent")
        await air.tell("bluez", "crash stay")
        await air.down()
        await air.tell("bluez", "come-back")
        await air.host.ready("roof")
        await eventually(lambda: air.calls("RegisterAgent") > agents, "the agent is registered anew")
        await air.burst(tap, 10)
    # One that found no bluetoothd failed for that, and was waited with.
    equal([each for each in air.host.events.all("link.down")
           if each["data"]["phase"] != "ready" and each["data"]["code"] != "adapter.unavailable"], [], "attempts that failed")


async def r14_bluetoothd_restarted_is_survived(rig):
    air = await Air.bound(rig)
    tap = await air.frames()
    for _ in range(REPEATS):
        air.host.events.mark()
        await air.tell("bluez", "restart 0.1")
        await air.down()
        await air.host.ready("roof")
        await air.burst(tap, 10)


async def r14_bluetoothd_that_starts_after_the_daemon_is_waited_for(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "crash stay")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    await air.waiting("adapter")
    await air.tell("bluez", "come-back")
    await air.host.ready("roof")


async def _adapter_away_and_back(rig, away, back):
    """Back with the first attempt that follows, which waits for nothing else: the times are vm_faults'."""
    air = await Air.bound(rig, connect_timeout="60s")
    tap = await air.frames()
    for _ in range(REPEATS):
        air.host.events.mark()
        await air.tell("bluez", away)
        await air.waiting("adapter")
        mark = air.host.events.mark()
        await air.tell("bluez", back)
        await air.host.ready("roof")
        equal([each for each in air.host.events.all("link.down", mark, device="roof")], [], "attempts that failed")
        equal([each["data"]["why"] for each in air.host.events.all("link.waiting", mark, device="roof")
               if each["data"]["why"] == "backoff"], [], "pauses")
        await air.burst(tap, 10)


async def r21_the_adapter_switched_off_and_on(rig):
    await _adapter_away_and_back(rig, "power off", "power on")


async def the_adapter_pulled_and_put_back(rig):
    await _adapter_away_and_back(rig, "adapter remove", "adapter add")


async def rfkill_is_named(rig):
    air = await Air.bound(rig)
    await air.tell("bluez", "rfkill on")
    why = await air.waiting("adapter")
    document = await air.host.json("doctor", status=69)
    assert any("rfkill" in str(each) for each in document["findings"]), document
    del why
    await air.tell("bluez", "rfkill off")
    await air.tell("bluez", "power on")
    await air.host.ready("roof")


async def r22_a_bus_that_refuses_is_explained(rig):
    air = await Air.make(rig)
    await air.tell("bluez", "fail * org.freedesktop.DBus.Error.AccessDenied 1000 not for you")
    air.host.configure(bluez(pin=PIN))
    await air.host.start()
    why = await air.waiting("blocked")
    equal(why["code"], "permission-denied", str(why))
    document = await air.host.json("doctor", status=69)
    assert any("bluetooth" in str(each.get("advice")) for each in document["findings"]), document


async def doctor_says_what_is_wrong_and_what_to_do(rig):
    air = await Air.make(rig)
    air.host.configure(bluez(pin=PIN))
    document = await air.host.json("doctor", "--config", air.host.config)
    assert all(each["severity"] != "problem" for each in document["findings"]), document
    await air.tell("bluez", "power off")
    document = await air.host.json("doctor", "--config", air.host.config, status=69)
    assert any("off" in each["message"] and each.get("advice") for each in document["findings"]), document
    await air.tell("bluez", "crash stay")
    document = await air.host.json("doctor", "--config", air.host.config, status=69)
    assert any(each["subject"] == "bluetoothd" and each.get("advice") for each in document["findings"]), document
