// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// From a link to a radio that is known: handshake, clock, contacts, messages, in this order. And the signs of life after.
extension MeshCoreSession {
    func synchronise() async {
        do throws(MeshError) {
            try await handshake()
        } catch {
            return endLink(
                MeshError(.handshakeFailed, "the handshake with the radio failed: \(error.message)", cause: error))
        }
        serve()
        if let selfInfo { emit(.radio(selfInfo)) }
        await step("clock") { session throws(MeshError) in try await session.correctClock() }
        await step("contacts") { session throws(MeshError) in try await session.fetchContacts() }
        await fetched()
        if case .up = phase { set(.ready) }
    }

    /// What fails here is tried again with the next link, or when the radio speaks of it; the session goes on.
    private func step(
        _ name: String, _ work: (isolated MeshCoreSession) async throws(MeshError) -> Void
    ) async {
        guard case .up = phase else { return }
        do throws(MeshError) {
            try await work(self)
        } catch {
            environment.log(.notice, "synchronisation failed", [("step", name), ("error", "\(error)")])
        }
    }

    /// DEVICE_QUERY first: the radio lays messages out for the version asked for last, when they come to it
    /// (companion-protocol §1.4). Any reply to it will do: very old firmware does not know the command.
    private func handshake() async throws(MeshError) {
        for attempt in 1... {
            do throws(MeshError) {
                let query = try encode(.deviceQuery(version: settings.protocolVersion))
                take(deviceInfo: try await ask(query, isHandshake: true).replies.last)
                set(.syncing)
                let start = try encode(.appStart(AppStart(appName: settings.appName)))
                let reply = try await ask(start, isHandshake: true).replies.last
                guard let reply, case .selfInfo(let info) = try decode(reply, to: start) else {
                    throw MeshError(.handshakeFailed, "the device refused APP_START; is it a MeshCore companion radio?")
                }
                take(info)
                return
            } catch {
                guard error.code == .operationTimeout, attempt < settings.handshakeAttempts, case .up = phase else {
                    throw error
                }
            }
        }
    }

    private func take(deviceInfo frame: Data?) {
        guard let frame, case .deviceInfo(let info)? = try? CompanionReply(decoding: frame) else {
            return deviceInfo = nil
        }
        deviceInfo = info
    }

    /// Another radio has other contacts.
    func take(_ info: SelfInfo) {
        if let old = selfInfo, old.publicKey != info.publicKey { contactBook = ContactBook() }
        selfInfo = info
    }

    private func correctClock() async throws(MeshError) {
        guard settings.correctsClock else { return }
        let radio = try await time()
        let date = environment.date()
        let late = Duration.seconds(Int64(date) - Int64(radio))
        guard late > settings.clockTolerance else { return }
        try await setTime(date)
        environment.log(
            .info, "the radio's clock was behind and has been set", [("seconds", "\(late.components.seconds)")])
        emit(.clockCorrected(by: late))
    }

    // MARK: Signs of life

    /// Time has passed. A probe that is not answered is followed by the lane's fences, and when none of those is answered
    /// either, the link is given up.
    func lookAfterLink(_ now: Duration) {
        guard case .up = phase, isServing else { return }
        if let due = nextProbe, let interval = settings.probeAfter, now >= due {
            let isDue = now >= lastHeard + interval
            // What waits for a reply is a probe already.
            if isDue, lane.isIdle { probe() }
            nextProbe = isDue ? now + interval : lastHeard + interval
        }
        if let due = nextPoll, let interval = settings.messagePoll, now >= due {
            nextPoll = now + interval
            fetchMessages()
        }
    }

    /// Asks for the time; nobody waits for it.
    private func probe() {
        begin { session in _ = try? await session.time() }
    }
}
