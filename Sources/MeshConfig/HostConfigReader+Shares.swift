// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

extension HostConfigReader {
    mutating func readShare(_ node: ConfigNode, ordinal: Int, _ names: inout [String: SourcePosition]) {
        typealias Keys = ConfigSchema.Share
        guard let table = node.table else {
            diagnostics.error(
                .wrongType, at: node.position, in: nil,
                "\"share\" takes a list of tables, and this is \(node.typeName)",
                hint: "write [[share]]")
            return
        }
        let label = SectionLabel.element(of: "share", name: table["name"]?.node.text, ordinal: ordinal)
        var section = Section(label: label, table: table, position: node.position)
        judgeKeys(of: &section, Keys.section.keys)
        reportMissing(
            Keys.section.keys, in: section,
            hint: overrideHint(section, list: "share", names: Array(names.keys.sorted())))

        let name = value(Keys.name, in: section)
        if let name, let place = table["name"]?.node.position {
            if let other = names[name] {
                diagnostics.error(
                    .nameTaken, at: place, in: nil, "there are two shares named \(name.quoted)",
                    hint: "the other one is at \(other)")
            } else {
                names[name] = place
            }
        }
        let kind = value(Keys.type, in: section)
        let device = value(Keys.device, in: section)
        let access = readAccess(kind: kind, in: section)
        let listen = value(Keys.listen, in: section)
        var addresses: [ListenAddress] = []
        if let kind, let listen {
            addresses = readListen(listen, kind: kind, access, in: section)
        }
        if let device, let place = table["device"]?.node.position {
            judgeDevice(device, at: place, in: section)
        }
        var share = ShareConfig(
            name: name, kind: kind ?? .companionTCP, device: device ?? "", listen: addresses)
        share.role = value(Keys.role, in: section)
        share.isInsecure = access.isInsecure
        share.tls = access.tls
        share.tokens = access.tokens
        share.maximumClients = value(Keys.maxClients, in: section)
        share.queueFrames = value(Keys.queueFrames, in: section)
        share.queueBytes = value(Keys.queueBytes, in: section)
        share.stuckTimeout = value(Keys.stuckTimeout, in: section)
        share.receivedPacketLogs = value(Keys.rxLog, in: section)
        share.echoes = value(Keys.echo, in: section)
        share.airtimePercent = value(Keys.airtimePercent, in: section)
        share.airtimeBurst = value(Keys.airtimeBurst, in: section)
        share.position = node.position
        share.ordinal = 1 + config.shares.count { $0.unnumberedID == share.unnumberedID }
        config.shares.append(share)
    }

    private mutating func judgeDevice(_ name: String, at place: SourcePosition, in section: Section) {
        guard let device = knownDevices.first(where: { $0.name == name }) else {
            guard isComplete else { return }
            let names = knownDevices.map(\.name)
            let hint =
                if let nearest = NearestName.of(name, among: names) {
                    "did you mean \"\(nearest)\"?"
                } else if names.isEmpty {
                    "there are no devices"
                } else {
                    "there are \(names.map(\.quoted).joined(separator: ", "))"
                }
            diagnostics.error(
                .deviceUnknown, at: place, in: section.label.text, "there is no device named \(name.quoted)",
                hint: hint)
            return
        }
        if device.deviceProtocol != .companion {
            diagnostics.error(
                .deviceNotShareable, at: place, in: section.label.text,
                "device \(name.quoted) has protocol \"\(device.deviceProtocol.rawValue)\" and cannot be shared",
                hint: "give the device protocol = \"companion\"")
        }
    }

    private mutating func readListen(
        _ texts: [LocatedText], kind: ShareKind, _ access: ShareAccess, in section: Section
    ) -> [ListenAddress] {
        if kind == .companionUnix, texts.count > 1 {
            diagnostics.error(
                .valueNotAllowed, at: texts[1].position, in: section.label.text,
                "\"listen\" of a share of type \"companion-unix\" takes one path", hint: "write one share for each path"
            )
            return []
        }
        var addresses: [ListenAddress] = []
        for text in texts {
            do throws(Complaint) {
                let address: ListenAddress =
                    switch kind {
                    case .companionTCP: try ListenAddress(tcp: text.text)
                    case .companionUnix: try ListenAddress(unix: text.text)
                    }
                judge(address, at: text.position, access, in: section)
                addresses.append(address)
            } catch {
                report(error, at: text.position, in: section)
            }
        }
        return addresses
    }

    private mutating func judge(
        _ address: ListenAddress, at place: SourcePosition, _ access: ShareAccess, in section: Section
    ) {
        judgeExposure(address, at: place, access, in: section)
        if case .unix(config.daemon.controlSocket) = address {
            diagnostics.error(
                .listenerTaken, at: place, in: section.label.text, "\"\(address)\" is taken",
                hint: "it is daemon.control_socket: choose another path")
            return
        }
        if let taken = listeners.first(where: { $0.address.conflicts(with: address) }) {
            diagnostics.error(
                .listenerTaken, at: place, in: section.label.text, "\"\(address)\" is taken",
                hint: "\"\(taken.address)\" at \(taken.position) listens there")
        } else {
            listeners.append(Listener(address: address, position: place))
            requirements.append(ConfigRequirement(.listener(address), at: place, in: section.label.text))
        }
    }
}
