# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Device1: a remote device, its link, pairing and bond."""
import asyncio
import contextlib
import time

from bumble import hci
from bumble.core import ConnectionError as LinkError
from bumble.core import ProtocolError
from bumble.device import Peer
from bumble.pairing import PairingConfig, PairingDelegate

from faults import ABORT
from gatt import Gatt
from objects import DBusError
from rigio import event

CONNECT_TIMEOUT = 20                             # seconds after which the kernel gives up
AGENT_TIMEOUT = 60
CAPABILITY = {"DisplayOnly": 0, "DisplayYesNo": 1, "KeyboardOnly": 2, "NoInputNoOutput": 3, "KeyboardDisplay": 4}
REASONS = {0x05: ("Authentication", "Connection terminated due to authentication failure"),
           0x08: ("Timeout", "Connection timeout"),
           0x13: ("Remote", "Connection terminated by remote user"),
           0x16: ("Local", "Connection terminated by local host")}
IN_PROGRESS = ("InProgress", "Operation already in progress")


abandoned = set()                                # work of links that ended; held so that it is not destroyed midway


class LinkGone(Exception):
    pass


class AgentAnswers(PairingDelegate):
    """Pairing questions go to the agent on the bus."""

    def __init__(self, device, agent):
        super().__init__(PairingDelegate.IoCapability(CAPABILITY[agent[2]] if agent else 3))
        self.device, self.agent, self.timed_out = device, agent, False

    async def ask(self, member, signature="o", *arguments):
        client, path, _ = self.agent
        event("agent", member=member, device=self.device.address, client=client)
        try:
            return await asyncio.wait_for(self.device.tree.ask(
                client, path, "org.bluez.Agent1", member, signature, [self.device.path, *arguments]), AGENT_TIMEOUT)
        except asyncio.TimeoutError:
            self.timed_out = True
        except DBusError:
            pass
        return None

    def cancel(self):
        """Tell the agent that its answer is not wanted any more."""
        if self.agent and self.device.tree.bus:
            told = asyncio.ensure_future(self.device.tree.ask(*self.agent[:2], "org.bluez.Agent1", "Cancel"))
            told.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def get_number(self):
        body = await self.ask("RequestPasskey") if self.agent else None
        return body[0] if body else None

    async def compare_numbers(self, number, digits):
        return bool(self.agent) and await self.ask("RequestConfirmation", "ou", number) is not None

    async def confirm(self, auto=False):
        """The kernel wants a word on Just Works (5.7 and later). For a pairing that a client has begun bluetoothd gives it
        without asking, but only where there is an agent that could be asked (src/device.c, device_confirm_passkey)."""
        return self.agent is not None

    async def accept(self):
        return True


class Device:
    def __init__(self, adapter, address, kind):
        self.adapter, self.tree, self.faults = adapter, adapter.tree, adapter.faults
        self.address, self.kind = address, kind
        self.path = f"{adapter.path}/dev_{address.replace(':', '_')}"
        self.link = self.peer = self.opening = self.pairing = None
        self.gone = None                         # future that ends with the link
        self.gatt = Gatt(self)
        self.trusted, self.used, self.seen_at = False, False, time.monotonic()

    def export(self):
        self.gatt.objects_withdrawn()
        self.tree.add(self.path, self, Device1={
            "Address": self.address, "AddressType": self.kind, "Alias": self.address.replace(":", "-"),
            "Adapter": ("o", self.adapter.path), "UUIDs": [], "Paired": self.bonded, "Bonded": self.bonded,
            "Connected": False, "Trusted": self.trusted, "Blocked": False, "LegacyPairing": False,
            "ServicesResolved": False})

    @property
    def bonded(self):
        return any(name.split("/")[0] == self.address for name in self.adapter.radio.keystore.all_keys)

    @property
    def temporary(self):
        return not (self.bonded or self.used or self.trusted or self.link or self.opening)

    async def unbond(self):
        for name in [n for n in self.adapter.radio.keystore.all_keys if n.split("/")[0] == self.address]:
            await self.adapter.radio.keystore.delete(name)
        self.tree.set(self.path, "Device1", Paired=False, Bonded=False)

    async def set_Trusted(self, yes):
        self.trusted = yes
        self.tree.set(self.path, "Device1", Trusted=yes)

    async def set_Blocked(self, yes):
        self.tree.set(self.path, "Device1", Blocked=yes)

    async def set_Alias(self, name):
        self.tree.set(self.path, "Device1", Alias=name)

    # connection -------------------------------------------------------------------------------------------------------
    async def Device1_Connect(self, call):
        self.adapter.ready()
        if self.opening or self.pairing:
            raise DBusError(*IN_PROGRESS)
        if not self.link:
            self.used = True
            await self.connect()

    async def connect(self):
        self.opening = asyncio.get_running_loop().create_task(self._open())
        try:
            await self.opening
        except (asyncio.CancelledError, asyncio.TimeoutError, LinkError, LinkGone) as error:
            raise DBusError(*ABORT) from error
        finally:
            self.opening = None

    def _hci_address(self):
        kind = hci.Address.PUBLIC_DEVICE_ADDRESS if self.kind == "public" else hci.Address.RANDOM_DEVICE_ADDRESS
        return hci.Address(self.address, kind)

    async def _open(self):
        async with self.adapter.connecting:
            for _ in range(200):                 # Bumble may still be at one that was cancelled, and takes no other
                if not self.adapter.radio.is_le_connecting:
                    break
                await asyncio.sleep(0.01)
            try:
                link = await asyncio.wait_for(self.adapter.radio.connect(self._hci_address()), CONNECT_TIMEOUT)
            except asyncio.CancelledError:       # Bumble leaves the controller at it, which then makes no other link
                with contextlib.suppress(hci.HCI_Error):
                    await self.adapter.radio.send_sync_command(hci.HCI_LE_Create_Connection_Cancel_Command())
                raise
        self.link, self.gone = link, asyncio.get_running_loop().create_future()
        link.on("disconnection", self._disconnected)
        self.tree.set(self.path, "Device1", Connected=True)
        if self.faults.abort.happens():          # as after an RF error: up for a moment, then Connect fails
            await asyncio.sleep(0.05)
            await link.disconnect(hci.HCI_CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)
            raise LinkGone
        if self.faults.old and self.bonded:      # 5.66 ends Connect only when the link is encrypted
            try:
                await self.while_linked(link.encrypt())
            except hci.HCI_Error:
                await link.disconnect(hci.HCI_AUTHENTICATION_FAILURE_ERROR)
                raise LinkGone from None
        asyncio.get_running_loop().create_task(self._resolve(link))

    async def while_linked(self, work):
        """Await `work`, or fail as soon as the link is gone, while Bumble may wait for ever.

        The work is left alone then, not cancelled: Bumble would lose count of the command that is under way."""
        if not self.link:
            work.close()
            raise LinkGone
        task, gone = asyncio.ensure_future(work), self.gone
        abandoned.add(task)
        task.add_done_callback(lambda done: (abandoned.discard(done), done.cancelled() or done.exception()))
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise LinkGone
        return task.result()

    async def _resolve(self, link):
        try:
            peer = self.peer = Peer(link)
            await self.while_linked(peer.request_mtu(517))
            if self.bonded and not link.is_encrypted:
                await self.while_linked(link.encrypt())
            if not self.faults.no_resolve:
                await self.while_linked(self.gatt.discover(peer))
        except LinkGone:
            pass
        except hci.HCI_Error:                    # the peer lost the bond: bluetoothd gives up the link
            if self.link is link:
                await link.disconnect(hci.HCI_AUTHENTICATION_FAILURE_ERROR)
        except ProtocolError as error:
            event("resolve_failed", device=self.address, error=str(error))

    def _disconnected(self, reason):
        self.link = self.peer = None
        if not self.gone.done():
            self.gone.set_result(reason)
        self.gatt.link_gone(keep=self.faults.keep_gatt and self.bonded)
        name, text = REASONS.get(int(reason), ("Unknown", "Unspecified"))
        self.tree.set(self.path, "Device1", ServicesResolved=False)
        if self.path in self.tree.objects and not self.faults.old:
            self.tree.signal(self.path, "Device1", "Disconnected", "ss", [f"org.bluez.Reason.{name}", text])
        self.tree.set(self.path, "Device1", Connected=False)

    async def drop(self):
        """End whatever there is: an attempt or a link."""
        self.faults.release("Device1.Connect", self.path)
        if self.opening:
            self.opening.cancel()
        if self.link:
            gone = self.gone
            try:
                await asyncio.wait_for(self.link.disconnect(), 2)
            except Exception:
                if not gone.done():              # the controller does not answer: the link is lost all the same
                    self._disconnected(hci.HCI_CONNECTION_TIMEOUT_ERROR)

    async def Device1_Disconnect(self, call):
        hanging = any(where == self.path for _, where, _ in self.faults.hung)
        if not (self.link or self.opening or hanging):
            raise DBusError("NotConnected", "Not Connected")
        await self.drop()

    # pairing ----------------------------------------------------------------------------------------------------------
    async def Device1_Pair(self, call):
        self.adapter.ready()
        if self.pairing or self.opening:
            raise DBusError("InProgress", "In Progress")
        if self.bonded:
            raise DBusError("AlreadyExists", "Already Exists")
        self.used = True
        agent = self.adapter.agents.choose(call.sender)
        answers = AgentAnswers(self, agent)
        mitm = answers.io_capability != PairingDelegate.IoCapability.NO_OUTPUT_NO_INPUT
        config = PairingConfig(sc=True, mitm=mitm, bonding=True, delegate=answers,
                               identity_address_type=PairingConfig.AddressType.RANDOM)
        self.pairing = asyncio.get_running_loop().create_task(self._pair(config))
        try:
            await self.pairing
        except ProtocolError as error:
            why = "Timeout" if answers.timed_out else "Failed"
            raise DBusError(f"Authentication{why}", f"Authentication {why}") from error
        except (asyncio.CancelledError, LinkGone, LinkError) as error:
            answers.cancel()
            raise DBusError("AuthenticationCanceled", "Authentication Canceled") from error
        finally:
            self.pairing = None
        self.tree.set(self.path, "Device1", Paired=True, Bonded=True)

    async def _pair(self, config):
        if not self.link:
            try:
                await self.connect()
            except DBusError as error:
                raise DBusError("ConnectionAttemptFailed", "Page Timeout") from error
        self.adapter.pairing_configs[self.link.handle] = config
        await self.while_linked(self.link.pair())

    async def Device1_CancelPairing(self, call):
        if not self.pairing:
            raise DBusError("DoesNotExist", "Does Not Exist")
        self.pairing.cancel()
