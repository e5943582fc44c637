# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What peers of the control socket may send, and that none of it harms the others."""
import json
import os

from host import Control, Host, equal, eventually, mock


async def a_time_that_is_out_of_range_does_no_harm(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    os.mkdir(host.state, 0o700)
    with open(os.path.join(host.state, "intents.json"), "w", encoding="utf-8") as file:
        json.dump({"v": 1, "devices": {"bench": {"intent": "release", "until": (1 << 63) - 1}}}, file)
    await host.start()
    device = (await host.devices())["bench"]
    equal(device["intent"], "release")
    control = await Control.connect(host)
    for params, name in (({"for_ms": (1 << 63) - 1}, "for_ms"), ({"for_ms": -1}, "for_ms"), ({"for_ms": 1.5}, "for_ms"),
                         ({"for_ms": "1"}, "for_ms"), ({"verb": 5}, "verb")):
        error = (await control.ask("device", {"name": "bench", "verb": "release", **params}))["error"]
        equal(error["code"], "argument.invalid")
        assert f'"{name}"' in error["message"], error
    for params, name in (({"types": "link"}, "types"), ({"since": "x"}, "since"), ({"types": ["lnik"]}, "link")):
        error = (await control.ask("listen", params))["error"]
        equal(error["code"], "argument.invalid")
        assert f'"{name}"' in error["message"], error
    equal((await host.devices())["bench"]["intent"], "release")


async def a_request_that_is_nested_deeply_is_refused(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    control = await Control.connect(host)
    control.write(b"[" * 30000 + b"]" * 30000 + b"\n")
    error = (await control.answer())["error"]
    equal(error["code"], "argument.invalid")
    assert "deep" in error["message"], error
    assert (await control.ask("version"))["result"]


async def forgotten_control_connections_lock_nobody_out(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    first = await Control.connect(host)
    await first.ask("version")
    idle = [await Control.connect(host) for _ in range(80)]
    equal(len(await host.devices()), 1)
    assert await idle[-1].ask("version"), "the newest is served"
    equal(await first.answer(), None, "answer to the one that was idle for the longest time")
    await host.json("device", "bench", "reconnect")
    await host.ready("bench")                              # the stream of events is never idle


async def forgotten_listeners_leave_room_for_commands(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    listeners, refusal = [], None
    while refusal is None and len(listeners) < 80:
        control = await Control.connect(host)
        refusal = (await control.ask("listen")).get("error")
        listeners.append(control)
    equal(refusal["code"], "resource.exhausted")
    equal(len(listeners), 48, "with this host's own stream of events, one more than the most")
    equal(len(await host.devices()), 1)
    assert (await control.ask("version"))["result"], "the connection that was refused is served"
    listeners[0].writer.close()

    async def is_heard():
        return "event" in await control.ask("listen")

    await eventually(is_heard, "a place for one more listener")
