// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

/// Every state of a device's link meets every input.
struct StateTableTests {
    private static let table = """
        state         connect     reconnect   disconnect   release  settings    new-link    away    back        established session ended       deadline    remove
        disconnected  +connecting +connecting =            released =           =           =       =           =           =       =           =           removed
        released      +connecting +connecting disconnected =        =           =           =       =           =           =       =           +connecting removed
        slot          =           =           disconnected released =           =           adapter =           =           =       =           =           removed
        backoff       +connecting +connecting disconnected released +connecting +connecting adapter =           =           =       =           +connecting removed
        adapter       =           =           disconnected released =           =           =       +connecting =           =       =           =           removed
        contended     +connecting +connecting disconnected released +connecting +connecting =       =           =           =       =           +connecting removed
        breaker-open  +connecting +connecting disconnected released +connecting +connecting adapter =           =           =       =           +connecting removed
        blocked       +connecting +connecting disconnected released +connecting +connecting =       =           =           =       =           =           removed
        exhausted     +connecting +connecting disconnected released +connecting +connecting =       +connecting =           =       =           =           removed
        connecting    =           -ending     -ending      -ending  =           -ending     -ending =           handshaking =       backoff     -ending     -ending
        handshaking   =           -ending     -ending      -ending  =           -ending     -ending =           =           ready   backoff     -ending     -ending
        ready         =           -ending     -ending      -ending  =           -ending     =       =           =           =       backoff     =           -ending
        ending        =           =           =            =        =           =           =       =           -ending     -ending +connecting =           =
        ending-failed =           =           =            =        =           =           =       =           -ending     -ending backoff     =           =
        """
    private static let hci0 = AdapterSettings(name: "hci0")

    /// A bench whose `roof` is in that state.
    private static func bench(in state: String) -> Bench {
        var policy = ReconnectionPolicy()
        if state == "exhausted" { policy.maximumRetries = 0 }
        var bench = Bench(policy: policy, adapter: hci0)
        switch state {
        case "disconnected":
            bench.perform(.disconnect)
            bench.end(nil)
        case "released":
            bench.perform(.release(for: .seconds(60)))
            bench.end(nil)
        case "slot":
            bench.add("first", adapter: hci0)
            bench.end(.connectionRefused)
            bench.passToDeadline()
        case "backoff", "exhausted": bench.end(.connectionRefused)
        case "adapter":
            bench.adapter("hci0", isAvailable: false)
            bench.end(nil)
        case "contended": bench.end(.contended)
        case "breaker-open":
            while bench.roof.breaker != .open {
                bench.end(.connectionRefused)
                if bench.roof.breaker != .open { bench.passToDeadline() }
            }
        case "blocked": bench.end(.authenticationFailed)
        case "handshaking": bench.established()
        case "ready": bench.becomeReady()
        case "ending":
            bench.perform(.disconnect)
            bench.perform(.connect)
        case "ending-failed": bench.passToDeadline()
        default: break
        }
        return bench
    }

    /// The state after the input, with `+` for a started attempt and `-` for an ended one; `=` where nothing changes.
    private static func outcome(of input: String, in state: String) -> String {
        var bench = bench(in: state)
        let before = bench.roof
        let generation = before.generation
        switch input {
        case "connect": bench.perform(.connect)
        case "reconnect": bench.perform(.reconnect)
        case "disconnect": bench.perform(.disconnect)
        case "release": bench.perform(.release(for: .seconds(60)))
        case "settings", "new-link":
            bench.actions = bench.machine.settingsChanged(
                "roof", DeviceLinkSettings(adapter: hci0), needsNewLink: input == "new-link", now: bench.now)
        case "away": bench.adapter("hci0", isAvailable: false)
        case "back": bench.adapter("hci0", isAvailable: true)
        case "established": bench.established(generation: generation)
        case "session": bench.sessionReady(generation: generation)
        case "ended": bench.end(.connectionRefused, generation: generation)
        case "deadline": bench.pass(before.remaining ?? .seconds(30))
        case "remove": bench.actions = bench.machine.removeDevice("roof", now: bench.now)
        default: Issue.record("no input \(input)")
        }
        let sign = bench.started.contains("roof") ? "+" : bench.ended.contains("roof") ? "-" : ""
        guard let after = bench.machine.snapshot("roof", now: bench.now) else { return sign + "removed" }
        let name = after.waiting?.slug ?? after.phase.rawValue
        let isSame = after.phase == before.phase && after.waiting == before.waiting && sign.isEmpty
        return isSame ? "=" : sign + name
    }

    @Test func `each state answers each input as the table says`() throws {
        let rows = Self.table.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let inputs = try #require(rows.first).dropFirst()
        for row in rows.dropFirst() {
            for (input, expected) in zip(inputs, row.dropFirst()) {
                let outcome = Self.outcome(of: input, in: row[0])
                #expect(outcome == expected, "\(input) in \(row[0])")
            }
        }
    }
}
