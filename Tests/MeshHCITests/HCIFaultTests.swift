// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// Every way from an open line to a link that carries frames, with a fault at each packet that the controller sends on it:
/// the attempt ends in time and says where, and the next one succeeds.
@Suite(.serialized) struct HCIFaultTests {
    enum Way: CaseIterable {
        /// A radio without security.
        case open
        case pairing
        /// With keys of an earlier link.
        case bonded
    }

    /// How many attempts wait for their deadlines side by side.
    private static let width = 24

    @Test(.timeLimit(.minutes(10)), arguments: Way.allCases, VirtualController.Fault.allCases)
    func `a fault at any packet ends the attempt in time`(way: Way, fault: VirtualController.Fault) async throws {
        let troubles = try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let executor = loop.taskExecutor
            let recording = try await HCIFaultTrial(loop, way).record()
            // To be sure that the way is what it is meant to be.
            #expect(recording.count > (way == .pairing ? 90 : 12))
            let indices = recording.indices.filter {
                fault != .failure || recording[$0].failing(.unspecified) != nil
            }
            return await withTaskGroup(of: [String].self) { group in
                var troubles: [String] = []
                for (started, index) in indices.enumerated() {
                    if started >= Self.width { troubles += await group.next() ?? [] }
                    group.addTask(executorPreference: executor) {
                        await HCIFaultTrial(loop, way).run(fault, at: index).map {
                            "\(recording[index]) at \(index): \($0)"
                        }
                    }
                }
                for await more in group { troubles += more }
                return troubles
            }
        }
        #expect(troubles == [])
    }

    @Test(.timeLimit(.minutes(10))) func `a line that is closed at any byte is opened again`() async throws {
        let troubles = try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let executor = loop.taskExecutor
            let bytes = try await HCIFaultTrial(loop, .open).record().reduce(0) { $0 + 1 + $1.bytes.count }
            #expect(bytes > 400)
            return await withTaskGroup(of: [String].self) { group in
                var troubles: [String] = []
                for (started, count) in stride(from: 0, to: bytes, by: 3).enumerated() {
                    if started >= Self.width { troubles += await group.next() ?? [] }
                    group.addTask(executorPreference: executor) {
                        await HCIFaultTrial(loop, .open).run(closingAfter: count).map { "\(count) bytes: \($0)" }
                    }
                }
                for await more in group { troubles += more }
                return troubles
            }
        }
        #expect(troubles == [])
    }
}
