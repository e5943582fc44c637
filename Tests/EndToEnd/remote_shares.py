# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Shares with tokens and TLS: clients in Python (ssl, hmac), the program openssl, and `meshhost bridge`."""
import asyncio
import collections
import hashlib
import hmac
import os
import ssl
import subprocess
import time

from companion import GET_STATS, GET_TIME, Client, app_start
from harness import PATIENCE
from host import Host, equal, eventually, mock, share
from patient_meshcore import connect

QUIET = {"advert_interval": "0s", "message_interval": "0s", "rx_log_interval": "0s", "answer_delay": "1ms"}
NAME = "roof.example"
SECRETS = {"alice": "a secret of Alice's own", "bot": "a secret of the bot's own"}
SET_NAME = b"\x08renamed"
UNSUPPORTED, REFUSED, OK = b"\x01\x01", b"\x01\x06", b"\x00"


class Certificate:
    """A certificate that vouches for itself, made by the program openssl."""

    def __init__(self, folder, name):
        self.path, self.key = os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}.key")
        self.make()

    def make(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
             "-subj", "/CN=roof", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1", "-keyout", self.key,
             "-out", self.path], check=True, capture_output=True)
        os.chmod(self.key, 0o600)

    @property
    def pin(self):
        """SHA-256 over the DER form, by Python."""
        with open(self.path, encoding="ascii") as file:
            return hashlib.sha256(ssl.PEM_cert_to_DER_cert(file.read())).hexdigest()

    def context(self):
        return ssl.create_default_context(cafile=self.path)


class RemoteClient(Client):
    """A companion client that speaks TLS and proves a token."""

    @classmethod
    async def connect(cls, port, context=None):
        """`context`: for TLS."""
        if context is None:
            return await super().connect(port)
        self = cls()
        self.pushes, self.history = collections.deque(), []
        self.reader, self.writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME), PATIENCE)
        return self

    async def prove(self, name, secret):
        """The proof of the handbook, in Python; the host's last word."""
        question = await self.ask(b"\x7e\x00" + name.encode())
        if question is None or question[:1] != b"\x7e":
            return question
        equal(len(question), 33, "length of the host's question")
        code = hmac.new(secret.encode(), b"meshhost share v1" + question[1:] + name.encode(), hashlib.sha256).digest()
        return await self.ask(b"\x7e\x01" + code)


class Remote:
    """A daemon with a simulated radio and a share for others: two tokens, and TLS unless `tls` is false."""

    def __init__(self, rig):
        self.rig, self.host = rig, Host(rig)
        self.certificate = Certificate(self.host.folder, "server")
        for name, secret in SECRETS.items():
            self.write(name, secret)

    def path(self, name):
        return os.path.join(self.host.folder, f"{name}.secret")

    def write(self, name, secret):
        with open(self.path(name), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(secret + "\n")

    def sections(self, tls=True, **keys):
        tokens = [{"name": "alice", "role": "admin", "secret": {"file": self.path("alice")}},
                  {"name": "bot", "secret": {"file": self.path("bot")}}]
        files = {"tls_certificate": self.certificate.path, "tls_key": self.certificate.key} if tls else {}
        return mock("roof", **QUIET), share("roof", token=tokens, **files, **keys)

    async def start(self, **keys):
        self.host.configure(*self.sections(**keys))
        await self.host.start()
        await self.host.ready("roof")
        self.port = await self.host.address("roof")
        return self

    async def client(self, name=None, secret=None, context="own"):
        client = await RemoteClient.connect(self.port, self.certificate.context() if context == "own" else context)
        self.rig.closers.append(client.close)
        if name is not None:
            equal(await client.prove(name, secret or SECRETS[name]), OK, f"the proof of {name}")
        return client

    async def denied(self):
        return (await self.host.clients())["cut"]["denied"]

    async def bridge(self, *options, listen="127.0.0.1:0"):
        """`meshhost bridge`, once it listens; `.listen` is where."""
        bridge = await self.rig.start("bridge", self.host.binary, "bridge", "--json", "--to", f"127.0.0.1:{self.port}",
                                      "--listen", listen, *options, key="type")
        listen = (await bridge.event("bridge.listening"))["data"]["listen"]
        bridge.listen = listen if listen.startswith("/") else int(listen.rpartition(":")[2])
        return bridge


async def a_client_in_python_with_tls_and_a_token(rig):
    remote = await Remote(rig).start()
    alice, bot = await remote.client("alice"), await remote.client("bot")
    equal(alice.writer.get_extra_info("ssl_object").version(), "TLSv1.3", "TLS")
    await alice.greet("phone", version=3)
    await bot.greet("bot", version=3)
    # Each in the role of its token: a new name is for admins.
    equal(await alice.ask(SET_NAME), OK, "alice sets the name")
    equal(await bot.ask(SET_NAME), UNSUPPORTED, "the bot does not")
    for _ in range(200):
        equal((await alice.ask(GET_STATS))[:1], b"\x18", "answer")
    listed = {each["token"]: each for each in (await remote.host.clients())["clients"]}
    equal({name: (each["role"], each["tls"], each["app"]) for name, each in listed.items()},
          {"alice": ("admin", "TLSv1.3", "phone"), "bot": ("chat", "TLSv1.3", "bot")}, "clients")
    found = (await remote.host.devices())["roof"]["shares"][0]
    equal((found["tls"], found["tokens"]), (True, ["alice", "bot"]), "the share")
    # TLS 1.2 is the oldest that is spoken.
    old = remote.certificate.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    client = await remote.client("alice", context=old)
    equal(client.writer.get_extra_info("ssl_object").version(), "TLSv1.2", "TLS")
    await client.greet("phone")
    # In good order: TLS's own end, which the daemon answers.
    await client.leave()
    left = await remote.host.events.event("client.leave", where=lambda each: each["data"]["token"] == "alice")
    equal(left["data"]["reason"], "closed", "how it left")


async def nobody_else_comes_in(rig):
    remote = await Remote(rig).start()
    # Without a proof, with a wrong one, with that of somebody unknown.
    for first in (app_start("app"), b"\x7e", b"\x7e\x01" + bytes(32)):
        client = await remote.client()
        equal(await client.ask(first), UNSUPPORTED, f"answer to {first.hex()}")
        equal(await client.frame(), None, "the end")
    for name, secret in (("alice", "a secret of Alice's ow"), ("carol", SECRETS["alice"])):
        client = await remote.client()
        equal(await client.prove(name, secret), REFUSED, f"{name} with a wrong secret")
        equal(await client.frame(), None, "the end")
    # Without TLS, and with a version that is too old to be safe.
    plain = await remote.client(context=None)
    plain.send(app_start("app"))
    equal(await plain.frame(), None, "the end of a client without TLS")
    done = await _openssl("s_client", "-connect", f"127.0.0.1:{remote.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    assert "no peer certificate available" in done, done
    await eventually(lambda: _is(remote.denied, 7), "seven that were denied")
    # A proof of before is none for the next connection.
    first, second = await remote.client(), await remote.client()
    nonces = [await each.ask(b"\x7e\x00alice") for each in (first, second)]
    assert nonces[0] != nonces[1], "the same nonce twice"
    code = hmac.new(SECRETS["alice"].encode(), b"meshhost share v1" + nonces[0][1:] + b"alice", hashlib.sha256).digest()
    equal(await second.ask(b"\x7e\x01" + code), REFUSED, "a proof that was made for another connection")
    equal(await first.ask(b"\x7e\x01" + code), OK, "the proof that was made for this one")
    # That was the third failure from here: nobody else is listened to, and who was there before stays.
    try:
        client = await RemoteClient.connect(remote.port, remote.certificate.context())
        equal(await client.frame(), None, "whoever comes from where three failed")
    except (ConnectionError, ssl.SSLError):
        pass
    await eventually(lambda: _is(remote.denied, 9), "nine that were denied")
    await first.greet("app")


async def who_says_nothing_has_ten_seconds(rig):
    remote = await Remote(rig).start()
    begin = time.monotonic()
    silent, halfway = await remote.client(context=None), await remote.client()
    await halfway.ask(b"\x7e\x00alice")
    equal(await silent.frame(), None, "one that does not even begin with TLS")
    equal(await halfway.frame(), None, "one that stops in the middle of the proof")
    took = time.monotonic() - begin
    assert took > 9, f"it took {took:.1f} s"
    await remote.host.events.event("client.refused", where=lambda each: each["data"]["reason"] == "timeout")


async def wrong_proofs_of_one_program_keep_out_no_others(rig):
    remote = await Remote(rig).start(tls=False)
    stale = [await remote.client(context=None) for _ in range(5)]
    for client in stale:                                  # one of 32 that are waited for; told so late in the end
        equal(await client.prove("alice", "an old secret of hers"), REFUSED)
    for name in ("alice", "bot"):
        client = await remote.client(name, context=None)
        equal((await client.ask(GET_TIME))[0], 9, f"{name} from the same address")
    equal(await remote.denied(), 5)


async def a_place_in_the_messages_goes_with_the_token(rig):
    remote = await Remote(rig).start(tls=False)
    alice, events = await remote.client("alice", context=None), remote.host.events

    async def arrive(number):
        equal(await alice.ask(b"\x29messages:3"), OK, "answer of the simulated radio")
        await events.until(lambda: events.count("message.direct") + events.count("message.channel") == number,
                           f"{number} messages in the journal")
    first = await remote.client("bot", context=None)
    await first.greet("one program", version=3)
    await arrive(3)
    read = await first.mail()
    await first.leave()
    await events.event("client.leave")
    await arrive(6)
    second = await remote.client("bot", context=None)
    await second.greet("another program", version=3)
    again = await second.mail()
    equal((len(read), len(again), set(read) & set(again)), (3, 3, set()), "messages, those after, and those of both")


async def meshcore_py_comes_in_over_the_bridge(rig):
    remote = await Remote(rig).start()
    bridge = await remote.bridge("--ca", remote.certificate.path, "--token", "alice", "--secret-file", remote.path("alice"))
    radio = await connect(bridge.listen)
    opened = await bridge.event("bridge.open")
    equal(opened["data"]["tls"], "TLSv1.3", "TLS of the bridge")
    answer = await radio.commands.send_device_query()
    assert answer.payload.get("fw ver") is not None, answer
    equal((await radio.commands.set_name("By the bridge")).type.value, "command_ok", "set_name")
    (client,) = (await remote.host.clients())["clients"]
    equal((client["token"], client["role"], client["tls"]), ("alice", "admin", "TLSv1.3"), "the client")
    # A second program has a connection of its own.
    other = await Client.connect(bridge.listen)
    await other.greet("second")
    equal(len((await remote.host.clients())["clients"]), 2, "clients")
    await radio.disconnect()
    equal((await bridge.event("bridge.close", where=lambda each: each["data"]["client"] == 1))["data"]["by"], "client",
          "who closed it")
    # When the daemon goes, the program sees it, and the bridge waits for the next.
    equal(await remote.host.stop(), 0, "the daemon's end")
    equal(await other.frame(), None, "the second program's connection")
    await other.close()
    lost = await Client.connect(bridge.listen)
    equal(await lost.frame(), None, "a program while there is no daemon")
    equal((await bridge.event("bridge.fail"))["data"]["code"], "link.refused", "why")
    bridge.kill(15)
    equal(await bridge.ended(), 0, "the bridge's end")


async def a_bridge_on_a_socket_with_a_pinned_certificate(rig):
    remote = await Remote(rig).start()
    path = rig.path("bridge.sock")
    bridge = await remote.bridge("--pin", remote.certificate.pin, "--token", "bot", "--secret-file", remote.path("bot"),
                                 listen=path)
    equal(os.stat(path).st_mode & 0o777, 0o660, "mode of the socket")
    client = await Client.connect(path)
    await client.greet("app")
    # Much at once, both ways.
    for _ in range(2_000):
        client.send(GET_STATS)
    for _ in range(2_000):
        equal((await client.reply())[:1], b"\x18", "answer")
    await client.leave()
    await bridge.event("bridge.close")
    bridge.kill(15)
    equal(await bridge.ended(), 0, "the bridge's end")
    assert not os.path.exists(path), "the socket is left"


async def a_bridge_says_what_is_wrong(rig):
    remote = await Remote(rig).start()
    other = Certificate(remote.host.folder, "other")
    secret = ("--secret-file", remote.path("alice"))
    for options, code, text in (
            (("--tls", "--token", "alice", *secret), "link.authentication-failed", "is not accepted"),
            (("--ca", other.path, "--token", "alice", *secret), "link.authentication-failed", "is not accepted"),
            (("--pin", other.pin, "--token", "alice", *secret), "link.authentication-failed", "pinned"),
            (("--ca", remote.certificate.path, "--token", "bot", *secret), "link.authentication-failed", "refuses the token"),
            (("--token", "alice", *secret), "link.closed-by-peer", "TLS")):
        bridge = await remote.bridge(*options)
        client = await Client.connect(bridge.listen)
        equal(await client.frame(), None, "the program's connection")
        failure = (await bridge.event("bridge.fail"))["data"]
        equal(failure["code"], code, f"code with {options}")
        assert text in failure["message"], failure
        await bridge.error_line(failure["message"])
        equal(bridge.count("bridge.open"), 0, "connections that were opened")
        await bridge.stop()
    os.chmod(remote.path("alice"), 0o644)
    for words, status, text in (
            (("--listen", "0.0.0.0:0"), 64, "this machine only"),
            (("--listen", f"127.0.0.1:{remote.port}"), 69, "in use"),
            (("--listen", "127.0.0.1:0", "--ca", "/nowhere.pem"), 78, "does not exist"),
            (("--listen", "127.0.0.1:0", "--ca", remote.path("bot")), 78, "certificate of an authority"),
            (("--listen", "127.0.0.1:0", "--token", "alice", *secret), 78, "chmod")):
        ended, _, errors = await remote.host.cli("bridge", "--to", "127.0.0.1:1", *words)
        equal(ended, status, f"status with {words}: {errors}")
        assert text in errors, errors


async def a_reload_takes_renewed_files(rig):
    remote = await Remote(rig).start()
    old = remote.certificate.context()
    alice, bot = await remote.client("alice"), await remote.client("bot")
    # Another certificate: who is there stays, who comes sees the new one.
    remote.certificate.make()
    equal((await remote.host.cli("reload"))[0], 0, "reload")
    await alice.greet("app")
    try:
        await RemoteClient.connect(remote.port, old)
        raise AssertionError("the old certificate is still shown")
    except ssl.SSLCertVerificationError:
        pass
    await remote.client("bot")
    # Another secret: the token's client is cut, the others are not.
    remote.write("alice", "another secret of Alice's")
    equal((await remote.host.cli("reload"))[0], 0, "reload")
    left = await remote.host.events.event("client.leave", where=lambda each: each["data"]["token"] == "alice")
    equal(left["data"]["reason"], "denied", "why it left")
    await alice.ended()
    await bot.greet("app")
    equal(await (await remote.client()).prove("alice", SECRETS["alice"]), REFUSED, "the old secret")
    await remote.client("alice", "another secret of Alice's")
    # What cannot be read changes nothing.
    os.chmod(remote.certificate.key, 0o644)
    status, _, errors = await remote.host.cli("reload")
    equal(status, 69, "status of a reload with a key that everybody can read")
    assert "chmod" in errors, errors
    await bot.greet("app")
    await remote.client("bot")
    equal((await remote.host.devices())["roof"]["shares"][0]["tls"], True, "TLS")


async def a_share_with_a_short_secret_or_a_foreign_key_is_not_opened(rig):
    remote = Remote(rig)

    async def refused(what, text):
        remote.host.configure(*remote.sections())
        process = await remote.host.spawn()
        equal(await process.ended(), 78, f"status with {what}: {process.errors[-2:]}")
        assert any(text in line for line in process.errors), process.errors

    remote.write("bot", "too short")
    await refused("a short secret", "16 are the least")
    remote.write("bot", SECRETS["bot"])
    remote.certificate.key = Certificate(remote.host.folder, "other").key
    await refused("the key of another certificate", "private key")


async def openssl_sees_the_whole_chain_and_the_name(rig):
    remote = await Remote(rig).start()
    done = await _openssl("s_client", "-connect", f"127.0.0.1:{remote.port}", "-CAfile", remote.certificate.path,
                          "-verify_hostname", NAME, "-verify_return_error")
    assert "Verification: OK" in done and "TLSv1.3" in done, done


async def a_daemon_without_tls_has_none_of_it_in_memory(rig):
    remote = await Remote(rig).start(tls=False)
    client = await remote.client("bot", context=None)
    await client.greet("app")
    with open(f"/proc/{remote.host.pid}/maps", encoding="utf-8") as file:
        assert "libssl" not in file.read(), "libssl is loaded"


async def _is(look, value):
    return await look() == value


async def _openssl(*words):
    """What the program openssl prints when its input is at its end."""
    child = await asyncio.create_subprocess_exec(
        "openssl", *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT)
    out, _ = await asyncio.wait_for(child.communicate(), PATIENCE)
    return out.decode(errors="replace")
