// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct TroubleBookTests {
    private static let full = MeshError(.storageFailed, "the disk is full")
    private static let gone = MeshError(.storageFailed, "there is no disk")

    @Test func `what is wrong is news once, and keeps its newest reason`() {
        var book = TroubleBook()
        #expect(!book.isTroubled)
        #expect(book.began(.journal, "a", Self.full, now: .seconds(1)) == true)
        #expect(book.began(.journal, "a", Self.gone, now: .seconds(2)) == false)
        #expect(book.began(.socket, "a", Self.full, now: .seconds(3)) == true)
        #expect(book.all.map(\.since) == [.seconds(1), .seconds(3)])
        #expect(book.all[0].error.message == Self.gone.message)
        let ended = book.ended(.journal, "a")
        #expect(ended?.since == .seconds(1))
        #expect(book.ended(.journal, "a") == nil)
        #expect(book.isTroubled)
        #expect(book.ended(.socket, "a") != nil)
        #expect(!book.isTroubled)
    }

    @Test func `a loss stays, the latest of its kind, and is no trouble`() {
        var book = TroubleBook()
        book.happened(.journal, "a", Self.full, now: .seconds(1))
        book.happened(.journal, "a", Self.gone, now: .seconds(2))
        #expect(book.all.count == 1 && book.all[0].error.message == Self.gone.message && !book.isTroubled)
        // It is not what ends.
        #expect(book.ended(.journal, "a") == nil)
        #expect(book.began(.journal, "a", Self.full, now: .seconds(3)) == true)
        let ended = book.ended(.journal, "a")
        #expect(ended?.since == .seconds(3))
        #expect(book.all.count == 1)
    }

    @Test func `the doctor takes what is wrong for a problem and what is lost for a note`() {
        var book = TroubleBook()
        _ = book.began(.journal, "a", Self.full, now: .zero)
        book.happened(.journal, "a", Self.gone, now: .zero)
        let findings = Doctor.findings(troubles: book.all.map { $0.json(now: .seconds(90)) })
        #expect(findings.map(\.finding.severity) == [.problem, .note])
        #expect(findings[0].finding.message == "the disk is full (for 1m 30s)")
        #expect(findings[1].finding.message == "there is no disk (1m 30s ago)")
        #expect(findings.allSatisfy { $0.finding.subject == "journal" && $0.finding.advice != nil })
    }

    @Test(arguments: [
        (0, "0s"), (59, "59s"), (60, "1m 0s"), (3_599, "59m 59s"), (3_600, "1h 0m"), (86_399, "23h 59m"),
        (86_400, "1d 0h"), (31_536_000, "365d 0h"),
    ])
    func `times are told roughly`(_ seconds: Int, _ text: String) {
        #expect(DaemonQuestion.roughly(.seconds(seconds)) == text)
    }

    @Test func `status is one line when all is well`() {
        let status: JSONValue = [
            "version": "1.2.3", "up_ms": 90_000, "devices": 3, "devices_ready": 2, "clients": 4,
            "descriptors": ["open": 30, "limit": .null, "turned_away": 0],
        ]
        #expect(
            DaemonQuestion.line(status: status)
                == "meshhost 1.2.3, up 1m 30s: 2/3 devices ready, 4 clients, 30 of - descriptors")
    }
}
