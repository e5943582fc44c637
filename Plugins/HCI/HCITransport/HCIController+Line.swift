// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// The line to the controller.
extension HCIController {
    /// Begins to keep the line open.
    func start() {
        guard runner == nil else { return }
        runner = Task(executorPreference: loop.taskExecutor) { await self.keepOpen() }
    }

    /// Somebody uses it, or would if it could be used.
    var isWanted: Bool { runner != nil }

    /// Gives the controller back: everything on it ends.
    func close() async {
        let runner = runner
        runner?.cancel()
        for scanner in scanners.values { scanner.continuation.finish() }
        scanners = [:]
        settled()
        dropLine()
        await runner?.value
        self.runner = nil
        await capture?.close()
        await saveLast()
        tellInquirers(.failure(MeshError(.cancelled, "\(port) is not wanted any more")))
    }

    private func keepOpen() async {
        while !Task.isCancelled {
            await loadBonds()
            await openOnce()
            if Task.isCancelled { break }
            do throws(CancellationError) { try await loop.sleep(for: reopening.delay) } catch { break }
        }
    }

    /// Opens the line, and returns when it has ended.
    private func openOnce() async {
        do throws(MeshError) {
            let opened = try await openPort()
            if Task.isCancelled { return await opened.close() }
            line = opened
            opened.startReading(
                { self.received($0, $1) },
                onPause: { self.paused() },
                onEnd: { self.endLine($0 ?? HCIOutage.lost.error(self.port)) })
            perform(flow.opened(now: loop.now))
            armTimer()
            await withCheckedContinuation { continuation in
                // The first write may have failed, and the end of the line have been noticed before this runs.
                if self.line == nil { continuation.resume() } else { self.lineEnd = continuation }
            }
            await opened.close()
        } catch {
            guard error.code != .cancelled else { return }
            note(error)
            tellState()
        }
    }

    /// An open line, if there is one in time.
    private func openPort() async throws(MeshError) -> any HCILine {
        let work = Task(executorPreference: loop.taskExecutor) { await self.keepOpened() }
        let timer = LoopTimer(loop)
        timer.schedule(after: deadlines.opening) { work.cancel() }
        let failure = await withTaskCancellationHandler {
            // A closure runs on the actor only if it captures it; otherwise it would leave the loop.
            _ = self
            return await work.value
        } onCancel: {
            work.cancel()
        }
        timer.cancel()
        if let opened {
            self.opened = nil
            return opened
        }
        guard let failure else { preconditionFailure("\(port) is neither open nor not") }
        if failure.code != .cancelled || Task.isCancelled { throw failure }
        throw HCIOutage.unopened(
            LoopError(
                kind: .timedOut, operation: "connect",
                detail: "nobody answered within \(deadlines.opening.optionText)")
        ).error(port)
    }

    /// A line is no value that a task could hand over.
    private func keepOpened() async -> MeshError? {
        do throws(MeshError) {
            opened = try await port.open(loop, takingFromOthers: takesFromOthers)
            return nil
        } catch {
            return error
        }
    }

    /// The controller cannot be used, or no longer.
    private func note(_ error: MeshError) {
        let isNews = reopening.failed(error)
        log(
            isNews ? .notice : .debug, "the controller cannot be used",
            [("controller", "\(port)"), ("error", error.message)])
        tellInquirers(.failure(error))
    }

    /// The line is lost or given up, and with it whatever was on it. It is opened anew.
    func endLine(_ error: MeshError = .controllerAstray) {
        guard line != nil else { return }
        note(error)
        dropLine()
    }

    private func dropLine() {
        guard line != nil else { return }
        line = nil
        resetCause = nil
        perform(flow.closed())
        loseController()
        let waiter = lineEnd
        lineEnd = nil
        waiter?.resume()
    }

    /// Everything on the controller has ended.
    func loseController() {
        descriptor = nil
        perform(creation.controllerLost())
        if scan != nil { perform(scan!.controllerLost()) }
        scan = nil
        // Handles begin anew, and what was held of old ones must not be taken for a new link's.
        inbound = InboundOrderStateMachine()
        outbound = nil
        let ended = links.values
        links = [:]
        for link in ended { link.assumeIsolated { $0.controllerLost() } }
        for seeker in seekers.values { seeker.continuation.resume(returning: nil) }
        seekers = [:]
        armTimer()
        tellState()
    }

    // MARK: Packets

    private func received(_ kind: HCIPacketKind, _ packet: RawSpan) {
        // What an earlier one of them led to may have ended the line.
        guard line != nil else { return }
        if let capture {
            capture.record(
                HCIPacket(kind: kind, bytes: packet.withUnsafeBytes { Array($0) }), isFromController: true)
        }
        switch kind {
        case .event:
            // What cannot be read is passed over: nothing waits for it but deadlines.
            if let event = try? HCIEvent.decode(packet) { take(event) }
        case .acl:
            if takeWholeNotification(packet) { return }
            guard let packet = try? ACLPacket.decode(packet) else { return }
            if case .deliver(let packets) = inbound.packetReceived(packet, now: loop.now) { deliver(packets) }
        case .command, .synchronous, .isochronous: break
        }
    }

    /// The short way of what most packets of a busy link are, with one copy; false for what has to go the long one.
    private func takeWholeNotification(_ packet: RawSpan) -> Bool {
        guard let notification = WholeNotification(packet), inbound.passes(notification.connection),
            let link = links[notification.connection]
        else { return false }
        return link.notifications.deliver(notification, packet)
    }

    /// All packets that came together were taken.
    private func paused() {
        sendPackets()
        armTimer()
    }

    func write(_ kind: HCIPacketKind, _ packets: [[UInt8]]) {
        guard let line, !packets.isEmpty else { return }
        let packets = packets.map { HCIPacket(kind: kind, bytes: $0) }
        if let capture { for packet in packets { capture.record(packet, isFromController: false) } }
        do throws(MeshError) {
            try line.send(packets)
        } catch {
            // Later: a machine is being carried out.
            loop.perform { self.assumeIsolated { $0.endLine(error) } }
        }
    }

    /// Records from now on, unless that is done already.
    func record(to settings: CaptureSettings) {
        if capture == nil { capture = HCICapture(loop, settings, log: log.adding([("controller", "\(port)")])) }
    }

    /// Sends what the controller has room for, in one go.
    func sendPackets() {
        var packets: [[UInt8]] = []
        while let packet = outbound?.nextPacket() { packets.append(packet) }
        write(.acl, packets)
    }
}

extension MeshError {
    /// What the controller says of its links cannot be.
    static let controllerAstray = MeshError(
        .linkClosed, "the controller has lost track of its links and has to be opened anew")
}
