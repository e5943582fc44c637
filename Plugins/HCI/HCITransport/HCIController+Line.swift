// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// The line to the controller.
extension HCIController {
    /// Between two attempts to open the line: a dongle that was plugged in again is used soon.
    private static let reopeningDelay = Duration.seconds(1)

    /// Begins to keep the line open.
    func start() {
        guard runner == nil else { return }
        runner = Task(executorPreference: loop.taskExecutor) { await self.keepOpen() }
    }

    /// Gives the controller back: everything on it ends.
    func close() async {
        let runner = runner
        runner?.cancel()
        for scanner in scanners.values { scanner.continuation.finish() }
        scanners = [:]
        settled()
        endLine()
        await runner?.value
        self.runner = nil
        await saver?.value
    }

    private func keepOpen() async {
        while !Task.isCancelled {
            await loadBonds()
            await open()
            if stream != nil {
                await withCheckedContinuation { self.lineEnd = $0 }
            }
            do throws(CancellationError) { try await loop.sleep(for: Self.reopeningDelay) } catch { break }
        }
    }

    private func open() async {
        do throws(LoopError) {
            let opened: LoopStream
            switch port {
            case .unix(let path):
                opened = LoopStream(unix: loop)
                try await opened.connect(to: SocketAddress(unixPath: path))
            case .tcp(let host, let port):
                guard let address = try await loop.resolve(host: host, port: port).first else {
                    return noteOutage(.unopened(LoopError(kind: .hostNotFound, operation: "resolve", detail: host)))
                }
                opened = LoopStream(tcp: loop)
                try await opened.connect(to: address)
                opened.setNoDelay()
            }
            guard !Task.isCancelled else { return opened.close() }
            stream = opened
            decoder.restart()
            opened.startReading({ self.received($0) }, onEnd: { _ in self.endLine() })
            perform(flow.opened(now: loop.now))
            armTimer()
        } catch {
            noteOutage(.unopened(error))
            log(.debug, "the controller cannot be opened", [("controller", "\(port)"), ("error", "\(error)")])
        }
    }

    /// The line is lost or given up, and with it whatever was on it.
    func endLine() {
        guard let stream else { return }
        self.stream = nil
        stream.close()
        perform(flow.closed())
        if outage == .starting { outage = .lost }
        loseController()
        let waiter = lineEnd
        lineEnd = nil
        waiter?.resume()
    }

    /// Everything on the controller has ended.
    func loseController() {
        if descriptor != nil { outage = .lost }
        descriptor = nil
        perform(creation.controllerLost())
        if scan != nil { perform(scan!.controllerLost()) }
        scan = nil
        for (handle, link) in links {
            inbound.linkClosed(handle)
            link.assumeIsolated { $0.controllerLost() }
        }
        links = [:]
        outbound = nil
        for seeker in seekers.values { seeker.continuation.resume(returning: nil) }
        seekers = [:]
        armTimer()
        tellState()
    }

    // MARK: Bytes

    private func received(_ bytes: UnsafeRawBufferPointer) {
        // Collected first: what a packet leads to may close the line, and restart the decoder.
        var packets: [(kind: HCIPacketKind, bytes: [UInt8])] = []
        let synchrony = decoder.bytesReceived(bytes.bytes) { kind, packet in
            packets.append((kind, packet.withUnsafeBytes { Array($0) }))
        }
        for packet in packets where stream != nil { take(packet.kind, packet.bytes) }
        sendPackets()
        armTimer()
        if case .lost(let finding) = synchrony {
            log(.notice, "the line to the controller is out of step", [("finding", "\(finding)")])
            endLine()
        }
    }

    private func take(_ kind: HCIPacketKind, _ bytes: [UInt8]) {
        switch kind {
        case .event:
            // What cannot be read is passed over: nothing waits for it but deadlines.
            if let event = try? HCIEvent.decode(bytes.span.bytes) { take(event) }
        case .acl:
            guard let packet = try? ACLPacket.decode(bytes.span.bytes) else { return }
            if case .deliver(let packets) = inbound.packetReceived(packet, now: loop.now) { deliver(packets) }
        case .command, .synchronous, .isochronous: break
        }
    }

    func write(_ kind: HCIPacketKind, _ packets: [[UInt8]]) {
        guard let stream, !packets.isEmpty else { return }
        let bytes = packets.flatMap { [kind.rawValue] + $0 }
        bytes.withUnsafeBytes { stream.write($0) }
    }

    /// Sends what the controller has room for, in one go.
    func sendPackets() {
        var packets: [[UInt8]] = []
        while let packet = outbound?.nextPacket() { packets.append(packet) }
        write(.acl, packets)
    }
}
