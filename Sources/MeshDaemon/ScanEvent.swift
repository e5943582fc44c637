// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the lines of a scan are: its own stream on the control socket, not the bus.
enum ScanEvent: String {
    /// `modules`: who looks. From here on nothing is missed.
    case ready = "scan.ready"
    /// A device was heard.
    case seen = "scan.seen"
    /// `module`, `code`, `message`: one of several modules cannot look.
    case fail = "scan.fail"
    /// The time is over.
    case end = "scan.end"
}
