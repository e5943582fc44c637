# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The D-Bus side of the facade: a tree of objects on a connection that owns org.bluez, as bluetoothd's would be."""
import asyncio
import itertools
import logging
import os

from dbus_fast import BusType, Message, MessageType, RequestNameReply, Variant
from dbus_fast.aio import MessageBus

from rigio import event

BLUEZ = "org.bluez"
PROPERTIES, OBJECT_MANAGER = "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.ObjectManager"


class DBusError(Exception):
    def __init__(self, name, text=""):
        self.name = name if "." in name else f"{BLUEZ}.Error.{name}"
        super().__init__(text)


def variant(value):
    """A D-Bus value for a plain one: bool, str, bytes, list of str, or an explicit (signature, value)."""
    if isinstance(value, Variant):
        return value
    if isinstance(value, tuple):
        return Variant(*value)
    signature = {bool: "b", str: "s", bytes: "ay", list: "as"}[type(value)]
    return Variant(signature, value)


class Call:
    """One method call, as a handler sees it."""

    def __init__(self, message):
        self.message, self.sender, self.body = message, message.sender, message.body


class Tree:
    """Objects by path. An object is {interface: {property: Variant}}; `handlers` maps a path to who answers its calls.

    A handler has a coroutine method Interface_Method(call, *arguments) for each method; it returns None, or
    (signature, body) or (signature, body, file descriptors). Writable properties: set_Property(value).
    """

    def __init__(self, faults):
        self.faults, self.objects, self.handlers = faults, {}, {}
        self.bus = None
        self.numbers = itertools.count(1)        # of calls, in events
        self.gone = []                           # functions called with the unique name of a client that left
        self.calls = set()                       # tasks of the calls that are being answered

    # connection -------------------------------------------------------------------------------------------------------
    async def connect(self):
        bus = MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True)
        self.bus = await bus.connect()
        bus.add_message_handler(self._message)
        await bus.call(Message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch",
                               signature="s", body=["type='signal',sender='org.freedesktop.DBus',"
                                                    "member='NameOwnerChanged',arg2=''"]))
        if await bus.request_name(BLUEZ) != RequestNameReply.PRIMARY_OWNER:
            raise RuntimeError("somebody else owns org.bluez on this bus")

    async def disconnect(self):
        """The connection ends, as a process that dies: the bus answers open calls with NoReply, the name is lost."""
        bus, self.bus = self.bus, None
        self.objects, self.handlers = {}, {}
        for task in self.calls:
            task.cancel()
        if bus:
            bus.disconnect()
            try:
                await asyncio.wait_for(bus.wait_for_disconnect(), 2)
            except Exception:
                pass

    def _emit(self, path, interface, member, signature, body):
        if self.bus:
            self.bus.send(Message(path=path, interface=interface, member=member, message_type=MessageType.SIGNAL,
                                  signature=signature, body=body))

    async def ask(self, destination, path, interface, member, signature="", body=()):
        """Call a client (its agent); returns the body, raises DBusError."""
        reply = await self.bus.call(Message(destination, path, interface, member, signature=signature, body=list(body)))
        if reply.message_type == MessageType.ERROR:
            raise DBusError(reply.error_name, str(reply.body))
        return reply.body

    # objects ----------------------------------------------------------------------------------------------------------
    def add(self, path, handler, **interfaces):
        """`add(path, handler, Device1={...})`; several calls add interfaces to one object."""
        new = {f"{BLUEZ}.{interface}": {name: variant(value) for name, value in properties.items()}
               for interface, properties in interfaces.items()}
        self.objects.setdefault(path, {}).update(new)
        self.handlers[path] = handler
        self._emit("/", OBJECT_MANAGER, "InterfacesAdded", "oa{sa{sv}}", [path, new])

    def remove(self, path):
        """Remove an object and all below it, the deepest first."""
        for name in sorted((p for p in self.objects if p == path or p.startswith(path + "/")), reverse=True):
            self.handlers.pop(name, None)
            self._emit("/", OBJECT_MANAGER, "InterfacesRemoved", "oas", [name, list(self.objects.pop(name))])

    def get(self, path, interface, name):
        value = self.objects.get(path, {}).get(f"{BLUEZ}.{interface}", {}).get(name)
        return None if value is None else value.value

    def set(self, path, interface, always=False, **properties):
        """Change properties and tell; None takes one away. Unchanged ones are told only with `always`."""
        held = self.objects.get(path, {}).get(f"{BLUEZ}.{interface}")
        if held is None:
            return
        changed, invalid = {}, []
        for name, value in properties.items():
            if value is None:
                if held.pop(name, None) is not None:
                    invalid.append(name)
            elif always or name not in held or held[name] != variant(value):
                held[name] = changed[name] = variant(value)
        if changed or invalid:
            self._emit(path, PROPERTIES, "PropertiesChanged", "sa{sv}as", [f"{BLUEZ}.{interface}", changed, invalid])

    def signal(self, path, interface, member, signature, body):
        self._emit(path, f"{BLUEZ}.{interface}", member, signature, body)

    # calls ------------------------------------------------------------------------------------------------------------
    def _message(self, message):
        if message.message_type == MessageType.SIGNAL and message.member == "NameOwnerChanged":
            for function in self.gone:
                function(message.body[0])
        if message.message_type != MessageType.METHOD_CALL or message.interface == "org.freedesktop.DBus.Peer":
            return None
        if self.bus is None or message.destination not in (BLUEZ, self.bus.unique_name):
            return None
        task = asyncio.get_running_loop().create_task(self._answer(message, self.bus))
        self.calls.add(task)
        task.add_done_callback(self.calls.discard)
        return True

    async def _answer(self, message, bus):
        descriptors, number = [], self._note_call(message)
        try:
            signature, body, *rest = await self._dispatch(message) or ("", [])
            descriptors = rest[0] if rest else []
            reply = Message.new_method_return(message, signature, body)
            reply.unix_fds = descriptors
        except DBusError as error:
            reply = Message.new_error(message, error.name, str(error))
        except Exception as error:
            logging.exception("%s.%s", message.interface, message.member)
            reply = Message.new_error(message, f"{BLUEZ}.Error.Failed", repr(error))
        if number:
            event("answer", n=number, member=message.member, error=reply.error_name)
        if bus is self.bus:                      # else the caller has already been told by the bus
            await bus.send(reply)
        for descriptor in descriptors:
            os.close(descriptor)

    def _note_call(self, message):
        """Tell what clients ask for; reading of properties and of the tree apart."""
        if message.interface in (None, OBJECT_MANAGER) or (message.interface == PROPERTIES and message.member != "Set"):
            return None
        number = next(self.numbers)
        what = {"property": message.body[1]} if message.interface == PROPERTIES else {}
        event("call", n=number, member=message.member, path=message.path, client=message.sender, **what)
        return number

    async def _dispatch(self, message):
        path, interface, member, body = message.path, message.interface, message.member, message.body
        short = f"{interface.rpartition('.')[2]}.{member}" if interface else member
        await self.faults.before(short, path)
        if interface == OBJECT_MANAGER and member == "GetManagedObjects" and path == "/":
            return "a{oa{sa{sv}}}", [self.objects]
        object_, handler = self.objects.get(path), self.handlers.get(path)
        missing = f'Method "{member}" with signature "{message.signature}" on interface "{interface}" doesn\'t exist'
        if object_ is None:
            raise DBusError("org.freedesktop.DBus.Error.UnknownObject", missing)
        if interface == PROPERTIES:
            return await self._property(object_, handler, path, member, body)
        method = getattr(handler, short.replace(".", "_"), None)
        if interface not in object_ or method is None:
            raise DBusError("org.freedesktop.DBus.Error.UnknownMethod", missing)
        return await method(Call(message), *body)

    async def _property(self, object_, handler, path, member, body):
        held = object_.get(body[0])
        if held is None:
            raise DBusError("org.freedesktop.DBus.Error.InvalidArgs", f"No such interface '{body[0]}'")
        if member == "GetAll":
            return "a{sv}", [held]
        if body[1] not in held:
            raise DBusError("org.freedesktop.DBus.Error.InvalidArgs", f"No such property '{body[1]}'")
        if member == "Get":
            return "v", [held[body[1]]]
        setter = getattr(handler, f"set_{body[1]}", None)
        if setter is None:
            raise DBusError("org.freedesktop.DBus.Error.PropertyReadOnly", f"Property '{body[1]}' is not writable")
        await setter(body[2].value)
        return None
