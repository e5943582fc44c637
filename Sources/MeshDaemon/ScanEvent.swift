// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What the lines of a scan are: its own stream on the control socket, not the bus.
enum ScanEvent: String {
    /// `modules`: who looks. From here on nothing is missed.
    case ready = "scan.ready"
    /// A device was heard.
    case seen = "scan.seen"
    /// `module`, `code`, `message`: a module cannot look, or not any more.
    case fail = "scan.fail"
    /// The time is over.
    case end = "scan.end"
}

extension ScanEvent {
    static func failure(of module: String, _ error: MeshError) -> JSONValue {
        [
            "type": .string(fail.rawValue), "module": .string(module), "code": .string(error.code.slug),
            "message": .string(error.message),
        ]
    }
}
