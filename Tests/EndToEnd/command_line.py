# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The command line: what it prints for programs, and what it ends with."""
import asyncio
import json
import os

from companion import GET_STATS, Client
from harness import PATIENCE, ROOT
from host import Host, device, equal, mock, share, tcp


async def _running(rig):
    host = Host(rig)
    host.configure(mock("bench", seed=1, advert_interval="50ms"), device("pager", "acme-lora", optional=True),
                   share("bench"))
    await host.start()
    await host.ready("bench")
    return host


async def every_command_prints_one_document_that_names_its_schema(rig):
    host = await _running(rig)
    config = ("--config", host.config)
    for words, schema in {
            ("version",): None, ("check", *config): None, ("config", "show", *config): None,
            ("modules",): "meshhost.modules/1", ("devices",): "meshhost.devices/1",
            ("device", "bench", "status"): "meshhost.device/1", ("device", "bench", "disconnect"): "meshhost.device/1",
            ("device", "bench", "connect"): "meshhost.device/1", ("device", "bench", "release"): "meshhost.device/1",
            ("device", "bench", "reconnect"): "meshhost.device/1", ("clients",): "meshhost.clients/1",
            ("decode", "companion", "3e0300010203"): "meshhost.decode/1",
            ("decode", "packet", "1500aa"): "meshhost.decode/1", ("decode", "lpp", "016700ff"): "meshhost.decode/1",
            ("decode", "hci", "01030c00"): "meshhost.decode/1", ("decode", "att", "0a1200"): "meshhost.decode/1",
            ("encode", "companion", '{"name": "GET_DEVICE_TIME"}'): "meshhost.encode/1"}.items():
        document = await host.json(*words)
        if schema:
            equal(document["schema"], schema, " ".join(words))


async def what_is_printed_for_people_has_no_escapes(rig):
    host = await _running(rig)
    for words in (("devices",), ("modules",), ("clients",), ("device", "bench", "status"), ("version",),
                  ("config", "show", "--config", host.config), ("decode", "companion", "3e0100cc")):
        status, out, err = await host.cli(*words)
        equal(status, 0, f"{' '.join(words)} ({err})")
        assert out.endswith("\n") and "\x1b" not in out, f"{' '.join(words)}: {out!r}"


async def a_device_is_shown_with_all_there_is_to_know(rig):
    host = await _running(rig)
    devices = await host.devices()
    bench = devices["bench"]
    equal((bench["module"], bench["state"], bench["intent"], bench["waiting"], bench["last_error"]),
          ("mock", "ready", "connect", None, None))
    client = await Client.connect(await host.address("bench"))
    await host.events.event("client.join")
    (row,) = (await host.devices())["bench"]["shares"]
    equal((row["type"], row["clients"]), ("companion-tcp", 1))
    await client.close()
    assert devices["pager"]["disabled"], devices["pager"]
    bench = (await host.json("device", "bench", "status"))["device"]
    equal(bench["name"], "bench")
    equal(bench["diagnostics"]["host"]["broken_rules"], 0, "rules of the module boundary that were broken")


async def a_device_that_waits_says_what_for(rig):
    radio = await rig.burst()
    await radio.command("stop")
    host = Host(rig)
    host.link["backoff"] = {"first": "1h", "max": "1h"}
    host.configure(tcp("roof", radio.port))
    await host.start()
    await host.events.event("link.waiting", device="roof")
    roof = (await host.devices())["roof"]
    equal(roof["state"], "disconnected")
    assert roof["attempts"] >= 1 and roof["waiting"]["why"] and roof["waiting"]["for_ms"] > 0, roof
    assert roof["last_error"]["code"].startswith("link.") and roof["last_error"]["message"], roof


async def listen_ends_after_as_many_events_as_were_asked_for(rig):
    host = await _running(rig)
    status, out, err = await host.cli("listen", "bench", "--type", "advert", "--count", 3)
    equal(status, 0, err)
    lines = [json.loads(line) for line in out.splitlines()]
    equal(lines[0]["type"], "listen.ready", "the acknowledgement")
    events = lines[1:]
    equal([each["type"] for each in events], ["advert"] * 3)
    for each in events:
        equal((each["v"], each["device"]), (1, "bench"))
        assert each["ts"] and isinstance(each["data"], dict), each
    numbers = [each["seq"] for each in events]
    assert numbers == sorted(set(numbers)), numbers


async def listen_takes_families_and_replays(rig):
    host = await _running(rig)
    status, out, err = await host.cli("listen", "--type", "link,share", "--since", 0, "--count", 4)
    equal(status, 0, err)
    types = [json.loads(line)["type"] for line in out.splitlines()][1:]
    equal(len(types), 4)
    assert all(each.startswith(("link.", "share.")) for each in types), types


async def frames_are_shown_only_to_who_asks(rig):
    host = await _running(rig)
    asked = await host.listen("--type", "frame")
    client = await Client.connect(await host.address("bench"))
    await client.ask(GET_STATS)
    await asked.event("frame.tx", device="bench")
    await asked.event("frame.rx", device="bench")
    everything = await host.listen("--since", 0)
    await everything.event("client.join")
    equal(everything.count("frame.rx") + everything.count("frame.tx"), 0, "frames that nobody asked for")


async def the_largest_count_is_not_too_large(rig):
    host = await _running(rig)
    process = await host.listen("--count", (1 << 64) - 1)
    await process.event("advert")
    host.process.kill(15)
    equal(await process.ended(), 0, "status of the listener after the daemon's end")


async def wrong_words_end_with_64(rig):
    host = Host(rig)
    host.configure(mock("bench"))
    for words in (("fly",), ("devices", "--wings"), ("device",), ("device", "bench", "explode"),
                  ("decode", "companion"), ("decode", "companion", "xyz"), ("decode", "packet", "15", "--channel", "x"),
                  ("decode", "lpp", "00", "--secrets"), ("encode", "lpp", "{"),
                  ("encode", "companion", '{"name": "FLY"}'), ("run", "--config"), ("listen", "--count", "many"),
                  ("devices", "-q"), ("config", "schema", "--json"), ("listen", "--type", ""), ("run", "--control", "/x"),
                  ("module-test", "--list", "-q")):
        status, out, err = await host.cli(*words)
        equal((status, out), (64, ""), f"{' '.join(words)} ({err})")
        assert err, words


async def a_flag_that_a_command_does_not_have_is_refused_with_those_it_has(rig):
    status, out, err = await Host(rig).cli("devices", "-q")
    equal((status, out), (64, ""))
    equal(err, "meshhost: devices has no --quiet; it has --control, --config, --set, --json, --help\n"
               "try `meshhost devices --help`\n")


async def quiet_commands_say_nothing_but_errors(rig):
    host = await _running(rig)
    for words in (("check", "--config", host.config), ("device", "bench", "reconnect"), ("reload",), ("modules", "reset")):
        status, out, err = await host.cli(*words, "-q")
        equal((status, out), (0, ""), f"{' '.join(words)} ({err})")
    status, out, err = await host.cli("device", "bnech", "connect", "-q")
    assert status == 64 and not out and "bnech" in err, (status, out, err)


async def a_shell_completes_words(rig):
    host = Host(rig)
    for line, words in {"dev": {"device", "devices"}, "decode bt": {"btsnoop"}, "devices --j": {"--json"},
                        "scan --for 3s --mo": {"--module"}, "-c x modules re": {"reset"}, "completion z": {"zsh"}}.items():
        status, out, err = await host.shell(
            'eval "$("$0" completion bash)" && COMP_WORDS=(meshhost %s) && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && '
            '_meshhost && printf "%%s\\n" "${COMPREPLY[@]}"' % line, shell="bash")
        equal((status, set(out.split()), err), (0, words, ""), line)


async def a_device_that_is_not_configured_is_named_with_those_that_are(rig):
    host = await _running(rig)
    status, _, err = await host.cli("device", "bnech", "status")
    assert status in (64, 69), f"status {status}"
    assert "bnech" in err and "bench" in err, err


async def without_a_daemon_commands_end_with_69(rig):
    host = Host(rig)
    for words in (("devices",), ("clients",), ("listen",), ("device", "roof", "status")):
        status, out, err = await host.cli(*words)
        equal((status, out), (69, ""), f"{' '.join(words)} ({err})")
        assert host.control in err, err


async def without_permission_commands_end_with_77(rig):
    host = await _running(rig)
    if os.geteuid() == 0:
        for folder in (host.folder, rig.scratch.name):
            os.chmod(folder, 0o755)
        os.chmod(host.control, 0o600)
        status, _, err = await host.as_nobody("devices")
    else:
        os.chmod(host.control, 0o000)
        status, _, err = await host.cli("devices")
    equal(status, 77, err)
    assert host.control in err, err


async def a_missing_configuration_ends_with_78(rig):
    host = Host(rig)
    for word in ("check", "run"):
        status, _, err = await host.cli(word, "--config", host.config)
        equal(status, 78, err)
        assert host.config in err, err


async def a_closed_pipe_is_no_crash(rig):
    host = await _running(rig)
    reading, writing = os.pipe()
    os.close(reading)
    child = await asyncio.create_subprocess_exec(
        host.binary, "listen", "--type", "advert", stdin=asyncio.subprocess.DEVNULL, stdout=writing,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, **host.environment()})
    os.close(writing)
    _, err = await asyncio.wait_for(child.communicate(), PATIENCE)
    # As other programs: ended by SIGPIPE, or quietly.
    assert child.returncode in (0, -13) and not err, f"status {child.returncode}: {err}"


async def output_that_cannot_be_written_ends_with_74(rig):
    host = Host(rig)
    status, _, err = await host.shell('exec "$0" help >/dev/full')
    equal(status, 74, "status")
    assert "standard output" in err, err


async def an_empty_variable_names_no_socket(rig):
    host = await _running(rig)
    status, _, err = await host.cli("devices", "--config", host.config, env={"MESHHOST_CONTROL": ""})
    equal(status, 0, err)
    # The daemon is found by a config that is wrong by now, and says so itself.
    with open(host.config, "a", encoding="utf-8") as file:
        file.write("wrong = 1\n")
    status, _, err = await host.cli("reload", "--config", host.config, env={"MESHHOST_CONTROL": ""})
    equal(status, 78, err)


async def a_type_that_no_event_has_is_refused_with_the_nearest(rig):
    host = await _running(rig)
    status, out, err = await host.cli("listen", "--type", "link,adverts")
    equal((status, out), (64, ""), "status and output")
    assert '"advert"' in err, err


async def what_goes_over_the_air_is_decrypted(rig):
    host = Host(rig)
    # companion-protocol 3.5, A1 and A2: packets of Public and of #bot.
    (tree,) = (await host.json("decode", "packet", "150011C3C1354D619BAE9590E4D177DB7EEAF982F5BDCF78005D75157D9535FA"
                               "90178F785D"))["packets"]
    equal((tree["decrypted"]["channel"], tree["decrypted"]["sender"], tree["packet_hash"]),
          ("Public", "🌲 Tree", "b35e8ec0e974a30b"))
    bot = "15833fa002860ccae0eed9ca78b9ab0775d477c1f6490a398bf4edc75240"
    (closed,) = (await host.json("decode", "packet", bot))["packets"]
    equal((closed["decrypted"], closed["hops"]), (None, ["3fa002", "860cca", "e0eed9"]))
    for channel in ("#bot", "robots=eb50a1bcb3e4e5d7bf69a57c9dada211"):
        (opened,) = (await host.json("decode", "packet", bot, "--channel", channel))["packets"]
        equal((opened["decrypted"]["timestamp"], opened["decrypted"]["text"]), (1772919297, "P"), channel)
    (log,) = (await host.json("decode", "companion", "3e210088f8ab" + bot, "--channel=#bot"))["frames"]
    equal((log["name"], log["snr_db"], log["decoded"]["decrypted"]["sender"]),
          ("push.receivedPacketLog", -2, "Roy B V4"))


async def an_advert_says_whether_it_is_signed(rig):
    # Made by openhop_core of the node with the seed 00 01 ... 1f.
    advert = ("110003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b880009265db9f6a0e166a1f9b1dc9f6c7bb3d"
              "d0e2a23716193517011b263f6cef1d2a9d1c1be73c68d128c4c7e745e14bdc5bc78d36503d8f4d0fede591c944e4bff28b0c92dc"
              "47d9028eb0cbff48c3bc67656c")
    host = Host(rig)
    for packet, valid in ((advert, True), (advert[:-2] + "6d", False)):
        (shown,) = (await host.json("decode", "packet", packet))["packets"]
        equal((shown["signature_valid"], shown["contents"]["latitude_deg"]), (valid, 47.79414))


async def what_decode_shows_encode_takes(rig):
    host = Host(rig)
    frames = ("3c02001603", "3e03000c8000", "3e150010f800000123456789abff008000926548656c6c6f", "3e050082deadbeef",
              "3e0800e001020304050607", "3e32001203" + "5075626c6963" + "00" * 26 + "000102030405060708090a0b0c0d0e0f")
    for framed in frames:
        (frame,) = (await host.json("decode", "companion", framed, "--secrets"))["frames"]
        equal((await host.json("encode", "companion", json.dumps(frame)))["frame"], framed[6:], frame["name"])
    packet = "09046F17C47ED00A13E16AB5B94B1CC2D1A5059C6E5A6253C60D"
    (shown,) = (await host.json("decode", "packet", packet))["packets"]
    equal((await host.json("encode", "packet", json.dumps(shown)))["packet"], packet.lower())
    lpp = "016700ff" + "048805c395ed51fe0003e8" + "02f009e90004b0fffaecf1"
    rows = (await host.json("decode", "lpp", lpp))["readings"]
    equal([row["type"] for row in rows], ["temperature", "gps", "polyline"])
    equal((await host.json("encode", "lpp", json.dumps(rows)))["payload"], lpp)


async def an_answer_is_read_as_that_of_its_request(rig):
    request = "32" + "00" * 32 + "07"
    response = "8c0001020304" + b"v1\nHill\nAnn".hex()
    (push,) = (await Host(rig).json("decode", "companion", response, "--request", request))["frames"]
    equal(push["answer"], {"firmware": "v1", "node_name": "Hill", "owner": "Ann"})


async def a_daemon_that_decrypts_nothing_has_no_cryptography_in_memory(rig):
    host = await _running(rig)
    with open(f"/proc/{host.pid}/maps", encoding="utf-8") as maps:
        loaded = [line.split()[-1] for line in maps if "libcrypto" in line or "libssl" in line]
    equal(loaded, [], "libraries in memory")


async def a_recording_of_bluetooth_is_told_packet_by_packet(rig):
    host = Host(rig)
    path = os.path.join(ROOT, "Tests/MeshBluetoothStackTests/Transcripts/passkey_sc.btsnoop")
    status, out, err = await host.cli("decode", "btsnoop", path)
    equal((status, err), (0, ""))
    lines = out.splitlines()
    assert any(" host " in line and "smp Pairing Request" in line for line in lines), lines[:40]
    assert any(" controller " in line and "att Handle Value Notification" in line for line in lines), lines[-40:]
    assert "long_term_key" not in out, "a key was shown"
    assert "long_term_key" in (await host.cli("decode", "btsnoop", path, "--secrets"))[1]
    status, out, err = await host.shell(f"\"$0\" decode btsnoop - --jsonl < {path}")
    equal(status, 0, err)
    packets = [json.loads(line) for line in out.splitlines()]
    equal(len(packets), len(lines))
    equal([packet["packet"]["name"] for packet in packets[:2]], ["Reset", "Command Complete"])
    # What is cut is told, what is no recording too.
    status, out, err = await host.shell(f"head -c 300 {path} | \"$0\" decode btsnoop -")
    assert status == 0 and out and "the last record is cut" in err, err
    for bad, text in (("/dev/null", "ends within its header"), (__file__, "no btsnoop recording"),
                      ("/nowhere", "No such file")):
        status, out, err = await host.cli("decode", "btsnoop", bad)
        equal((status, out), (64, ""), bad)
        assert text in err, err
