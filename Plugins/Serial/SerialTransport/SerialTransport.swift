// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshStream
public import MeshTransportAPI

/// A link to a companion radio at a serial port, in the framing of companion radios. While connected it must not be dropped
/// without `disconnect()`.
///
/// The driver of a ``ControlLineStateMachine`` besides. When the port is not there, or goes, the transport waits for it
/// between links and reports `LinkEvent.adapter`, until the next `connect` or the end of its ``SerialPortWatcher``.
public actor SerialTransport: StreamTransport, TransportDiagnosing {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let settings: SerialSettings
    private nonisolated let environment: TransportEnvironment
    nonisolated let watcher: SerialPortWatcher
    public let link: StreamLink
    var lines: ControlLineStateMachine
    private var answerTimer: LoopTimer?
    private var answerTimerDue = Duration.zero
    /// Under way to the device: lines that are set.
    private var lineSetting: Task<Void, Never>?
    private var portWait: SerialPortWatcher.Wait?
    var board = SerialBoard.behind(nil)

    public init(
        loop: EventLoop, settings: SerialSettings, watcher: SerialPortWatcher, environment: TransportEnvironment
    ) {
        self.loop = loop
        self.settings = settings
        self.watcher = watcher
        self.environment = environment
        link = StreamLink(
            loop: loop, name: settings.choice.description, writeTimeout: settings.writeTimeout,
            frames: CompanionStream.Configuration(
                maximumFrame: settings.maximumFrame, partialFrameTimeout: settings.partialFrameTimeout,
                checksLayout: settings.checksLayout),
            environment: environment)
        lines = ControlLineStateMachine(.init(answerTimeout: settings.answerTimeout))
    }

    // MARK: The link

    public func openStream() async throws(MeshError) -> OpenedStream {
        portWait = nil
        // It holds the port that is to be opened again.
        await linkReleased()
        return try await openPort()
    }

    public func linkOpened(_ port: LoopStream) {
        lines.linkOpened()
    }

    public func linkNoted(_ happening: CompanionStream.Happening) {
        switch happening {
        case .framesReceived: lines.frameReceived()
        case .frameSent: lines.frameSent(now: loop.now)
        case .bytesSkipped, .writeBegan, .writeEnded, .ended: return
        }
        watchAnswer()
    }

    public func reason(for loss: StreamLinkStateMachine.Loss, _ error: LoopError?) -> MeshError {
        let path = link.peer ?? settings.choice.description
        let isPresent = watcher.catalogue.path(of: .path(path)) != nil
        return MeshError(SerialLoss(loss, isPresent: isPresent), of: path, error)
    }

    public func linkClosed(_ error: MeshError?) {
        lines.linkClosed()
        answerTimer = nil
        guard error?.code == .adapterUnavailable else { return }
        portWait = watcher.whenUsable(settings.choice) { [environment] in
            environment.linkEvents(.adapter(available: true))
        }
    }

    public func linkReleased() async {
        await lineSetting?.value
    }

    // MARK: DTR and RTS

    private func watchAnswer() {
        guard let deadline = lines.nextDeadline else { return }
        let timer = answerTimer ?? LoopTimer(loop)
        answerTimer = timer
        // A timer that is early finds out when it fires; setting it anew at each frame costs more.
        if timer.isScheduled, answerTimerDue <= deadline { return }
        answerTimerDue = deadline
        timer.schedule(after: deadline - loop.now) {
            switch self.lines.deadlineReached(now: self.loop.now) {
            case .nothing: break
            case .setControl(let control): self.setControl(control)
            }
            self.watchAnswer()
        }
    }

    private func setControl(_ control: SerialControl) {
        guard let path = link.peer else { return }
        environment.log(
            .info, "no answer: DTR and RTS are tried the other way",
            [("port", path), ("dtr", "\(control.dtr)"), ("rts", "\(control.rts)")])
        lineSetting = Task(executorPreference: loop.taskExecutor) { await self.apply(control) }
    }

    private func apply(_ control: SerialControl) async {
        // A port that does not take it is about to end.
        try? await link.stream?.setControl(control)
    }

    // MARK: Facts

    public func diagnostics() -> JSONValue {
        var facts = link.facts
        facts["port"] = .string(settings.choice.description)
        facts["board"] = .string(board.name)
        facts["unanswered_links"] = .int(Int64(lines.unansweredLinks))
        if let control = lines.control {
            facts["dtr"] = .bool(control.dtr)
            facts["rts"] = .bool(control.rts)
        }
        if let path = link.peer { facts["path"] = .string(path) }
        return .object(facts)
    }
}
