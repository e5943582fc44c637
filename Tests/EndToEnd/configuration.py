# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Configurations that are wrong, and configurations that change. The full list of what can be wrong is a golden test of
MeshConfig; here it is what reaches people."""
import glob
import os
import re
import signal
import socket

from breaker import Breaker
from companion import APP_START, GET_TIME, Client
from harness import ROOT
from host import Control, Host, equal, eventually, mock, share, tcp

# Each with the line it goes wrong in, counted in the text here, the column, and a word of the help that is given.
BROKEN = [
    ('[[device]]\nname = "roof"\nmodule = "tcp"\nhost = "127.0.0.1:5000"\nnmae = "x"\n', 5, 1, "name"),
    ('[[device]]\nname = "roof"\nmodule = "tcp"\nhots = "127.0.0.1:5000"\n', 4, 1, "host"),
    ('[[device]]\nname = "roof"\nmodule = "mock"\nautoconnect = "yes"\n', 4, 15, "true"),
    ('[[device]]\nname = "Roof of the house"\nmodule = "mock"\n', 2, 8, "roof-of-the-house"),
    ('[[device]]\nname = "roof"\nmodule = "mock"\n[[device]]\nname = "roof"\nmodule = "mock"\n', 5, 8, "roof"),
    ('[[device]]\nname = "roof"\nmodule = "mock"\n[[share]]\ntype = "companion-tcp"\ndevice = "rof"\n'
     'listen = "127.0.0.1:0"\n', 6, 10, "roof"),
    ('[[device]]\nname = "roof"\nmodule = "mock"\n[[share]]\ntype = "companion-tcp"\ndevice = "roof"\n'
     'listen = "0.0.0.0:5000"\n', 7, 10, "insecure"),
    ('[[device]]\nname = "roof"\nmodule = "mock"\n[[share]]\ntype = "companion-tpc"\ndevice = "roof"\n'
     'listen = "127.0.0.1:0"\n', 5, 8, "companion-tcp"),
    ('[defaults.link]\nbackoff = { first = "250", max = "30s" }\n', 2, 21, "ms"),
    ('[[device]\nname = "roof"\n', 1, None, ""),
    ('[[device]]\nname = "roof"\nmodule = "tcp"\nhost = "radio.lan"\n'
     '[[device]]\nname = "attic"\nmodule = "tcp"\nhost = "Radio.LAN:5000"\n', 5, 1, "roof"),
    ('[[device]]\nname = "roof"\nmodule = "bluez"\naddress = "C0:11:22:33:44:55"\n'
     '[[device]]\nname = "attic"\nmodule = "bluez"\naddress = "c0:11:22:33:44:55/random"\n', 5, 1, "roof"),
]


def _errors(text):
    """Line, column and text of each error."""
    return [(int(line), int(column), rest) for line, column, rest in
            re.findall(r"^\S+\.toml:(\d+):(\d+): error[^:]*: (.*)$", text, re.MULTILINE)]


async def what_is_wrong_is_named_with_line_and_column_and_help(rig):
    host = Host(rig)
    for text, line, column, word in BROKEN:
        prefix = f"[daemon]\nmodule_path = [\"{host.modules[0]}\"]\n"
        host.write(prefix + text)
        status, out, err = await host.cli("check", "--config", host.config)
        equal(status, 78, f"status of check for {text!r} ({out or err})")
        found = _errors(out + err)
        assert found, f"no place in {out or err!r}"
        equal(found[0][0], line + prefix.count("\n"), f"line in {text!r} ({out or err})")
        if column:
            equal(found[0][1], column, f"column in {text!r} ({out or err})")
        assert word in out + err, f"{word!r} is not in {out or err!r}"


async def all_errors_of_a_file_are_told_at_once(rig):
    host = Host(rig)
    host.configure('[[device]]\nname = "roof"\nmodule = "mock"\nautoconect = true\nsede = 1\n',
                   '[[share]]\ndevice = "x"\n')
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 78)
    places = [(line, column) for line, column, _ in _errors(out + err)]
    assert len(places) >= 4 and places == sorted(places), out + err
    document = await host.json("check", "--config", host.config, status=78)
    assert "autoconnect" in str(document), document


async def a_good_file_is_said_to_be_good(rig):
    host = Host(rig)
    host.configure(mock("bench"), share("bench"))
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 0, f"status of check ({out}{err})")
    await host.json("check", "--config", host.config)
    assert "bench" in str(await host.json("config", "show", "--config", host.config))


async def _reload(host):
    """SIGHUP; what the reload ended with."""
    host.events.mark()
    host.process.kill(signal.SIGHUP)
    return await host.events.event("config.reload")


async def _two_links(rig):
    """Two radios, each behind a breaker that counts connections."""
    breakers = []
    for _ in range(2):
        breakers.append(await Breaker((await rig.burst("--quiet")).port).serve())
        rig.closers.append(breakers[-1].close)
    return breakers


async def a_reload_touches_only_what_changed(rig):
    roof, yard = await _two_links(rig)
    (elsewhere, _) = await _two_links(rig)
    host = Host(rig)
    host.configure(tcp("roof", roof.port), tcp("yard", yard.port), share("roof"), share("yard"))
    await host.start()
    await host.ready("roof", "yard")
    client = await Client.connect(await host.address("roof"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")

    host.configure(tcp("roof", roof.port), tcp("yard", elsewhere.port), mock("bench"), share("roof"), share("yard"),
                   share("bench"))
    told = await _reload(host)
    equal(told["data"]["ok"], True, f"reload ({told})")
    await host.events.until(lambda: {"yard", "bench"} <= {each["device"] for each in host.events.all(
        "link.ready", host.events.find("config.reload"))} or None, "yard and bench ready")
    equal((elsewhere.accepted, roof.accepted, yard.accepted), (1, 1, 1), "connections")
    equal((await client.ask(GET_TIME))[0], 9, "answer to the client that was there before")
    equal({each["device"] for each in host.events.all("link.down")} - {"yard"}, set(), "other links that went down")
    await (await Client.connect(await host.address("bench"))).ask(APP_START)

    host.configure(tcp("roof", roof.port), share("roof"))
    told = await _reload(host)
    equal(told["data"]["ok"], True, f"reload ({told})")
    equal(set(await host.devices()), {"roof"}, "devices")
    equal((await client.ask(GET_TIME))[0], 9, "answer to the client that was there before")
    equal(roof.accepted, 1, "connections of the untouched device")


async def _is_ready(host, name):
    return (await host.devices())[name]["state"] == "ready"


async def a_device_that_is_taken_out_ends_with_its_clients_and_can_come_back(rig):
    roof, yard = await _two_links(rig)
    host = Host(rig)
    sections = (tcp("roof", roof.port), share("roof")), (tcp("yard", yard.port), share("yard"))
    host.configure(*sections[0], *sections[1])
    await host.start()
    await host.ready("roof", "yard")
    stays = await Client.connect(await host.address("yard"))
    for _ in range(3):
        client = await Client.connect(await host.address("roof"))
        equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
        since = host.events.mark()
        host.configure(*sections[1])
        equal((await _reload(host))["data"]["ok"], True)
        while await client.frame() is not None:
            pass
        equal([each["data"]["reason"] for each in host.events.all("client.leave", since)], ["share-closed"])
        equal(host.events.count("link.down", since, device="roof"), 1)
        equal({each["device"] for each in (await host.clients())["clients"]}, {"yard"})
        # What changes what the host speaks with it is another session, too.
        for section in (tcp("roof", roof.port, protocol="none"), *sections[0][:1]):
            host.configure(section, *sections[1], *(sections[0][1:] if section is sections[0][0] else ()))
            equal((await _reload(host))["data"]["ok"], True)
        await eventually(lambda: _is_ready(host, "roof"), "roof ready")
    equal((await stays.ask(APP_START))[0], 5, "answer to the client of the other device")


async def what_a_reload_could_not_apply_is_told_and_tried_again(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        host.configure(mock("bench"), share("bench", listen=address))
        for _ in range(2):
            status, out, err = await host.cli("reload")
            equal((status, out), (69, ""), "status and output")
            assert address in err, err
    equal(await host.cli("reload"), (0, "reloaded\n", ""), "the reload after the address has become free")
    await (await Client.connect(await host.address("bench"))).ask(APP_START)


async def a_reload_goes_on_when_who_asked_for_it_leaves(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    await host.start()
    name = socket.gethostname()                            # goes through the resolver, which takes its time
    host.configure(mock("bench"), share("bench", listen=f"{name}:0", insecure=True))
    control = await Control.connect(host)
    control.write(b'{"id":1,"method":"reload"}\n')
    control.writer.close()
    told = (await host.events.event("config.reload"))["data"]
    equal((told["ok"], told.get("problems")), (True, None), "what the reload ended with")
    assert await host.address("bench")


async def reloads_at_once_are_done_one_after_the_other(rig):
    host = Host(rig)
    host.configure(mock("bench"), share("bench"))
    await host.start()
    controls = [await Control.connect(host) for _ in range(8)]
    host.configure(mock("bench"), mock("desk"), share("bench"), share("desk", listen="localhost:0"))
    for control in controls:
        control.write(b'{"id":1,"method":"reload"}\n')
    host.process.kill(signal.SIGHUP)
    answers = [(await control.answer())["result"]["reload"] for control in controls]
    assert all(each["ok"] and "problems" not in each for each in answers), answers
    # One of them, or the signal's, has found something to do.
    assert sum(bool(each["devices_added"]) for each in answers) <= 1, answers
    equal(set(await host.devices()), {"bench", "desk"}, "devices")


async def a_reload_of_the_same_file_changes_nothing(rig):
    roof, _ = await _two_links(rig)
    host = Host(rig)
    host.configure(tcp("roof", roof.port), share("roof"))
    await host.start()
    await host.ready("roof")
    address = await host.address("roof")
    equal((await _reload(host))["data"]["ok"], True)
    equal(await host.address("roof"), address, "listener")
    equal(roof.accepted, 1, "connections")
    equal(host.events.count("share.listening"), 1, "listeners that were bound")


async def _lasting(host):
    """What `devices` tells, without what counts and what grows."""
    kept = ("name", "module", "state", "intent", "peer", "attempts", "disabled")
    return {name: {key: each[key] for key in kept} | {"shares": [share["listen"] for share in each["shares"]]}
            for name, each in (await host.devices()).items()}


async def a_reload_of_a_broken_file_changes_nothing_and_says_why(rig):
    roof, yard = await _two_links(rig)
    host = Host(rig)
    host.configure(tcp("roof", roof.port), share("roof"))
    await host.start()
    await host.ready("roof")
    client = await Client.connect(await host.address("roof"))
    equal((await client.ask(APP_START))[0], 5, "answer to APP_START")
    before = await _lasting(host)

    since = len(host.process.errors)
    host.configure(tcp("roof", yard.port), share("roof"), tcp("yard", yard.port, hots="x"))
    told = await _reload(host)
    equal(told["data"]["ok"], False, f"reload ({told})")
    place = host.place("hots")
    assert place in str(told["data"]), f"{place} is not in {told}"
    await host.process.error_line(place, since)
    equal(await _lasting(host), before, "devices")
    equal((await client.ask(GET_TIME))[0], 9, "the client's answer")
    equal((roof.accepted, yard.accepted), (1, 0), "connections")

    os.unlink(host.config)
    told = await _reload(host)
    equal(told["data"]["ok"], False, f"reload without a file ({told})")
    equal((await client.ask(GET_TIME))[0], 9, "the client's answer")

    host.configure(tcp("roof", roof.port), share("roof"), tcp("yard", yard.port))
    equal((await _reload(host))["data"]["ok"], True)
    await host.ready("yard")
    equal(roof.accepted, 1, "connections of the untouched device")


async def settings_come_from_files_environment_and_command_line_in_this_order(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    more = os.path.join(host.folder, "more.toml")
    with open(more, "w", encoding="utf-8") as file:
        file.write('[daemon]\nlog_level = "error"\n')
    show = ("config", "show", "--config", host.config, "--config", more)

    async def level(*words, env=None):
        status, out, err = await host.cli(*show, *words, "--json", env=env)
        equal(status, 0, err)
        return re.search(r'"log_level"\s*:\s*"(\w+)"', out)[1]
    equal(await level(), "error", "the later file")
    environment = {"MESHHOST__DAEMON__LOG_LEVEL": "warning"}
    equal(await level(env=environment), "warning", "the environment")
    equal(await level("--set", "daemon.log_level=notice", env=environment), "notice", "the command line")


async def the_examples_are_accepted(rig):
    host = Host(rig)
    examples = sorted(glob.glob(os.path.join(ROOT, "Examples", "*.toml")))
    assert len(examples) > 4, examples
    for path in examples:
        name = os.path.basename(path)
        status, out, err = await host.cli("config", "show", "--config", path)
        equal(status, 0, f"{name}: {err or out}")
        # One of them shows what a module that is not there means, and says so.
        if name != "mixed.toml":
            equal(err, "", name)
        # What they rely on is not on this machine: secrets and certificates, folders of its users.
        status, out, err = await host.cli("check", "--config", path)
        codes = set(re.findall(r"error\[(C\d+)\]", err))
        assert codes <= {"C0401", "C0402", "C0403", "C0404"}, f"{name}: {err}"
        equal(status == 0, not codes, f"{name}: {err}")
