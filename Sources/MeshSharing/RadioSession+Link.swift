// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
public import MeshRuntime
public import MeshTransportAPI

extension RadioSession: LinkSession {
    /// Handshakes with the radio, then opens the lane to clients.
    ///
    /// DEVICE_QUERY first: the radio lays messages out for the version that was asked for last, when it queues them
    /// (reference §1.4). Any answer will do, also an error: very old firmware does not know the command.
    public func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {
        self.link = link
        maximumFrame = link.info?.maximumFrameLength ?? .max
        openLane()
        let selfInfo: Data
        do {
            selfInfo = try await withTaskCancellationHandler {
                try await handshake()
            } onCancel: {
                loop.perform { self.assumeIsolated { $0.abandonQuestions() } }
            }
        } catch {
            throw MeshError(wrapping: error)
        }
        guard !Task.isCancelled, self.link?.generation == link.generation else {
            throw MeshError(.cancelled, "the link ended during the handshake")
        }
        isServing = true
        announceRadio(selfInfo)
    }

    /// The radio's SELF_INFO.
    private func handshake() async throws(MeshError) -> Data {
        _ = try await ask(
            CompanionFrame.deviceQuery(version: CompanionFrame.hostProtocolVersion), expecting: .one(.deviceInfo))
        let selfInfo = try await ask(CompanionFrame.appStart(name: "meshhost"), expecting: .one(.selfInfo))
        guard selfInfo.first == ReplyCode.selfInfo.rawValue else {
            throw MeshError(
                .handshakeFailed, "the device refused APP_START; is it a MeshCore companion radio?",
                context: MeshError.Context(device: device, operation: "handshake"))
        }
        return selfInfo
    }

    /// The link is gone: everybody who waits gets an error frame, clients stay.
    public func linkLost(reason: MeshError?) async {
        closeLane(MeshError(.notConnected, "the radio went away", cause: reason))
        link = nil
        if sendsUnderWay > 0 { await withCheckedContinuation { sendsEnded = $0 } }
    }

    /// One frame of the link; on the loop.
    public nonisolated func frameReceived(_ frame: Data) {
        assumeIsolated { $0.received(frame) }
    }

    /// The radio takes frames and answers nothing: the link is given up, the coordinator makes a new one.
    func endLink(_ reason: MeshError) {
        guard let link else { return }
        log(.warning, "the radio is silent; reconnecting")
        link.end(reason)
    }
}
