// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// What is done on a new link: before clients are served the handshake, before their commands go out the clock, and beside
/// them messages and contacts. A pass over the contacts takes long on a slow link (16 frames a second over BLE, reference
/// §1.2); only who asks for contacts waits for it.
extension RadioSession {
    /// A radio's clock that is less behind than this is left alone, seconds.
    private static let clockTolerance: Int64 = 2
    /// A host whose clock tells an earlier time than this has none (2025-01-01, seconds since 1970).
    static let earliestTime: Int64 = 1_735_689_600

    /// The radio's SELF_INFO.
    ///
    /// DEVICE_QUERY first: the radio lays messages out for the version that was asked for last, when it queues them
    /// (reference §1.4). Any answer will do, also an error: very old firmware does not know the command.
    func shakeHands() async throws(MeshError) -> Data {
        let query = CompanionFrame.deviceQuery(version: CompanionFrame.hostProtocolVersion)
        learn(try await ask(query, expecting: .one(.deviceInfo)), from: query)
        let start = CompanionFrame.appStart(name: "meshhost")
        let selfInfo = try await ask(start, expecting: .one(.selfInfo))
        guard selfInfo.first == ReplyCode.selfInfo.rawValue else {
            throw MeshError(
                .handshakeFailed, "the device refused APP_START; is it a MeshCore companion radio?",
                context: MeshError.Context(device: device, operation: "handshake"))
        }
        learn(selfInfo, from: start)
        return selfInfo
    }

    /// Asks the radio for its time beside everything else, and sets it if need be. On a new link there follows what waits for
    /// it: clients' commands, messages, and contacts that changed since the last pass.
    func lookAtClock(_ priority: LanePriority = .read) {
        workBegan()
        Task.immediate(executorPreference: loop.taskExecutor) {
            do {
                try await self.checkClock(priority)
            } catch {
                self.log(.debug, "the radio's clock is not known", [("error", "\(error)")])
            }
            self.clockChecked()
            self.workFinished()
        }
    }

    private func clockChecked() {
        guard case .settingClock = stage else { return }
        stage = .serving
        fetchMessages()
        switch cache.contactsState {
        case .unknown, .stale: passContacts()
        case .valid, .unsupported: break
        }
        pump()
    }

    /// Whether the radio's clock has to be looked at, long after that of the link's beginning.
    var isClockCheckDue: Bool {
        let wallClock = wallClock()
        // A host that has no time has nothing to set.
        return settings.setsClock && wallClock.components.seconds >= Self.earliestTime
            && clockWatch.isDue(uptime: loop.now, wallClock: wallClock)
    }

    /// The radio told its time. A radio behind a USB-UART or a TCP bridge may restart while the link stays.
    func timeTold(_ reply: Data) {
        guard case .currentTime(let time)? = try? CompanionReply(decoding: reply),
            let isBack = cache.clock.wentBack(to: time)
        else { return }
        if !isBack {
            clockWatch.ranOn()
        } else if clockWatch.wentBack() {
            endLink(MeshError(.linkClosed, "the radio's clock went back: it has restarted"))
        }
    }

    /// Sets the radio's clock if it is behind; the firmware sets none back.
    private func checkClock(_ priority: LanePriority) async throws(MeshError) {
        // Not again before the answer or its end.
        clockWatch.began(uptime: loop.now, wallClock: wallClock())
        let reply = try await ask(CompanionFrame.getTime, expecting: .one(.currentTime), priority: priority)
        learn(reply, from: CompanionFrame.getTime)
        guard settings.setsClock, case .currentTime(let radioTime)? = try? CompanionReply(decoding: reply) else {
            return
        }
        let hostTime = wallClock().components.seconds
        guard hostTime >= Self.earliestTime, let time = UInt32(exactly: hostTime) else { return }
        let behind = hostTime - Int64(radioTime)
        if behind > Self.clockTolerance, let command = try? CompanionCommand.setTime(time).encoded() {
            let answer = try await ask(command, expecting: .one(.ok))
            learn(answer, from: command)
            log(
                .info, "the radio's clock was set", [("behind_s", "\(behind)"), ("answer", CompanionFrame.hex(answer))])
        }
        if clockWatch.noteAhead(behind < -60) {
            log(
                .notice, "the radio's clock is ahead of the host's, which the firmware does not set back",
                [("ahead_s", "\(-behind)")])
        }
    }

    // MARK: Contacts

    /// Asks the radio for the contacts that changed, or for all, if that is not being done yet. Clients that wait for them
    /// are served then.
    func passContacts() {
        guard !isPassingContacts, stage == .serving else { return }
        workBegan()
        Task.immediate(executorPreference: loop.taskExecutor) {
            do {
                try await self.contactsPass()
            } catch {
                self.log(.debug, "the contacts could not be read", [("error", "\(error)")])
            }
            self.contactsPassed()
            self.workFinished()
        }
    }

    /// One pass, and a second one over all if the first shows that some were deleted behind our back.
    private func contactsPass() async throws(MeshError) {
        isPassingContacts = true
        defer { isPassingContacts = false }
        repeat {
            counters.contactPasses += 1
            let command = cache.contactsPassBegan(now: loop.now)
            let end: Data
            do {
                end = try await ask(command, expecting: CommandSpec.expectation(for: command))
            } catch {
                cache.contactsPassFailed()
                throw error
            }
            guard cache.contactsReceived(end) == .needsFullPass else { return }
        } while true
    }

    /// The pass is over, well or not: who waits for it gets what there is. Another one may have begun since, for whoever asked
    /// after the end of this; then it is that one that is waited for.
    private func contactsPassed() {
        if isPassingContacts { return }
        for client in clients.values.sorted(by: { $0.id < $1.id }) {
            if case .contacts(let command) = client.work { contactsReady(client, command) }
        }
    }
}
