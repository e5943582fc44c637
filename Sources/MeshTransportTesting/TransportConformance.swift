// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Checks that a transport keeps the rules of ``MeshTransport``.
///
/// ```swift
/// let conformance = TransportConformance { environment in
///     let peer = try await LoopbackPeer()
///     return ConformanceSubject(transport: makeTransport(peer.port, environment), peer: peer)
/// }
/// let report = await conformance.run()
/// #expect(report.broken.isEmpty, "\(report)")
/// ```
///
/// It knows no test framework: a report is a value.
public struct TransportConformance: Sendable {
    /// Makes a transport that is not connected and reports to the environment, and its peer. Called once per rule.
    public typealias MakeSubject = @Sendable (TransportEnvironment) async throws -> ConformanceSubject

    private let timeLimit: Duration
    private let makeSubject: MakeSubject

    /// A rule that takes longer than `timeLimit` is broken: it decides about what hangs, also on a slow machine.
    public init(timeLimit: Duration = .seconds(120), makeSubject: @escaping MakeSubject) {
        self.timeLimit = timeLimit
        self.makeSubject = makeSubject
    }

    /// Runs all rules, one after the other, each with a fresh subject.
    public func run() async -> ConformanceReport {
        var results: [ConformanceResult] = []
        for rule in ConformanceRule.all {
            results.append(ConformanceResult(rule: rule.name, outcome: await run(rule)))
        }
        return ConformanceReport(results: results)
    }

    /// The rules that can be checked with a peer of these abilities, as sentences, in the order of ``run()``.
    public static func rules(for abilities: ConformanceAbilities) -> [String] {
        ConformanceRule.all.filter { abilities.isSuperset(of: $0.needs) }.map(\.name)
    }

    /// Runs one rule; nil where there is no such rule.
    public func run(rule name: String) async -> ConformanceResult? {
        guard let rule = ConformanceRule.all.first(where: { $0.name == name }) else { return nil }
        return ConformanceResult(rule: name, outcome: await run(rule))
    }

    private func run(_ rule: ConformanceRule) async -> ConformanceResult.Outcome {
        // A rule that hangs is left behind: waiting for its end would hang the report too.
        let (outcomes, continuation) = AsyncStream.makeStream(of: ConformanceResult.Outcome.self)
        let check = Task {
            continuation.yield(await self.check(rule))
            continuation.finish()
        }
        let limit = Task { [timeLimit] in
            guard (try? await Task.sleep(for: timeLimit)) != nil else { return }
            continuation.yield(.broken("it takes longer than \(timeLimit)"))
            check.cancel()
            continuation.finish()
        }
        defer { limit.cancel() }
        for await outcome in outcomes { return outcome }
        return .broken("it gave no outcome")
    }

    private func check(_ rule: ConformanceRule) async -> ConformanceResult.Outcome {
        let log = ConformanceLog()
        let subject: ConformanceSubject
        do {
            subject = try await makeSubject(log.environment)
        } catch {
            return .broken("the subject could not be made: \(error)")
        }
        let outcome: ConformanceResult.Outcome
        if !subject.peer.abilities.isSuperset(of: rule.needs) {
            outcome = .skipped("the peer cannot do what it takes")
        } else {
            do {
                try await rule.check(ConformanceContext(subject: subject, log: log))
                outcome = .kept
            } catch let broken as BrokenRule {
                outcome = .broken(broken.message)
            } catch {
                outcome = .broken("unexpected error: \(error)")
            }
        }
        await subject.transport.disconnect()
        do {
            try await subject.tearDown()
            return outcome
        } catch {
            if case .broken = outcome { return outcome }
            return .broken("something was left behind: \(error)")
        }
    }
}

/// A transport under test and the device at its other end.
public struct ConformanceSubject: Sendable {
    public var transport: any MeshTransport
    public var peer: any ConformancePeer
    /// Runs after the rule and a `disconnect`; throws when the transport left something behind.
    public var tearDown: @Sendable () async throws -> Void

    public init(
        transport: any MeshTransport, peer: any ConformancePeer,
        tearDown: @escaping @Sendable () async throws -> Void = {}
    ) {
        self.transport = transport
        self.peer = peer
        self.tearDown = tearDown
    }
}

/// What one rule gave.
public struct ConformanceResult: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        case kept
        /// With what happened instead.
        case broken(String)
        /// With the reason.
        case skipped(String)
    }

    /// The rule as a sentence.
    public var rule: String
    public var outcome: Outcome
}

/// What all rules gave.
public struct ConformanceReport: Sendable, CustomStringConvertible {
    public var results: [ConformanceResult]

    /// The rules that are not kept, as `rule: what happened`.
    public var broken: [String] {
        results.compactMap { if case .broken(let why) = $0.outcome { "\($0.rule): \(why)" } else { nil } }
    }

    /// The rules that could not be checked.
    public var skipped: [String] {
        results.compactMap { if case .skipped = $0.outcome { $0.rule } else { nil } }
    }

    public var description: String {
        let kept = results.count - broken.count - skipped.count
        let lines = broken.map { "broken: \($0)" } + skipped.map { "skipped: \($0)" }
        return (["\(kept) of \(results.count) rules kept"] + lines).joined(separator: "\n")
    }
}
