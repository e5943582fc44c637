// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus

/// The wire side of `org.bluez.Agent1`: calls as questions of ``PairingBook``, and its answers as replies.
enum PairingAgent {
    static let path = "/org/meshhost/agent"
    /// Can be asked for a passkey, and shown one: what is left of the ways to pair is decided by the device.
    static let capability = "KeyboardDisplay"

    /// The method is a question about the device in its first argument. Nil for `Cancel` and `Release`.
    static func question(of member: String) -> PairingBook.Question? {
        switch member {
        case "RequestPasskey": .passkey
        case "RequestPinCode": .pinCode
        case "RequestConfirmation": .confirmation
        case "DisplayPasskey", "DisplayPinCode": .display
        case "RequestAuthorization": .authorization
        case "AuthorizeService": .service
        default: nil
        }
    }

    /// What is sent back; nil for a refusal.
    static func reply(_ answer: PairingBook.Answer) -> [DBusValue]? {
        switch answer {
        case .passkey(let number): [.uint32(number)]
        case .pinCode(let text): [.string(text)]
        case .accept: []
        case .reject: nil
        }
    }

    static let rejected = DBusError("org.bluez.Error.Rejected", "this device is not configured for it")
}
