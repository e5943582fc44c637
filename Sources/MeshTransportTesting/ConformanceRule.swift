// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// One rule: a sentence and its check.
struct ConformanceRule: Sendable {
    var name: String
    var needs: ConformanceAbilities
    var check: @Sendable (ConformanceContext) async throws -> Void

    init(
        _ name: String, needs: ConformanceAbilities = [],
        check: @escaping @Sendable (ConformanceContext) async throws -> Void
    ) {
        self.name = name
        self.needs = needs
        self.check = check
    }

    static var all: [ConformanceRule] { connecting + ending + frames }
}

/// Why a rule is broken.
struct BrokenRule: Error {
    var message: String
}

/// What a check works with.
struct ConformanceContext: Sendable {
    let subject: ConformanceSubject
    let log: ConformanceLog

    var transport: any MeshTransport { subject.transport }
    var peer: any ConformancePeer { subject.peer }

    func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw BrokenRule(message: message()) }
    }

    /// Runs `body`, which must throw one of these codes.
    func expectError(_ codes: [MeshError.Code], _ action: String, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as MeshError {
            try expect(
                codes.contains(error.code),
                "\(action) throws \(error.code), not \(codes.map(\.slug).joined(separator: " or "))")
            return
        } catch {
            throw BrokenRule(message: "\(action) throws a \(type(of: error)), not a MeshError: \(error)")
        }
        throw BrokenRule(message: "\(action) does not throw")
    }

    /// Reads the current stream to its end in a task of its own; the end is put into the log.
    func collect() async -> Task<[Data], Never> {
        let stream = await transport.receivedData
        let log = log
        return Task {
            var frames: [Data] = []
            for await frame in stream { frames.append(frame) }
            log.append(.streamEnded)
            return frames
        }
    }

    /// The next `count` frames of a stream; fewer if it ends.
    func take(_ count: Int, from stream: AsyncStream<Data>) async -> [Data] {
        var frames: [Data] = []
        for await frame in stream {
            frames.append(frame)
            if frames.count == count { break }
        }
        return frames
    }

    /// Frames that tell their number, in `length` bytes.
    func numbered(_ number: Int, length: Int = 100) -> [UInt8] {
        (0..<max(length, 4)).map { UInt8(truncatingIfNeeded: $0 < 4 ? number >> (8 * $0) : number &+ $0) }
    }
}
