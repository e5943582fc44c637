# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What `probe` does with a client of its own: one function for each part."""
import asyncio
import socket
import time

from bluetooth import ble
from client import ADAPTER, Client, Refused
from harness import PATIENCE

ROOF, FREE, OLD = "C0:11:22:33:44:55", "C0:11:22:33:44:56", "C0:11:22:33:44:57"
RADIOS = [*ble(name="Roof", address=ROOF), *ble(name="Free", address=FREE, security="none"),
          *ble(name="Old", address=OLD, legacy=1)]
PASSKEY = 123456


class Bench:
    def __init__(self, report, bluetooth, client):
        self.address, self.radio, self.bluez = bluetooth.address, bluetooth.radio, bluetooth.bluez
        self.client = client
        self.step, self.check = report.step, report.check
        self.roof = client.path(ROOF)

    async def bonded(self):
        """Roof known, bonded with a passkey, connected and resolved."""
        c = self.client
        if self.roof not in await c.objects():
            await c.find(ROOF)
        if not await c.get(self.roof, "Device1", "Connected"):
            await c.connect(ROOF)
        if not await c.get(self.roof, "Device1", "Bonded"):
            try:
                await c.use_agent(PASSKEY)
            except Refused:
                c.agent.passkey = PASSKEY
            await c.call(self.roof, "Device1.Pair")
        return await c.characteristics(ROOF)

    async def values_after(self, tx, action, count):
        """The values that follow: so many, or what comes within a moment where there should be none."""
        since = self.client.mark()
        await action
        if count:
            await self.client.until(lambda: len(self.client.changes(tx, "Value", since)) >= count)
        else:
            await asyncio.sleep(0.3)
        return self.client.changes(tx, "Value", since)


async def devices(b):
    c = b.client
    await b.step("devices: three radios are found in one scan", c.find(ROOF, FREE, OLD))
    await b.step("devices: one that needs no pairing answers at once", c.connect(FREE))
    await b.step("devices: it echoes", c.echo(FREE))
    b.check("devices: and is not bonded", not await c.get(c.path(FREE), "Device1", "Bonded"))
    await b.bonded()
    await b.step("devices: another one at the same time", c.echo(ROOF))
    await b.step("devices: the first still answers", c.echo(FREE, b"still here"))
    await c.connect(OLD)
    await b.step("devices: legacy pairing with a passkey", c.call(c.path(OLD), "Device1.Pair"))
    await b.step("devices: three links at once", c.echo(OLD))
    for address in (ROOF, FREE, OLD):
        await c.disconnect(address)
    await c.connect(OLD)
    await b.step("devices: legacy bond used again", c.echo(OLD))
    await c.disconnect(OLD)


async def pairing(b):
    c = b.client
    await c.find(ROOF)
    await c.connect(ROOF)
    rx, _ = await c.characteristics(ROOF)
    await b.step("pairing: a write before it is refused", c.write(rx, b"early"), fails_with="NotPermitted Not paired")
    since = c.mark()
    await b.step("pairing: without an agent it fails", c.call(b.roof, "Device1.Pair"), fails_with="AuthenticationFailed")
    b.check("pairing: and leaves no bond", not await c.get(b.roof, "Device1", "Bonded"))
    await b.step("pairing: which ends the link", c.change(b.roof, "Connected", False, since))
    await c.use_agent(0, "NoInputNoOutput")
    await c.connect(ROOF)
    rx, _ = await c.characteristics(ROOF)
    await b.step("pairing: with an agent that can do nothing it is Just Works", c.call(b.roof, "Device1.Pair"))
    await b.step("pairing: which does not satisfy the radio", c.write(rx, b"early"),
                 fails_with="NotPermitted Not paired")
    await c.call("/org/bluez", "AgentManager1.UnregisterAgent", "o", "/agent")
    await c.call(ADAPTER, "Adapter1.RemoveDevice", "o", b.roof)
    await c.find(ROOF)
    await c.use_agent(111111)
    await c.connect(ROOF)
    since = c.mark()
    await b.step("pairing: a wrong passkey fails", c.call(b.roof, "Device1.Pair"), fails_with="AuthenticationFailed")
    b.check("pairing: after the agent was asked once", c.agent.asked == 1, c.agent.asked)
    await b.step("pairing: then the radio ends the link", c.change(b.roof, "Connected", False, since))
    c.agent.passkey = PASSKEY
    await c.connect(ROOF)
    await b.step("pairing: the right one succeeds", c.call(b.roof, "Device1.Pair"))
    await b.step("pairing: once", c.call(b.roof, "Device1.Pair"), fails_with="AlreadyExists")
    await b.step("pairing: the radio answers", c.echo(ROOF))
    await c.disconnect(ROOF)
    asked = c.agent.asked
    await b.step("pairing: the bond is used again", c.connect(ROOF))
    await b.step("pairing: with it the radio answers", c.echo(ROOF))
    b.check("pairing: without asking", c.agent.asked == asked)
    since = c.mark()
    await b.radio.command("forget Roof")
    await c.disconnect(ROOF)
    await c.connect(ROOF, resolved=False)
    await b.step("pairing: a bond that the radio lost ends the link", c.until(
        lambda: [body for _, body in c.named("Device1.Disconnected", since) if "Authentication" in body[0]]))
    await b.bluez.command(f"unbond {ROOF}")
    b.check("unbond: no bond on this side", not await c.get(b.roof, "Device1", "Bonded"))
    await b.radio.command("passkey 654321 Roof")
    c.agent.passkey = 654321
    await c.connect(ROOF)
    await b.step("pairing: the radio's new passkey", c.call(b.roof, "Device1.Pair"))
    await b.radio.command("passkey 123456 Roof")
    await c.disconnect(ROOF)


async def writes(b):
    c = b.client
    rx, tx = await b.bonded()
    await b.step("writes: longer than MTU-3 as a long write", c.write(rx, bytes(300)))
    seen = await b.radio.event("rx_write", radio="Roof")
    b.check("writes: arrives whole", seen["len"] == 300, seen["len"])
    await b.step("writes: more than 512 bytes", c.write(rx, bytes(513)), fails_with="InvalidArguments Invalid Length")
    await b.step("writes: a command beyond MTU-3", c.write(rx, bytes(300), "command"), fails_with="Failed")
    results = await asyncio.gather(c.write(rx, bytes(300)), c.write(rx, b"two"), return_exceptions=True)
    b.check("writes: a second one meanwhile is InProgress", [str(r)[:10] for r in results] == ["None", "InProgress"],
            results)
    await b.step("writes: read the MTU", c.get(rx, "GattCharacteristic1", "MTU"))
    await c.disconnect(ROOF)
    await b.step("writes: without a link", c.write(rx, b"x"), fails_with="UnknownObject")


async def notifications(b):
    c = b.client
    rx, tx = await b.bonded()
    await b.radio.command("early on Roof")
    since = c.mark()
    await c.call(tx, "GattCharacteristic1.StartNotify")
    b.check("early: a value before the CCCD response is told before StartNotify returns",
            c.changes(tx, "Value", since) == [b"early"], c.changes(tx, "Value", since))
    await b.radio.command("early off Roof")
    values = await b.values_after(tx, b.radio.command("notify 0102 3 Roof"), 3)
    b.check("repeated: the same value three times", values == [b"\1\2"] * 3, values)
    values = await b.values_after(tx, b.radio.command("notify - 1 Roof"), 1)
    b.check("empty: a notification without bytes", values == [b""], values)
    await b.bluez.command("duplicate on")
    values = await b.values_after(tx, b.radio.command("notify 03 1 Roof"), 2)
    b.check("duplicate: each value is told twice", values == [b"\3"] * 2, values)
    await b.bluez.command("duplicate off")
    values = await b.values_after(tx, b.radio.command("burst 300 100 Roof"), 300)
    b.check("burst: 300 in order", [int.from_bytes(v[1:3], "little") for v in values] == list(range(300)), len(values))
    await c.disconnect(ROOF)
    await c.connect(ROOF)
    values = await b.values_after(tx, b.radio.command("notify 04 1 Roof"), 1)
    b.check("re-armed: told after a reconnection without a new StartNotify", values == [b"\4"], values)
    await c.call(tx, "GattCharacteristic1.StopNotify")
    values = await b.values_after(tx, b.radio.command("notify 05 1 Roof"), 0)
    b.check("StopNotify: nothing any more", values == [], values)

    await b.radio.command("early on Roof")
    reply = await c.call(tx, "GattCharacteristic1.AcquireNotify", "a{sv}", {}, raw=True)
    end = socket.socket(fileno=reply.unix_fds[0])
    end.setblocking(False)
    await b.radio.command("early off Roof")
    await b.radio.command("notify 06 1 Roof")
    await b.radio.command("notify - 1 Roof")
    await b.radio.command("notify 07 1 Roof")
    async def received():
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(end, 512), PATIENCE)
    got = [await received() for _ in range(3)]
    b.check("AcquireNotify: what came before the response is lost, an empty value is an empty datagram",
            got == [b"\6", b"", b"\7"], got)
    await b.step("AcquireNotify: excludes StartNotify", c.call(tx, "GattCharacteristic1.StartNotify"),
                 fails_with="NotPermitted Notify acquired")
    reply = await c.call(rx, "GattCharacteristic1.AcquireWrite", "a{sv}", {}, raw=True)
    out = socket.socket(fileno=reply.unix_fds[0])
    out.send(b"by descriptor")
    await b.step("AcquireWrite: reaches the radio", b.radio.event("rx_write", radio="Roof", len=13))
    await b.step("AcquireWrite: excludes WriteValue", c.write(rx, b"x"), fails_with="NotPermitted Write acquired")
    await c.disconnect(ROOF)
    rest = [await received()]
    while rest[-1]:
        rest.append(await received())
    b.check("AcquireNotify: the descriptor ends with the link", rest[-1] == b"", rest)
    end.close()
    out.close()


async def injected(b):
    c = b.client
    await b.bonded()
    await c.disconnect(ROOF)

    async def tries(count, method, path):
        outcome = []
        for _ in range(count):
            try:
                await c.call(path, method)
                outcome.append("ok")
            except Refused as error:
                outcome.append(str(error).strip())
        return outcome
    await b.bluez.command("fail Device1.Connect InProgress 2")
    got = await tries(3, "Device1.Connect", b.roof)
    b.check("fail: InProgress on Connect twice", got == ["InProgress", "InProgress", "ok"], got)
    await c.disconnect(ROOF)
    await b.bluez.command("fail StartDiscovery InProgress 2 Operation already in progress")
    got = await tries(3, "Adapter1.StartDiscovery", ADAPTER)
    b.check("fail: InProgress on StartDiscovery twice", [g[:10] for g in got] == ["InProgress", "InProgress", "ok"],
            got)
    await c.call(ADAPTER, "Adapter1.StopDiscovery")
    await b.bluez.command("fail * org.freedesktop.DBus.Error.AccessDenied 1 not for you")
    await b.step("fail: AccessDenied on anything", c.objects(), fails_with="AccessDenied")

    since = c.mark()
    await b.bluez.command("abort 2")
    got = await tries(2, "Device1.Connect", b.roof)
    b.check("abort: le-connection-abort-by-local twice", got == ["Failed le-connection-abort-by-local"] * 2, got)
    b.check("abort: Connected went up and down each time", c.changes(b.roof, "Connected", since) == [True, False] * 2)
    await b.step("abort: the third attempt holds", c.connect(ROOF))
    await c.disconnect(ROOF)
    await b.bluez.command("abort 50%")
    got = []
    for _ in range(20):
        got += await tries(1, "Device1.Connect", b.roof)
        if got[-1] == "ok":
            await c.disconnect(ROOF)
    await b.bluez.command("clear")
    b.check("abort: 50% of 20", 0 < got.count("ok") < 20, f"{got.count('ok')} held")

    await b.bluez.command("hang Device1.Connect 1")
    pending = asyncio.ensure_future(c.call(b.roof, "Device1.Connect"))
    await asyncio.sleep(0.5)
    b.check("hang: Connect is not answered", not pending.done())
    await c.call(b.roof, "Device1.Disconnect")
    await b.step("hang: Disconnect ends it", pending, fails_with="le-connection-abort-by-local")
    await b.bluez.command("delay Device1.Connect 0.7 1")
    begin = time.monotonic()
    await c.connect(ROOF)
    b.check("delay: Connect answered later", 0.7 < time.monotonic() - begin, f"{time.monotonic() - begin:.2f} s")
    await c.disconnect(ROOF)

    await b.radio.command("adv off Roof")
    pending = asyncio.ensure_future(c.call(b.roof, "Device1.Connect"))
    await asyncio.sleep(0.5)
    await b.step("silent radio: a second Connect meanwhile", c.call(b.roof, "Device1.Connect"), fails_with="InProgress")
    await c.call(b.roof, "Device1.Disconnect")
    await b.step("silent radio: Disconnect ends the attempt", pending, fails_with="le-connection-abort-by-local")
    await b.radio.command("adv on Roof")
    await b.step("silent radio: later it connects", c.connect(ROOF))
    await c.disconnect(ROOF)


async def resolving(b):
    c = b.client
    await b.bonded()
    await c.disconnect(ROOF)
    await b.bluez.command("early-resolved 3")
    await c.connect(ROOF)
    first = then = await c.characteristics(ROOF)
    while not all(then):
        await asyncio.sleep(0.1)
        then = await c.characteristics(ROOF)
    b.check("early-resolved: true before there is a service, objects later", first == (None, None) and all(then), first)
    await c.disconnect(ROOF)
    await b.bluez.command("early-resolved 0")
    await b.bluez.command("no-resolve on")
    await c.connect(ROOF, resolved=False)
    await asyncio.sleep(1)
    b.check("no-resolve: never", not await c.get(b.roof, "Device1", "ServicesResolved"))
    await c.disconnect(ROOF)
    await b.bluez.command("no-resolve off")
    await c.connect(ROOF)
    rx, _ = await c.characteristics(ROOF)
    await c.disconnect(ROOF)
    b.check("GATT objects go with the link", rx not in await c.objects())
    await b.bluez.command("keep-gatt on")
    await c.connect(ROOF)
    await c.disconnect(ROOF)
    b.check("keep-gatt: they stay", rx in await c.objects())
    await b.step("keep-gatt: and say that there is no link", c.write(rx, b"x"), fails_with="Failed Not connected")
    await c.connect(ROOF)
    await b.step("keep-gatt: usable again", c.echo(ROOF))
    await b.bluez.command("keep-gatt off")
    await c.disconnect(ROOF)


async def links(b):
    c = b.client
    await b.bonded()
    for command, reason in (("terminate", "Remote"), ("linkloss", "Timeout")):
        since = c.mark()
        await b.radio.command(f"{command} Roof")
        await b.step(f"{command}: Disconnected({reason}) and Connected=false", c.until(
            lambda: any(reason in body[0] for _, body in c.named("Device1.Disconnected", since))
            and False in c.changes(b.roof, "Connected", since)))
        await b.step(f"{command}: connected again", c.connect(ROOF))
    await c.disconnect(ROOF)
    since = c.mark()
    await b.bluez.command(f"connect {ROOF}")
    await b.step("connect: a link that somebody else made", c.change(b.roof, "ServicesResolved", True, since))
    await b.step("connect: can be used", c.echo(ROOF))
    await b.step("connect: Connect says yes", c.call(b.roof, "Device1.Connect"))
    await b.bluez.command(f"disconnect {ROOF}")
    await b.step("disconnect: by somebody else", c.change(b.roof, "Connected", False, since))


async def adapter(b):
    c = b.client
    await b.bonded()
    since = c.mark()
    await b.bluez.command("power off")
    await b.step("power off: link and Powered go", c.until(
        lambda: False in c.changes(b.roof, "Connected", since) and False in c.changes(ADAPTER, "Powered", since)))
    await b.step("power off: NotReady", c.call(b.roof, "Device1.Connect"), fails_with="NotReady")
    await b.step("power off: no discovery", c.call(ADAPTER, "Adapter1.StartDiscovery"), fails_with="NotReady")
    await b.bluez.command("power on")
    await b.step("power on: connected again", c.connect(ROOF))
    await b.step("Powered: set by a client", c.set(ADAPTER, "Adapter1", "Powered", "b", False))
    await c.set(ADAPTER, "Adapter1", "Powered", "b", True)
    await b.bluez.command("rfkill on")
    await b.step("rfkill: cannot be powered", c.set(ADAPTER, "Adapter1", "Powered", "b", True), fails_with="Blocked")
    b.check("rfkill: PowerState", await c.get(ADAPTER, "Adapter1", "PowerState") == "off-blocked")
    await b.bluez.command("rfkill off")
    await c.set(ADAPTER, "Adapter1", "Powered", "b", True)
    await b.step("rfkill lifted: connected again", c.connect(ROOF))

    def told(what):
        return {body[0] for _, body in c.named(f"ObjectManager.Interfaces{what}", since)}
    since = c.mark()
    await b.bluez.command("adapter remove")
    await b.step("adapter remove: adapter and device objects go",
                 c.until(lambda: {ADAPTER, b.roof} <= told("Removed")))
    await b.step("adapter remove: calls find nothing", c.call(ADAPTER, "Adapter1.StartDiscovery"),
                 fails_with="UnknownObject")
    since = c.mark()
    await b.bluez.command("adapter add")
    await b.step("adapter add: with the bonded device", c.until(lambda: {ADAPTER, b.roof} <= told("Added")))
    await b.step("adapter add: connected from the bond", c.connect(ROOF))
    await b.step("adapter add: the radio answers", c.echo(ROOF))

    since = c.mark()
    await b.bluez.command(f"removedev {ROOF}")
    await b.step("removedev: InterfacesRemoved", c.until(lambda: [1 for _, body in c.named(
        "ObjectManager.InterfacesRemoved", since) if body[0] == b.roof]))
    await b.step("removedev: the device is unknown", c.call(b.roof, "Device1.Connect"), fails_with="UnknownObject")


async def daemon(b):
    c = b.client
    await b.bonded()
    since = c.mark()
    await b.bluez.command("restart 0.3")
    await b.step("restart: the name goes and comes", c.until(
        lambda: [body[2] != "" for _, body in c.named("DBus.NameOwnerChanged", since)] == [False, True]))
    b.check("restart: the link was told to end", False in c.changes(b.roof, "Connected", since))
    b.check("restart: agents are forgotten, the bond is not",
            await c.get(b.roof, "Device1", "Bonded") and await c.use_agent(PASSKEY) is None)
    await b.step("restart: connected from the bond", c.connect(ROOF))
    await b.step("restart: the radio answers", c.echo(ROOF))

    since = c.mark()
    await b.bluez.command("hang Adapter1.StartDiscovery 1")
    pending = asyncio.ensure_future(c.call(ADAPTER, "Adapter1.StartDiscovery"))
    await asyncio.sleep(0.2)
    await b.bluez.command("crash stay")
    await b.step("crash: an open call fails", pending, fails_with="NoReply")
    await b.step("crash: the name has no owner", c.objects(), fails_with="ServiceUnknown")
    told = [name for _, _, name, _ in c.signals[since:]]
    b.check("crash: no signal but NameOwnerChanged", told == ["DBus.NameOwnerChanged"], told)
    await b.step("crash: the radio lost its link", b.radio.event("disconnected", radio="Roof"))
    await b.bluez.command("come-back")
    await b.bluez.command("clear")
    await b.step("come-back: connected from the bond", c.connect(ROOF))
    await b.step("come-back: the radio answers", c.echo(ROOF))
    await c.disconnect(ROOF)


async def clients(b):
    c = b.client
    await b.bluez.command("removedev")
    async with Client(b.address) as other:
        await other.call(ADAPTER, "Adapter1.StartDiscovery")
        await c.call(ADAPTER, "Adapter1.StartDiscovery")
        await c.call(ADAPTER, "Adapter1.StopDiscovery")
        b.check("clients: discovery goes on for the other one", await c.get(ADAPTER, "Adapter1", "Discovering"))
        since = c.mark()
    await b.step("clients: it ends when that one leaves", c.change(ADAPTER, "Discovering", False, since))
    await asyncio.sleep(1.7)
    b.check("clients: devices that were only seen are forgotten",
            not [p for p in await c.objects() if "/dev_" in p])
    await c.call(ADAPTER, "Adapter1.SetDiscoveryFilter", "a{sv}", {})
    await b.bonded()
    await c.disconnect(ROOF)
    await asyncio.sleep(1.7)
    b.check("clients: bonded ones are not", [p for p in await c.objects() if "/dev_" in p] == [b.roof])


async def adapters(b):
    """Two of them; the client speaks to hci1, too."""
    c, second = b.client, "/org/bluez/hci1"
    await b.bonded()
    await c.call(second, "Adapter1.StartDiscovery")
    free = f"{second}/dev_{FREE.replace(':', '_')}"
    await b.step("adapters: the other one finds radios by itself", c.until(lambda: [1 for _, body in c.named(
        "ObjectManager.InterfacesAdded") if body[0] == free]))
    await c.call(second, "Adapter1.StopDiscovery")
    await b.step("adapters: a link on it", c.call(free, "Device1.Connect"))
    await c.until(lambda: True in c.changes(free, "ServicesResolved"))
    await b.bluez.command("fail Device1.Pair@hci1 Failed 9 on the other adapter")
    await b.step("adapters: a fault on one of them", c.call(free, "Device1.Pair"), fails_with="on the other adapter")
    await b.bluez.command("clear")
    since = c.mark()
    await b.bluez.command("power off hci1")
    await b.step("adapters: one off ends its links", c.change(free, "Connected", False, since))
    await b.step("adapters: and not those of the other", c.echo(ROOF))
    await b.bluez.command("power on hci1")
    await b.bluez.command("adapter remove hci0")
    await b.step("adapters: one removed, the other connects again", c.call(free, "Device1.Connect"))
    called = b.bluez.all("call", member="Connect", path=free)
    b.check("adapters: calls and answers are told", len(called) == 2 and b.bluez.find(
        "answer", n=called[1]["n"], error=None) is not None, called)


PARTS = [devices, pairing, writes, notifications, injected, resolving, links, adapter, daemon, clients, adapters]
