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

    /// A pairing under way, and how many ask for it at once: they share what is learned.
    private struct Running: Sendable {
        var attempt = Attempt()
        var askers = 1
    }

    /// By object path.
    private var linked: [String: Entry] = [:]
    /// By the number of whoever wants the device answered.
    private var wanted: [UInt64: (address: BLEAddress, entry: Entry)] = [:]
    private var running: [String: Running] = [:]
    /// Devices whose last pairing bluetoothd said to be rejected.
    private var rejected: Set<String> = []

    /// A device that is meant by its address, connected or not, is answered until ``forget(_:)``.
    mutating func configure(_ serial: UInt64, _ target: BLETarget, _ passkey: BLEPasskey?) {
        if case .address(let address) = target { wanted[serial] = (address, Entry(passkey: passkey)) }
    }

    mutating func forget(_ serial: UInt64) {
        wanted[serial] = nil
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
        guard running[device] != nil else { return running[device] = Running() }
        running[device]?.askers += 1
    }

    /// What was asked during the pairing.
    mutating func pairingEnded(_ device: String) -> Attempt {
        guard var ended = running[device] else { return Attempt() }
        ended.askers -= 1
        running[device] = ended.askers > 0 ? ended : nil
        return ended.attempt
    }

    /// Whether a pairing is under way.
    var isPairing: Bool { !running.isEmpty }

    /// Whether a pairing that bluetoothd says was rejected, and that was not refused here, is worth another try over a link of
    /// its own: the first of a row is.
    mutating func rejectionMayPass(_ device: String) -> Bool {
        if rejected.remove(device) != nil { return false }
        rejected.insert(device)
        return true
    }

    mutating func pairingSucceeded(_ device: String) {
        rejected.remove(device)
    }

    /// `address` is what bluetoothd says of the device.
    mutating func answer(_ question: Question, from device: String, address: BLEAddress?) -> Answer {
        let answer = decide(question, entry(of: device, address))
        if question == .passkey || question == .pinCode { running[device]?.attempt.passkeyWasAsked = true }
        if case .reject(let refusal) = answer { running[device]?.attempt.refusal = refusal }
        return answer
    }

    private func entry(of device: String, _ address: BLEAddress?) -> Entry? {
        if let entry = linked[device] { return entry }
        guard let address else { return nil }
        // An address with its kind says more than one without; of those that say the same, the last to come is who asks now.
        func rank(_ each: (key: UInt64, value: (address: BLEAddress, entry: Entry))) -> (Int, UInt64) {
            (each.value.address.kind == nil ? 0 : 1, each.key)
        }
        return wanted.filter { $0.value.address.matches(address) }.max { rank($0) < rank($1) }?.value.entry
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
