# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What is looked at before the daemon starts: what `check` says, `run` says, and with which status both end."""
import os
import re
import socket

from companion import GET_TIME, Client
from host import Host, bluez, equal, mock, share, unix_share

SECRET = "0123456789abcdef0123456789abcdef"


def _file(path, text=SECRET, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def _token(name, secret):
    return {"name": name, "secret": secret}


def _found(text):
    """Line, severity and code of each diagnostic."""
    return [(int(line), severity, code) for line, severity, code in
            re.findall(r"^\S+\.toml:(\d+):\d+: (error|warning)\[(C\d+)\]", text, re.MULTILINE)]


def _tree(folder):
    """Every file and folder, with all that looking must not change."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            facts = os.lstat(os.path.join(place, name))
            found[os.path.join(place, name)] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_uid)
    return found


async def _run(host, env=None):
    """Run the daemon to its end: its status and what it has said."""
    process = await host.spawn(env=env)
    return await process.ended(), "\n".join(process.errors)


async def everything_that_would_end_a_start_is_told_at_once(rig):
    host = Host(rig)
    missing = rig.path("missing")
    host.state = rig.path("state")
    os.mkdir(host.state)
    os.chmod(host.state, 0o777)
    host.control = rig.path("none/control.sock")
    host.configure(
        bluez("barn", "C0:11:22:33:44:55", pin={"file": missing}), mock("bench"),
        share("bench", tls_certificate=_file(rig.path("cert.pem"), "nonsense"), tls_key=missing,
              token=[_token("alice", {"file": missing}), _token("bob", {"file": _file(rig.path("bob"), mode=0o644)}),
                     _token("short", {"file": _file(rig.path("short"), "123")}),
                     _token("sound", {"file": _file(rig.path("sound"))})]),
        unix_share("bench", rig.path("none/bench.sock")), unix_share("bench", rig.path("cert.pem")))
    before = _tree(rig.scratch.name)
    status, out, err = await host.cli("check", "--config", host.config)
    equal((status, out), (78, ""), f"status and output ({err})")
    found = _found(err)
    equal([code for _, severity, code in found if severity == "error"],
          ["C0404", "C0403", "C0402", "C0401", "C0401", "C0401", "C0403", "C0403"], err)
    equal([code for _, severity, code in found if severity == "warning"], ["C0401"], "the device's secret")
    equal([line for line, _, _ in found], sorted(line for line, _, _ in found), "the order")
    for word in ("chmod go-w", "chmod o-rwx", "openssl rand", "16 are the least", "the folder", "no socket"):
        assert word in err, f"{word} is not in {err}"
    assert SECRET not in err, err
    document = await host.json("check", "--config", host.config, status=78)
    equal([each["line"] for each in document["diagnostics"]], [line for line, _, _ in found], "lines in JSON")
    equal(_tree(rig.scratch.name), before, "files after check")

    status, said = await _run(host)
    equal(status, 78, said)
    equal(_found(said), found, "what run has said")


async def check_makes_nothing_and_binds_nothing(rig):
    host = Host(rig)
    host.state = rig.path("a/b/state")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        host.configure(mock("bench"), share("bench", listen=listen), unix_share("bench", rig.path("a/bench.sock")))
        before = _tree(rig.scratch.name)
        # Whether an address is free is known when it is listened on, and the daemon itself may have it.
        equal((await host.cli("check", "--config", host.config))[0], 0, "status")
        equal(_tree(rig.scratch.name), before, "files after check")
    await host.start()
    equal((await host.cli("check", "--config", host.config))[0], 0, "status beside the daemon")
    assert os.path.exists(rig.path("a/bench.sock")), "the socket is gone"
    equal((await (await Client.connect(rig.path("a/bench.sock"))).ask(GET_TIME))[0], 9)


async def every_address_that_is_taken_is_told_in_one_start(rig):
    host = Host(rig)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other, \
            socket.socket(socket.AF_UNIX) as control:
        control.bind(host.control)
        control.listen()
        ports = [str(each.getsockname()[1]) for each in (one, other)]
        host.configure(mock("bench"), *(share("bench", listen=f"127.0.0.1:{port}") for port in ports))
        status, said = await _run(host)
    equal(status, 69, said)
    for word in (*ports, host.control):
        assert any("meshhost:" in line and word in line for line in said.split("\n")), f"{word} is not in {said}"


async def each_way_a_start_fails_has_its_status(rig):
    async def ends(status, word, *sections, name, env=None, change=None):
        host = Host(rig, name)
        if change:
            change(host)
        host.configure(*(sections or (mock("bench"),)))
        ended, said = await _run(host, env)
        equal(ended, status, f"{name} ({said})")
        assert word in said, f"{name}: {word} is not in {said}"

    def state(make):
        def change(host):
            host.state = rig.path(f"{host.name}-state")
            make(host.state)
        return change

    def database(path):
        os.mkdir(path, 0o700)
        import sqlite3
        with sqlite3.connect(os.path.join(path, "journal.db")) as journal:
            journal.execute("PRAGMA user_version = 99" if "newer" in path else "CREATE TABLE theirs (x)")
            if "newer" in path:
                journal.execute("PRAGMA application_id = 1")

    await ends(78, "not available", mock("bench").replace('"mock"', '"nothing"'), name="module")
    await ends(78, "none", mock("bench"), unix_share("bench", rig.path("none/x.sock")), name="folder")
    await ends(78, "SECRET", mock("bench"), share("bench", token=[_token("a", {"env": "SECRET"})]), name="variable")
    await ends(78, "LoadCredential", mock("bench"), share("bench", token=[_token("a", {"credential": "a"})]),
               name="credential")
    await ends(78, "is not a folder", name="file", change=state(lambda path: _file(path)))
    await ends(78, "another program", name="foreign", change=state(database))
    await ends(78, "everybody", name="open", change=state(lambda path: (os.mkdir(path), os.chmod(path, 0o777))))
    await ends(69, "no address", mock("bench"), share("bench", listen="192.0.2.77:5000", insecure=True), name="address")
    await ends(69, "no address", mock("bench"), share("bench", listen="nowhere.invalid:5000", insecure=True), name="name")


async def without_permission_the_status_is_77(rig):
    host = Host(rig)
    secret = _file(rig.path("secret"))
    host.state = rig.path("state")
    os.mkdir(host.state, 0o700)
    host.configure(mock("bench"), share("bench", token=[_token("alice", {"file": secret})]))
    if os.geteuid() == 0:
        # Root may read everything; what it asks, it asks for the user whose folder it is.
        equal((await host.cli("check", "--config", host.config))[0], 0, "status for root")
        for folder in (rig.scratch.name, host.folder):
            os.chmod(folder, 0o777 | 0o1000)
        os.chown(host.state, 65534, 65534)
    else:
        os.chmod(secret, 0)
    status, _, err = await host.cli("check", "--config", host.config)
    equal(status, 77, err)
    assert secret in err and "permission denied" in err, err
    if os.geteuid() == 0:
        # The folder of another user is not used, whatever the user may do.
        status, said = await _run(host)
        equal(status, 78, said)
        assert "belongs to uid 65534" in said, said


async def a_device_without_its_secret_leaves_the_others_alone(rig):
    host = Host(rig)
    missing = rig.path("missing")
    host.configure(bluez("barn", "C0:11:22:33:44:55", pin={"file": missing}), mock("bench"), share("bench"))
    status, out, err = await host.cli("check", "--config", host.config)
    equal(status, 0, err)
    assert out.startswith("ok:") and missing in err, out + err
    await host.start()
    await host.ready("bench")
    assert any("warning[C0401]" in line and missing in line for line in host.process.errors), host.process.errors


async def all_errors_of_options_are_told_at_once(rig):
    host = Host(rig)
    host.configure(mock("bench", seed="one", contacts=9_999, channels=77, answer_delay=5, adapter="hci0"))
    status, _, err = await host.cli("check", "--config", host.config)
    equal(status, 78, err)
    for key in ("seed", "contacts", "channels", "answer_delay", "adapter"):
        assert host.place(f"{key} =") in err, f"{key} is not in {err}"


async def who_is_not_the_daemons_user_is_told_what_was_not_looked_at(rig):
    if os.geteuid() != 0:
        return rig.note("passed over: needs root")
    host = Host(rig)
    host.configure()
    os.mkdir(host.state, 0o700)
    for folder in (rig.scratch.name, host.folder):
        os.chmod(folder, 0o755)
    os.chmod(host.config, 0o644)
    for owner in (0, 12345):
        os.chown(host.state, owner, owner)
        status, out, err = await host.as_nobody("check", "--config", host.config)
        equal((status, out), (0, "ok: 0 devices, 0 shares\n"), err)
        equal([each[1:] for each in _found(err)], [("warning", "C0404"), ("warning", "C0403")], err)
        assert f"belongs to uid {owner}" in err, err
    os.chown(host.state, 65534, 65534)
    # Now it is that user's own, and the folder of the control socket is not.
    status, _, err = await host.as_nobody("check", "--config", host.config)
    equal((status, [each[1:] for each in _found(err)]), (77, [("error", "C0403")]), err)
