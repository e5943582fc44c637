// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc

/// One serial port of this machine.
struct SerialPortInfo: Sendable, Hashable {
    /// Such as `/dev/ttyACM0`.
    var device: String
    /// Its name in `/dev/serial/by-id`, which stays the same whichever socket it is plugged into. Empty where there is none.
    var stablePath = ""
    var usb: USBIdentity?
    /// What the device says of itself; from the device, so it may hold anything.
    var product = ""
    /// The kernel's driver, such as `cdc_acm`.
    var driver = ""

    /// What to write in a config.
    var path: String { stablePath.isEmpty ? device : stablePath }
}

/// The serial ports of this machine, from sysfs. Some small reads, which no device takes part in.
struct SerialPortCatalogue: Sendable {
    /// The file system's root; another one in tests.
    var root = ""

    /// Every port with a driver behind it, in the order of their names.
    func ports() -> [SerialPortInfo] {
        let links = stableLinks()
        return names(in: "/sys/class/tty").sorted().compactMap { name in
            let folder = "/sys/class/tty/\(name)"
            // Consoles and pseudo terminals have no device; the spare ports of a PC's UART driver no chip (type 0).
            guard let target = realPath("\(folder)/device"), let driver = realPath("\(folder)/device/driver"),
                text("\(folder)/type") != "0", exists("/dev/\(name)")
            else { return nil }
            var port = SerialPortInfo(
                device: "/dev/\(name)", stablePath: links["/dev/\(name)"] ?? "",
                driver: String(driver.split(separator: "/").last ?? ""))
            describe(target, &port)
            return port
        }
    }

    /// The port at a path, which may be a link.
    func port(at path: String) -> SerialPortInfo? {
        guard let device = realPath(path) else { return nil }
        return ports().first { $0.device == device }
    }

    /// The path of the port that a choice means, if it is there.
    func path(of choice: SerialChoice) -> String? {
        switch choice {
        case .path(let path): exists(path) ? path : nil
        case .usb(let identity): ports().first { $0.usb.map(identity.matches) ?? false }?.device
        }
    }

    /// Whether a port is there and this user may open it. udev sets its rights a moment after it has appeared.
    func isUsable(_ choice: SerialChoice) -> Bool {
        path(of: choice).map { access(root + $0, R_OK | W_OK) == 0 } ?? false
    }

    /// Whether a path leads to a device, and not to a file or a folder.
    func isDevice(_ path: String) -> Bool {
        var facts = stat()
        return stat(root + path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFCHR
    }

    /// The folders whose changes can bring what a choice means: the deepest that exists on the way to it, and those of the links
    /// that are followed there. A link of one's own to `/dev/ttyUSB0` stays when the radio goes.
    func foldersToWatch(for choice: SerialChoice) -> [String] {
        guard case .path(let path) = choice else { return [root + "/dev"] }
        var folders: [String] = []
        var folder = ""
        var rest = path.split(separator: "/").map(String.init)
        // As many as the kernel follows.
        var links = 40
        func watch() {
            let name = root + (folder.isEmpty ? "/" : folder)
            if !folders.contains(name) { folders.append(name) }
        }
        while !rest.isEmpty {
            let name = rest.removeFirst()
            if name == "." { continue }
            if name == ".." {
                folder = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? ""
                continue
            }
            if let target = target(ofLink: "\(folder)/\(name)") {
                watch()
                links -= 1
                if links < 0 { return folders }
                if target.hasPrefix("/") { folder = "" }
                rest = target.split(separator: "/").map(String.init) + rest
            } else if !rest.isEmpty, exists("\(folder)/\(name)") {
                folder += "/\(name)"
            } else {
                break
            }
        }
        watch()
        return folders
    }

    // MARK: Reading

    /// The USB device is some folders above the port: a bridge chip has the port on its interface, and serial drivers put
    /// one of their own in between.
    private func describe(_ target: String, _ port: inout SerialPortInfo) {
        var folder = target[...]
        while !folder.isEmpty, folder != "/sys/devices" {
            if let vendor = text("\(folder)/idVendor"), let product = text("\(folder)/idProduct"),
                let vendorNumber = USBIdentity.number(vendor[...]), let productNumber = USBIdentity.number(product[...])
            {
                port.usb = USBIdentity(
                    vendor: vendorNumber, product: productNumber, serialNumber: text("\(folder)/serial"))
                port.product = text("\(folder)/product") ?? ""
                return
            }
            folder = folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)]
        }
    }

    /// Devices by what the links in `/dev/serial/by-id` lead to.
    private func stableLinks() -> [String: String] {
        let folder = "/dev/serial/by-id"
        var links: [String: String] = [:]
        for name in names(in: folder).sorted() {
            if let device = realPath("\(folder)/\(name)"), links[device] == nil { links[device] = "\(folder)/\(name)" }
        }
        return links
    }

    private func names(in folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: root + folder)) ?? []
    }

    private func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// One line of sysfs.
    private func text(_ path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: root + path) else { return nil }
        return String(decoding: data.prefix { $0 != 10 }, as: UTF8.self)
    }

    /// Where a link leads, without the root; nil for what is none.
    private func target(ofLink path: String) -> String? {
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: root + path) else { return nil }
        return !root.isEmpty && target.hasPrefix(root) ? String(target.dropFirst(root.count)) : target
    }

    /// Without the root. Nil: it leads nowhere.
    private func realPath(_ path: String) -> String? {
        guard let resolved = realpath(root + path, nil) else { return nil }
        defer { free(resolved) }
        let text = String(cString: resolved)
        return text.hasPrefix(root) ? String(text.dropFirst(root.count)) : text
    }
}
