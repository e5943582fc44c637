// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import Testing

struct DBusMatchTests {
    @Test func `a match of nothing in particular asks for all signals`() {
        #expect(DBusMatch().rule == "type='signal'")
    }

    @Test func `every part is in the rule`() {
        let match = DBusMatch(
            sender: "org.bluez", interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged",
            path: "/org/bluez/hci0", pathNamespace: "/org/bluez", argument0: "org.bluez.Device1")
        #expect(
            match.rule
                == "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.Properties',"
                + "member='PropertiesChanged',path='/org/bluez/hci0',path_namespace='/org/bluez',arg0='org.bluez.Device1'"
        )
    }

    @Test func `an apostrophe is written outside of the quotes and nothing else is escaped`() {
        #expect(DBusMatch(argument0: #"it's a \, no?"#).rule == #"type='signal',arg0='it'\''s a \, no?'"#)
        // An apostrophe with a combining accent is one Character.
        #expect(DBusMatch(argument0: "'\u{301}").rule == "type='signal',arg0=''\\''\u{301}'")
    }

    @Test func `the system bus is where the environment says or the specification`() {
        #expect(
            DBusConnection.systemBusAddress(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x"]) == "unix:path=/x")
        #expect(
            DBusConnection.systemBusAddress(environment: [:]) == "unix:path=/var/run/dbus/system_bus_socket")
        #expect(
            DBusConnection.systemBusAddress(environment: ["DBUS_SYSTEM_BUS_ADDRESS": ""])
                == "unix:path=/var/run/dbus/system_bus_socket")
    }
}
