# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Radios at serial ports: unplugged, plugged in again, held by others, and saying what is no frame. The ports are pseudo
terminals."""
import asyncio
import os
import sys

from companion import APP_START, AWAY, GET_STATS, Client
from host import Host, device, equal, eventually, share
from serial_port import SerialPort


async def _at_a_port(rig, **keys):
    """A radio `roof` at a serial port, with a share."""
    radios = await rig.radios("--count", 1)
    os.mkdir(rig.path("dev"))
    port = SerialPort(rig.path("dev"), radios.ports[0])
    rig.closers.append(port.close)
    host = Host(rig)
    host.configure(device("roof", "serial", path=port.path, **keys), share("roof"))
    return port, host


async def _client(host):
    client = await Client.connect(await host.address("roof"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    return client


async def _waiting(host, why):
    event = await host.events.event("link.waiting", device="roof", where=lambda each: each["data"]["why"] == why)
    return event["data"]


async def a_radio_at_a_serial_port_is_shared(rig):
    port, host = await _at_a_port(rig)
    await port.plug()
    await host.start()
    await host.ready("roof")
    client = await _client(host)
    equal((await client.ask(GET_STATS))[0], 24, "answer of the radio")
    equal((await host.devices())["roof"]["peer"], port.path, "peer")
    document = await host.json("doctor")
    equal([each["severity"] for each in document["findings"] if each["severity"] == "problem"], [], "problems")
    equal(await host.stop(), 0, "exit status")
    # The port is free again, and as it was: the next host needs nothing special.
    await host.start()
    await host.ready("roof")


async def a_radio_that_is_unplugged_is_away_and_used_again_when_it_is_back(rig):
    port, host = await _at_a_port(rig)
    await port.plug()
    await host.start()
    await host.ready("roof")
    client = await _client(host)
    before = None
    for number in range(5):
        port.unplug()
        down = await host.events.event("link.down", device="roof")
        equal(down["data"]["code"], "adapter.unavailable")
        await _waiting(host, "adapter")
        equal(await client.ask(GET_STATS), AWAY, "answer while the radio is away")
        await port.plug()
        await host.events.event("link.connecting", device="roof")
        await host.ready("roof")
        equal((await client.ask(GET_STATS))[0], 24, f"answer after plugging in {number}")
        before = before or (host.descriptors(), host.threads())
    await eventually(lambda: (host.descriptors(), host.threads()) == before, "as many descriptors and threads as before")


async def a_host_that_starts_before_the_radio_is_plugged_in_finds_it(rig):
    port, host = await _at_a_port(rig)
    await host.start()
    await _waiting(host, "adapter")
    error = (await host.devices())["roof"]["last_error"]
    equal(error["code"], "adapter.unavailable")
    assert f"{port.path} is not there; plug the radio in" in error["message"], error
    document = await host.json("doctor", status=69)
    assert any(port.path in each["message"] and each["severity"] == "problem" for each in document["findings"]), document
    await port.plug()
    await host.ready("roof")


async def boot_text_and_broken_frames_are_passed_over(rig):
    port, host = await _at_a_port(rig)
    await port.plug()
    await host.start()
    await host.ready("roof")
    client = await _client(host)
    for noise in (b"ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\nrst:0x1 (POWERON)\r\n",
                  b">\xb0\x00",                               # a header, and then another frame in place of its payload
                  b">\x00\x00>\xff\xff>>>",
                  bytes(range(256)).replace(b">", b"")):
        port.say(noise)
        equal((await client.ask(GET_STATS))[0], 24, f"answer after {noise[:8]!r}")
    equal(host.events.count("link.down"), 0, "links that ended")
    await host.events.until(lambda: host.events.count("link.bytes-skipped"), "bytes that were skipped")


async def a_port_that_somebody_else_has_is_left_alone_and_the_holder_named(rig):
    port, host = await _at_a_port(rig)
    await port.plug()
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY);"
        "fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()", port.path,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    try:
        await holder.stdout.readline()
        await host.start()
        await host.events.event("link.waiting", device="roof")
        error = (await host.devices())["roof"]["last_error"]
        assert f"(process {holder.pid})" in error["message"] and "in use by" in error["message"], error
        document = await host.json("doctor", status=69)
        assert any(f"(process {holder.pid})" in each["message"] for each in document["findings"]), document
        before = host.descriptors()
        for _ in range(20):
            await host.events.event("link.connecting", device="roof")
        await eventually(lambda: host.descriptors() == before, "as many descriptors as before")
        equal(bytes(port.heard), b"", "what was sent to the port")
    finally:
        holder.stdin.close()
        await holder.wait()
    await host.ready("roof")


async def what_is_no_serial_port_waits_for_a_person(rig):
    host = Host(rig)
    host.configure(device("roof", "serial", path="/dev/full"))
    await host.start()
    why = await _waiting(host, "blocked")
    equal(why["code"], "config.invalid")


async def wrong_options_are_found_without_a_port(rig):
    host = Host(rig)
    host.configure(device("roof", "serial", path="ttyACM0", boot="upside_down"))
    status, _, errors = await host.cli("check", "--config", host.config)
    equal(status, 78)
    for text in ('path "ttyACM0" does not begin with /', "for example /dev/ttyACM0", 'boot "upside_down" is none of'):
        assert text in errors, errors
