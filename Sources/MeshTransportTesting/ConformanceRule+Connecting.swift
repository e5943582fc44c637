// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

extension ConformanceRule {
    /// Rules about the way to a link.
    static let connecting = [
        ConformanceRule("before connect nothing can be sent and the stream has finished") { context in
            try context.expect(await !context.transport.isConnected, "isConnected is true before connect")
            try await context.expectError([.notConnected], "send before connect") {
                try await context.transport.send(Data([1]))
            }
            let frames = await context.collect().value
            try context.expect(frames.isEmpty, "the stream before connect gives \(frames.count) frames")
        },
        ConformanceRule("connect reports the phases and up before it returns") { context in
            try await context.transport.connect()
            try context.expect(await context.transport.isConnected, "isConnected is false after connect")
            try context.expect((context.log.lastUp?.maximumFrameLength ?? 0) > 0, "no up with a maximum frame length")
            try context.expect(context.log.lastUp?.peer.isEmpty == false, "up names no peer")
            let phases = context.log.records.compactMap {
                if case .event(.phase(let phase)) = $0 { phase } else { nil }
            }
            // What a transport may have to wait for, or look at, before it connects.
            let connecting = phases.drop { $0 == .waitingForBluetooth || $0 == .restoringState }
            try context.expect(
                connecting.first == .connecting && phases.last == .connected, "the phases are \(phases.map(\.rawValue))"
            )
        },
        ConformanceRule("a second connect is refused and does not harm the link") { context in
            try await context.transport.connect()
            try? await context.transport.connect()
            try context.expect(await context.transport.isConnected, "the second connect ended the link")
            try context.expect(context.log.downs.isEmpty, "the second connect reported down")
            try await context.transport.send(Data([1]))
        },
        ConformanceRule("a cancelled connect throws cancelled and can be repeated", needs: .holding) { context in
            try await context.peer.holdConnections()
            let attempt = Task { try await context.transport.connect() }
            await context.log.reached(.connecting)
            attempt.cancel()
            try await context.expectError([.cancelled], "the cancelled connect") { try await attempt.value }
            try context.expect(await !context.transport.isConnected, "isConnected is true after cancellation")
            try context.expect(context.log.lastUp == nil, "up was reported by a cancelled connect")
            try await context.peer.acceptConnections()
            try await context.transport.connect()
        },
        ConformanceRule("a connect that is cancelled from the start throws cancelled") { context in
            let attempt = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await context.transport.connect()
            }
            try await context.expectError([.cancelled], "the cancelled connect") { try await attempt.value }
            try context.expect(await !context.transport.isConnected, "isConnected is true after cancellation")
        },
        ConformanceRule("disconnect ends a connect under way", needs: .holding) { context in
            try await context.peer.holdConnections()
            let attempt = Task { try await context.transport.connect() }
            await context.log.reached(.connecting)
            await context.transport.disconnect()
            try await context.expectError([.cancelled, .linkClosed], "the connect") { try await attempt.value }
            try context.expect(await !context.transport.isConnected, "isConnected is true after disconnect")
            try context.expect(context.log.lastUp == nil, "up was reported after disconnect")
            try await context.peer.acceptConnections()
            try await context.transport.connect()
        },
    ]
}
