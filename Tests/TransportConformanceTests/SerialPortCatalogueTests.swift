// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import Testing

@testable import MeshSerialTransport

/// A machine with a RAK4631, a CP2102 and a PC's UARTs, as Linux 6.1 shows it.
struct SerialPortCatalogueTests {
    private final class Machine: Sendable {
        let root: String
        var catalogue: SerialPortCatalogue { SerialPortCatalogue(root: root) }

        init() throws {
            root = "/tmp/meshhost-sysfs-\(getpid())-\(UInt64.random(in: 0 ... .max))"
            let hub = "/sys/devices/pci0000:00/0000:00:14.0/usb1"
            try usb(
                "\(hub)/1-2", ["idVendor": "239a", "idProduct": "8029", "serial": "2A", "product": "WisCore RAK4631"])
            try tty("ttyACM0", at: "\(hub)/1-2/1-2:1.0", driver: "cdc_acm")
            try usb("\(hub)/1-3", ["idVendor": "10c4", "idProduct": "ea60", "product": "CP2102"])
            try tty("ttyUSB0", at: "\(hub)/1-3/1-3:1.0/ttyUSB0", driver: "cp210x")
            try tty("ttyS0", at: "/sys/devices/pnp0/00:05", driver: "serial", type: "4")
            try tty("ttyS1", at: "/sys/devices/platform/serial8250", driver: "serial8250", type: "0")
            try folder("/sys/class/tty/tty0")
            try folder("/dev/serial/by-id")
            try link("/dev/serial/by-id/usb-RAK_WisCore_RAK4631_2A-if00", "\(root)/dev/ttyACM0")
        }

        deinit {
            try? FileManager.default.removeItem(atPath: root)
        }

        func folder(_ path: String) throws {
            try FileManager.default.createDirectory(atPath: root + path, withIntermediateDirectories: true)
        }

        func file(_ path: String, _ text: String) throws {
            try Data((text + "\n").utf8).write(to: URL(filePath: root + path))
        }

        func link(_ path: String, _ target: String) throws {
            try FileManager.default.createSymbolicLink(atPath: root + path, withDestinationPath: target)
        }

        private func usb(_ path: String, _ facts: [String: String]) throws {
            try folder(path)
            for (name, text) in facts { try file("\(path)/\(name)", text) }
        }

        private func tty(_ name: String, at device: String, driver: String, type: String? = nil) throws {
            try folder(device)
            try folder("/sys/bus/drivers/\(driver)")
            try link("\(device)/driver", "\(root)/sys/bus/drivers/\(driver)")
            try folder("/sys/class/tty/\(name)")
            try link("/sys/class/tty/\(name)/device", root + device)
            if let type { try file("/sys/class/tty/\(name)/type", type) }
            try folder("/dev")
            try file("/dev/\(name)", "")
        }
    }

    @Test func `ports are listed with what is behind them`() throws {
        let machine = try Machine()
        let rak = SerialPortInfo(
            device: "/dev/ttyACM0", stablePath: "/dev/serial/by-id/usb-RAK_WisCore_RAK4631_2A-if00",
            usb: USBIdentity(vendor: 0x239A, product: 0x8029, serialNumber: "2A"), product: "WisCore RAK4631",
            driver: "cdc_acm")
        let bridge = SerialPortInfo(
            device: "/dev/ttyUSB0", usb: USBIdentity(vendor: 0x10C4, product: 0xEA60), product: "CP2102",
            driver: "cp210x")
        let uart = SerialPortInfo(device: "/dev/ttyS0", driver: "serial")
        #expect(machine.catalogue.ports() == [rak, uart, bridge])
        #expect(machine.catalogue.port(at: rak.stablePath) == rak)
        #expect(rak.shownName == "WisCore RAK4631 (239a:8029)")
        #expect(uart.shownName == "serial")
    }

    @Test func `a device is found by its USB identity`() throws {
        let machine = try Machine()
        func path(_ text: String) throws -> String? {
            machine.catalogue.path(of: .usb(try #require(USBIdentity(text))))
        }
        #expect(try path("239a:8029") == "/dev/ttyACM0")
        #expect(try path("239a:8029:2A") == "/dev/ttyACM0")
        #expect(try path("239a:8029:2B") == nil)
        #expect(try path("10c4:ea60") == "/dev/ttyUSB0")
    }

    @Test func `the folder to watch is the deepest that exists`() throws {
        let machine = try Machine()
        let choice = SerialChoice.path("/dev/serial/by-id/radio")
        #expect(machine.catalogue.foldersToWatch(for: choice) == [machine.root + "/dev/serial/by-id"])
        try FileManager.default.removeItem(atPath: machine.root + "/dev/serial")
        #expect(machine.catalogue.foldersToWatch(for: choice) == [machine.root + "/dev"])
        #expect(machine.catalogue.foldersToWatch(for: .path("/nothing")) == [machine.root + "/"])
        let usb = SerialChoice.usb(USBIdentity(vendor: 1, product: 2))
        #expect(machine.catalogue.foldersToWatch(for: usb) == [machine.root + "/dev"])
    }

    @Test func `the folders of links are watched, and those that they lead to`() throws {
        let machine = try Machine()
        func folders(_ path: String) -> [String] {
            machine.catalogue.foldersToWatch(for: .path(path)).map { String($0.dropFirst(machine.root.count)) }
        }
        try machine.folder("/home/u")
        try machine.link("/home/u/radio", "\(machine.root)/dev/ttyUSB0")
        try machine.link("/home/u/ports", "../../dev/serial/by-id")
        try machine.link("/home/u/round", "./round")
        let ports = "/home/u/ports/usb-RAK_WisCore_RAK4631_2A-if00"
        #expect(folders("/home/u/radio") == ["/home/u", "/dev"])
        #expect(folders(ports) == ["/home/u", "/dev/serial/by-id", "/dev"])
        #expect(folders("/home/u/round") == ["/home/u"])
        // The radio is unplugged, and udev tidies up.
        try FileManager.default.removeItem(atPath: machine.root + "/dev/ttyUSB0")
        try FileManager.default.removeItem(atPath: machine.root + "/dev/serial")
        #expect(folders("/home/u/radio") == ["/home/u", "/dev"])
        #expect(folders(ports) == ["/home/u", "/dev"])
    }

    @Test(.timeLimit(.minutes(20))) func `a radio behind a link of one's own is noticed when it is plugged in`()
        async throws
    {
        let machine = try Machine()
        try machine.folder("/home/u")
        try machine.link("/home/u/radio", "\(machine.root)/dev/ttyUSB1")
        let thread = LoopThread()
        try await LoopActor(thread.loop).run { actor in
            let loop = actor.loop
            let watcher = SerialPortWatcher(loop: loop, catalogue: machine.catalogue)
            let found = LoopResult<Void>()
            let wait = watcher.whenUsable(.path("/home/u/radio")) { found.set(()) }
            // It watches from its first look on, which finds nothing.
            while !loop.openHandles.contains("poll") { try await loop.sleep(for: .milliseconds(1)) }
            try machine.file("/dev/ttyUSB1", "")
            await found.get()
            withExtendedLifetime(wait) { watcher.close() }
        }
        try await thread.shutDown()
    }

    @Test func `a machine without ports has none`() {
        #expect(SerialPortCatalogue(root: "/nothing").ports() == [])
    }
}
