// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// What the operating system says of a TCP connection, as the host's errors.
extension MeshError {
    /// A look-up of `endpoint` failed.
    init(resolving endpoint: TCPEndpoint, _ error: LoopError) {
        let context = Context(operation: "resolve", peer: endpoint.description)
        switch error.kind {
        case .cancelled:
            self.init(.cancelled, "the look-up of \(endpoint.host) was cancelled", cause: error, context: context)
        case .hostNotFound:
            self.init(
                .hostNotFound, "\(endpoint.host) has no address; is the name right, and name resolution working?",
                cause: error, context: context)
        default:
            self.init(
                .connectionFailed, "the look-up of \(endpoint.host) failed: \(error.detail)", cause: error,
                context: context)
        }
    }

    /// No address of `endpoint` could be connected to: each address tried, with its error.
    init(connectingTo endpoint: TCPEndpoint, _ failures: [(address: SocketAddress, error: LoopError)]) {
        let context = Context(operation: "connect", peer: endpoint.description)
        // A peer that answered says more than an address family this machine has no route for.
        let order: [LoopError.Kind] = [.connectionRefused, .connectionReset, .timedOut, .hostUnreachable]
        let chosen =
            order.lazy.compactMap { kind in failures.first { $0.error.kind == kind } }.first ?? failures.first
        guard let (address, error) = chosen else {
            self.init(.hostNotFound, "\(endpoint.host) has no address", context: context)
            return
        }
        let others = failures.count > 1 ? " (\(failures.count) addresses tried)" : ""
        let isNetworkAway = failures.allSatisfy { $0.error.kind == .networkUnreachable }
        switch error.kind {
        case .connectionRefused:
            self.init(
                .connectionRefused,
                "\(address) refused the connection\(others); is the radio's WiFi companion on, and the port right?",
                cause: error, context: context)
        case .timedOut:
            self.init(
                .connectionTimeout, "\(address) did not answer\(others); is the radio on, and in this network?",
                cause: error, context: context)
        case .networkUnreachable where isNetworkAway:
            self.init(
                .adapterUnavailable, "no network leads to \(address)\(others); is this machine online?", cause: error,
                context: context)
        case .hostUnreachable:
            self.init(
                .connectionFailed, "\(address) cannot be reached\(others); is the radio on, and in this network?",
                cause: error, context: context)
        case .noResources:
            self.init(
                .resourceExhausted, "no descriptor or memory left to connect to \(address)", cause: error,
                context: context)
        case .permissionDenied:
            self.init(
                .permissionDenied, "this machine forbids to connect to \(address); a firewall?", cause: error,
                context: context)
        case .cancelled:
            self.init(.cancelled, "the attempt to connect to \(endpoint) was cancelled", cause: error, context: context)
        default:
            self.init(
                .connectionFailed, "the connection to \(address) failed\(others): \(error.detail)", cause: error,
                context: context)
        }
    }

    /// The look-up took all the time an attempt may take: the radio was not even asked.
    init(lookUpTimeout: Duration, _ endpoint: TCPEndpoint) {
        self.init(
            .hostNotFound,
            "the look-up of \(endpoint.host) took longer than \(lookUpTimeout.optionText); does name resolution work on "
                + "this machine? A numeric address needs none",
            context: Context(operation: "resolve", peer: endpoint.description))
    }

    /// An attempt took longer than it may.
    init(connectTimeout: Duration, _ endpoint: TCPEndpoint, _ failures: [(address: SocketAddress, error: LoopError)]) {
        self.init(
            .connectionTimeout,
            "\(endpoint) did not answer within \(connectTimeout.optionText); is the radio on, and in this network?",
            cause: failures.last?.error, context: Context(operation: "connect", peer: endpoint.description))
    }

    /// A link that was up is lost. `error` is nil for an orderly end by the peer.
    init(_ loss: TCPLoss, of peer: String, upFor age: Duration, _ error: LoopError?) {
        let context = Context(peer: peer)
        switch loss {
        case .closedByPeer(soonAfterConnect: true):
            self.init(
                .linkClosedByPeer,
                "\(peer) closed the connection \(age.optionText) after it was made; another host may have taken the "
                    + "radio, which serves one TCP client, the newest",
                cause: error, context: context)
        case .closedByPeer(soonAfterConnect: false):
            self.init(.linkClosedByPeer, "\(peer) closed the connection", cause: error, context: context)
        case .writeStalled:
            self.init(
                .operationTimeout, "\(peer) took no data in time; the link was given up", cause: error,
                context: context)
        case .failed:
            switch error?.kind {
            case .networkUnreachable:
                self.init(
                    .adapterUnavailable, "the network to \(peer) went away", cause: error, context: context)
            case .timedOut:
                self.init(
                    .linkClosed, "\(peer) stopped answering; the link was given up", cause: error, context: context)
            default:
                self.init(
                    .linkClosed, "the link to \(peer) failed: \(error?.detail ?? "no reason given")", cause: error,
                    context: context)
            }
        }
    }
}

extension LoopError {
    /// Whether the peer ended the connection, as opposed to this machine or the network between.
    var isByPeer: Bool {
        switch kind {
        case .endOfFile, .connectionReset, .brokenPipe: true
        default: false
        }
    }
}
