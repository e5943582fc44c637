// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
public import MeshRuntime
public import MeshTransportAPI

extension RadioSession: LinkSession {
    /// Nobody waits for a link that nobody wants; on the loop.
    public nonisolated func linkWanted(_ isWanted: Bool) {
        assumeIsolated { $0.wanted(isWanted) }
    }

    private func wanted(_ isWanted: Bool) {
        isLinkWanted = isWanted
        guard !isWanted else { return }
        for client in clients.values.sorted(by: { $0.id < $1.id }) { linkUnwanted(client) }
        armTimer()
    }

    /// What comes from now on is of this link; on the loop.
    public nonisolated func linkOpened(_ link: EstablishedLink) {
        assumeIsolated { $0.opened(link) }
    }

    private func opened(_ link: EstablishedLink) {
        self.link = link
        maximumFrame = link.info?.maximumFrameLength ?? .max
        lastHeard = loop.now
        lane.linkReady()
    }

    /// Handshakes with the radio, then serves clients and brings the rest of what is known of it up to date.
    public func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {
        let selfInfo: Data
        do {
            selfInfo = try await withTaskCancellationHandler {
                try await shakeHands()
            } onCancel: {
                loop.perform { self.assumeIsolated { $0.abandonQuestions() } }
            }
        } catch {
            throw MeshError(wrapping: error)
        }
        guard !Task.isCancelled, self.link?.generation == link.generation, stage == .closed else {
            throw MeshError(.cancelled, "the link ended during the handshake")
        }
        stage = .settingClock
        announceRadio(selfInfo)
        lookAtClock()
        for client in clients.values.sorted(by: { $0.id < $1.id }) { linkOpened(client) }
        pump()
    }

    /// Whether clients are served from the radio: the handshake is over.
    var isServing: Bool {
        switch stage {
        case .closed, .ending: false
        case .settingClock, .serving: true
        }
    }

    /// The host will end the link: no more is asked of the radio. On the loop.
    public nonisolated func linkEnding() -> Bool {
        assumeIsolated { $0.ending() }
    }

    /// The radio has forgotten a message when it gives it out. Everything else that is under way may end with the link.
    private func ending() -> Bool {
        stage = .ending
        return !isTakingMessage
    }

    /// Whether the radio has been asked for a message that has not come yet.
    private var isTakingMessage: Bool { lane.commandInFlight?.first == CommandCode.syncNextMessage.rawValue }

    /// A link that the host is ending may go as soon as the radio's last message has come.
    func finishLink() {
        if !isTakingMessage { link?.finish() }
    }

    /// The link is gone: who waits for the radio gets an error frame, a send may wait a little, clients stay. On the loop.
    public nonisolated func linkLost(reason: MeshError?) {
        assumeIsolated { $0.lost(reason) }
    }

    private func lost(_ reason: MeshError?) {
        link = nil
        closeLane(MeshError(.notConnected, "the radio went away", cause: reason))
    }

    /// Waits for what was under way on the link: sends, and tasks that asked the radio.
    public func linkEnded() async {
        await withCheckedContinuation { continuation in
            if workUnderWay > 0 { workEnded = continuation } else { continuation.resume() }
        }
    }

    /// One frame of the link; on the loop.
    public nonisolated func frameReceived(_ frame: Data) {
        assumeIsolated { $0.received(frame) }
    }

    /// The link is of no more use: it is given up, and the coordinator makes a new one.
    func endLink(_ reason: MeshError) {
        guard let link else { return }
        log(.notice, "the link is given up", [("reason", reason.message)])
        if isServing { stage = .ending }
        link.end(reason)
    }
}
