// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// The options that every module on Bluetooth LE has.
extension BLETransportSettings {
    /// Which device.
    public static let targetOptions: [OptionSpec] = [
        OptionSpec(
            "address", .string, default: "",
            help: "The device's Bluetooth address, such as C0:11:22:33:44:55; or give name."),
        OptionSpec("name", .string, default: "", help: "The name the device advertises, whole; or give address."),
    ]

    /// How it is paired with.
    public static let securityOptions: [OptionSpec] = [
        OptionSpec(
            "pin", .string, default: "", help: "The passkey the device shows or was built with, such as 123456.",
            secret: true),
        OptionSpec(
            "pairing", .string, default: "auto",
            help: "auto pairs when a pin is given or the device asks for it; always; never."),
        OptionSpec(
            "stale_bond_repairs", .int, default: "0",
            help: "How often a day a bond that the device has lost is made anew with the pin; 0 leaves it to a person."),
    ]

    /// How long each phase may take.
    public static let deadlineOptions: [OptionSpec] = [
        OptionSpec("connect_timeout", .duration, default: "10s", help: "Until the link is made, looking included."),
        OptionSpec(
            "discovery_timeout", .duration, default: "40s", help: "Until services and characteristics are known."),
        OptionSpec(
            "rediscovery_timeout", .duration, default: "15s", help: "The same for a device that was connected before."),
        OptionSpec("pairing_timeout", .duration, default: "35s", help: "Until a pairing must have ended."),
        OptionSpec("subscribe_timeout", .duration, default: "5s", help: "Until notifications are on."),
        OptionSpec("write_timeout", .duration, default: "5s", help: "Until the device has acknowledged a frame."),
        OptionSpec("write_pacing", .duration, default: "0ms", help: "The pause between two frames."),
    ]

    /// Reads validated options. With issues, which are added, there may be no settings.
    public static func read(_ options: OptionValues, _ issues: inout [OptionIssue]) -> BLETransportSettings? {
        let target = target(options, &issues)
        let pin = options.string("pin")
        let passkey = BLEPasskey(pin)
        if passkey == nil, !pin.isEmpty {
            issues.append(
                OptionIssue(option: "pin", message: "the pin is not one to six digits", hint: "for example 123456"))
        }
        let pairing: BLETransportSettings.Pairing? = options.word("pairing", &issues)
        if pairing == .never, passkey != nil {
            issues.append(
                OptionIssue(
                    option: "pairing", message: "pairing is \"never\", and a pin is given",
                    hint: "leave one of them out"))
        }
        let repairs = options.int("stale_bond_repairs")
        if !(0...100).contains(repairs) {
            issues.append(
                OptionIssue(
                    option: "stale_bond_repairs", message: "stale_bond_repairs is \(repairs), outside 0 to 100"))
        }
        for (name, range) in ranges where !range.contains(options.duration(name)) {
            let (least, most) = (range.lowerBound.optionText, range.upperBound.optionText)
            issues.append(OptionIssue(option: name, message: "\(name) must be from \(least) to \(most)"))
        }
        guard let target, let pairing else { return nil }
        var transport = BLETransportSettings(target: target)
        transport.passkey = passkey
        transport.pairing = pairing
        transport.staleBondRepairs = repairs
        transport.connectionTimeout = options.duration("connect_timeout")
        transport.serviceDiscoveryTimeout = options.duration("discovery_timeout")
        transport.autoReconnectDiscoveryTimeout = options.duration("rediscovery_timeout")
        transport.pairingTimeout = options.duration("pairing_timeout")
        transport.subscriptionTimeout = options.duration("subscribe_timeout")
        transport.writeTimeout = options.duration("write_timeout")
        transport.writePacingDelay = options.duration("write_pacing")
        return transport
    }

    /// No phase may last for ever, nor be over before it can have begun.
    private static let ranges: [(String, ClosedRange<Duration>)] = [
        ("connect_timeout", .seconds(1) ... .seconds(300)), ("discovery_timeout", .seconds(1) ... .seconds(300)),
        ("rediscovery_timeout", .seconds(1) ... .seconds(300)), ("pairing_timeout", .seconds(5) ... .seconds(300)),
        ("subscribe_timeout", .seconds(1) ... .seconds(300)), ("write_timeout", .milliseconds(100) ... .seconds(300)),
        ("write_pacing", .zero ... .seconds(10)),
    ]

    private static func target(_ options: OptionValues, _ issues: inout [OptionIssue]) -> BLETarget? {
        let (address, name) = (options.string("address"), options.string("name"))
        switch (address.isEmpty, name.isEmpty) {
        case (false, true):
            if let address = BLEAddress(address) { return .address(address) }
            issues.append(
                OptionIssue(
                    option: "address", message: "\"\(address)\" is no Bluetooth address",
                    hint: "for example C0:11:22:33:44:55"))
        case (true, false): return .name(name)
        case (true, true):
            issues.append(
                OptionIssue(
                    option: "address", message: "neither address nor name says which device is meant",
                    hint: "`meshhost scan` shows both"))
        case (false, false):
            issues.append(
                OptionIssue(option: "name", message: "both address and name are given", hint: "leave one of them out"))
        }
        return nil
    }
}

extension OptionValues {
    /// The word that an option has to be one of; nil, and an issue, if it is another.
    public func word<Word: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ issues: inout [OptionIssue]
    ) -> Word? {
        let text = string(name)
        if let word = Word(rawValue: text) { return word }
        let words = Word.allCases.map(\.rawValue)
        let nearest = NearestName.of(text, among: words).map { "did you mean \"\($0)\"?" }
        issues.append(
            OptionIssue(
                option: name, message: "\(name) is \"\(text)\", none of \(words.joined(separator: ", "))", hint: nearest
            ))
        return nil
    }
}
