// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE

/// Which devices' questions the pairing agent answers, and how. Pure: the driver is ``PairingAgent``.
///
/// Only devices that are configured are answered, with the passkey of their own. A device that is meant by its name is one
/// device, the one that a link was made to: a name comes from the air, and whoever takes it must not get the passkey.
struct PairingBook: Sendable {
    /// What bluetoothd asks an agent (BlueZ `doc/org.bluez.Agent.rst`).
    enum Question: Sendable, Hashable {
        case passkey
        case pinCode
        /// Whether the device shows the same number.
        case confirmation
        /// A passkey or code is to be shown, for somebody to type it on the device.
        case display
        /// Whether a pairing without any of these, that the device began, may go on.
        case authorization
        /// Whether a device may use one of our services.
        case service
    }

    enum Answer: Sendable, Hashable {
        case passkey(UInt32)
        case pinCode(String)
        case accept
        case reject(Refusal)
    }

    /// Why a question is not answered.
    enum Refusal: Sendable, Hashable {
        /// The device is nobody's here.
        case notConfigured
        /// It is configured without a passkey.
        case noPasskey
        /// Two numbers would have to be compared, or a bond without authentication be made, though there is a passkey.
        case needsPerson
    }

    /// A pairing that was asked for here.
    struct Attempt: Sendable, Hashable {
        var passkeyWasAsked = false
        var refusal: Refusal?
    }

    /// A device that is configured here, perhaps without a passkey.
    private struct Entry: Sendable {
        var passkey: BLEPasskey?
    }

    /// By object path.
    private var linked: [String: Entry] = [:]
    private var configured: [BLEAddress: Entry] = [:]
    private var attempts: [String: Attempt] = [:]

    /// A device that is meant by its address, connected or not.
    mutating func configure(_ target: BLETarget, _ passkey: BLEPasskey?) {
        if case .address(let address) = target { configured[address] = Entry(passkey: passkey) }
    }

    /// A device that a link exists to, or is made to, by its object path.
    mutating func linkBegan(_ device: String, _ passkey: BLEPasskey?) {
        linked[device] = Entry(passkey: passkey)
    }

    mutating func linkEnded(_ device: String) {
        linked[device] = nil
    }

    /// A pairing begins; what is asked from here on counts for it.
    mutating func pairingBegan(_ device: String) {
        attempts[device] = Attempt()
    }

    /// What was asked during the pairing.
    mutating func pairingEnded(_ device: String) -> Attempt {
        attempts.removeValue(forKey: device) ?? Attempt()
    }

    /// `address` is what bluetoothd says of the device.
    mutating func answer(_ question: Question, from device: String, address: BLEAddress?) -> Answer {
        let answer = decide(question, entry(of: device, address))
        if question == .passkey || question == .pinCode { attempts[device]?.passkeyWasAsked = true }
        if case .reject(let refusal) = answer { attempts[device]?.refusal = refusal }
        return answer
    }

    private func entry(of device: String, _ address: BLEAddress?) -> Entry? {
        if let entry = linked[device] { return entry }
        guard let address else { return nil }
        return configured.first { $0.key.matches(address) }?.value
    }

    private func decide(_ question: Question, _ entry: Entry?) -> Answer {
        guard let entry else { return .reject(.notConfigured) }
        let passkey = entry.passkey
        switch question {
        case .passkey:
            guard let passkey else { return .reject(.noPasskey) }
            return .passkey(passkey.value)
        case .pinCode:
            guard let passkey else { return .reject(.noPasskey) }
            return .pinCode(passkey.text)
        // A host without a person cannot compare numbers. Saying yes would make a bond that looks authenticated and is not;
        // without a passkey nobody asked for more.
        case .confirmation, .authorization: return passkey == nil ? .accept : .reject(.needsPerson)
        case .display: return .accept
        case .service: return .accept
        }
    }
}

extension BLEPasskey {
    /// Six digits, as devices show it.
    var text: String {
        let digits = String(value)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }
}
