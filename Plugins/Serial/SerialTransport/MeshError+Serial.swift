// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// What the operating system says of a serial port, as the host's errors.
extension MeshError {
    /// The port is not there.
    init(missing choice: SerialChoice, among ports: [SerialPortInfo]) {
        let others =
            ports.isEmpty
            ? "there is no serial port on this machine"
            : "there \(ports.count == 1 ? "is" : "are") \(ports.map(\.path).joined(separator: ", "))"
        self.init(
            .adapterUnavailable, "\(choice) is not there; plug the radio in, or correct the option: \(others)",
            context: Context(operation: "connect", peer: choice.description))
    }

    /// The port could not be opened. `isNew`: it has appeared a moment ago, so that its rights may not be set yet.
    init(opening path: String, _ error: LoopError, isNew: Bool) {
        let context = Context(operation: "connect", peer: path)
        switch error.kind {
        case .permissionDenied where isNew:
            self.init(
                .adapterUnavailable, "\(path) has just appeared and may not be opened yet", cause: error,
                context: context)
        case .permissionDenied:
            self.init(
                .permissionDenied,
                "no permission to open \(path); add the user that meshhost runs as to the group dialout: "
                    + "sudo usermod -aG dialout USER, then start meshhost anew",
                cause: error, context: context)
        case .busy:
            self.init(
                .connectionRefused,
                "\(path) cannot be opened: \(error.detail); end that program, or give it another port",
                cause: error, context: context)
        case .notFound:
            self.init(
                .adapterUnavailable, "\(path) went away while it was opened", cause: error, context: context)
        case .invalidArgument:
            self.init(
                .configurationInvalid, "\(path) cannot be used: \(error.detail)", cause: error, context: context)
        case .deviceGone:
            self.init(
                .connectionFailed,
                "\(path) does not answer (\(error.detail)); unplug the radio and plug it in again, or is there no device "
                    + "at this port?", cause: error, context: context)
        case .noResources:
            self.init(
                .resourceExhausted, "no descriptor or memory left to open \(path)", cause: error, context: context)
        default:
            self.init(
                .connectionFailed, "\(path) cannot be opened: \(error.detail)", cause: error, context: context)
        }
    }

    /// A link that was up is lost.
    init(_ loss: SerialLoss, of path: String, _ error: LoopError?) {
        let context = Context(peer: path)
        switch loss {
        case .unplugged:
            self.init(
                .adapterUnavailable, "\(path) was unplugged, or its radio restarted; plug it in to go on", cause: error,
                context: context)
        case .hungUp:
            self.init(
                .linkClosed, "\(path) hung up soon after it was opened; does the cable hold, and the supply?",
                cause: error, context: context)
        case .writeStalled:
            self.init(
                .operationTimeout, "\(path) took no data in time; the link was given up", cause: error, context: context
            )
        }
    }
}
