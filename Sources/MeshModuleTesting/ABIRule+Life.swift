// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshTransportAPI

extension ABIRule {
    /// Rules about the life of an instance.
    static let life = [
        ABIRule("an instance stops right after its start") { stage in
            let instance = try stage.start()
            try instance.stop()
            try instance.destroy()
        },
        ABIRule("an instance stops after a while") { stage in
            let instance = try stage.start()
            try stage.idle(for: .milliseconds(100))
            try instance.end()
        },
        ABIRule("two instances live side by side, and end in any order") { stage in
            for isFirstFirst in [true, false] {
                let pair = [try stage.start(), try stage.start()]
                for instance in isFirstFirst ? pair : pair.reversed() {
                    try instance.end()
                    try stage.idle(for: .milliseconds(10))
                    stage.forget(instance)
                }
            }
        },
        ABIRule("1,000 instances in a row leave nothing behind") { stage in
            func live() throws {
                let instance = try stage.start()
                try instance.end()
                try stage.expect(
                    instance.record.read { $0.breaches.isEmpty }, "an instance broke a rule that always holds")
                stage.forget(instance)
            }
            // What is made once for all has been made then.
            for _ in 0..<100 { try live() }
            let before = ProcessFacts()
            for _ in 100..<1_000 { try live() }
            let after = ProcessFacts()
            // A leak leaves something every time, or every other time.
            let (descriptors, threads) = (after.descriptors - before.descriptors, after.threads - before.threads)
            try stage.expect(descriptors < 100, "\(descriptors) descriptors are left")
            try stage.expect(threads < 100, "\(threads) threads are left")
            let kibibytes = (after.memory - before.memory) >> 10
            try stage.expect(kibibytes < 16_384, "\(kibibytes) KiB of memory are left")
        },
        ABIRule("stop ends a connect under way", needs: [.options]) { stage in
            let instance = try stage.start()
            _ = try instance.connect()
            try instance.end()
        },
        ABIRule("stop ends an open link") { stage in
            let instance = try stage.start()
            _ = try instance.open()
            try instance.end()
        },
        ABIRule("stop ends a link that frames are sent on") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            for _ in 0..<20 where instance.send(TestFrame.of(3), on: link).status == MH_AGAIN { break }
            try instance.end()
        },
        ABIRule("stop ends a search", needs: [.scan]) { stage in
            let instance = try stage.start()
            _ = instance.scan(true)
            try instance.end()
        },
        // The fastest of some calls: a busy machine makes one slow, not all.
        ABIRule("functions return at once") { stage in
            for _ in 0..<7 {
                let instance = try stage.start()
                if stage.issues.isEmpty, let link = try? instance.connect() {
                    try stage.wait(for: "link_up or link_down after connect") {
                        instance.record.link(link).state != .connecting
                    }
                    if instance.record.link(link).state == .up {
                        _ = try instance.carry(TestFrame.short, on: link)
                        if stage.module.ops.probe != nil { _ = instance.probe(link) }
                        try instance.close(link)
                    }
                }
                if stage.module.ops.scan != nil, stage.module.has(MH_CAP_SCAN) {
                    _ = instance.scan(true)
                    _ = instance.scan(false)
                }
                _ = instance.diagnostics()
                try instance.end()
                stage.forget(instance)
            }
            let limit = Duration.milliseconds(50)
            let slow = stage.durations.compactMap { function, times -> String? in
                guard times.count >= 5, let least = times.min(), least > limit else { return nil }
                return "\(function) takes \(least.milliseconds) ms or more"
            }
            try stage.expect(slow.isEmpty, slow.sorted().joined(separator: "; "))
        },
    ]

    /// Rules about what is no link.
    static let beside = [
        ABIRule("diagnostics are one JSON object") { stage in
            let instance = try stage.start()
            guard let before = instance.diagnostics() else {
                throw RuleEnd.inapplicable("the module has no diagnostics")
            }
            var texts = [before]
            if stage.issues.isEmpty, let link = try? instance.connect() {
                try stage.wait(for: "link_up or link_down after connect") {
                    instance.record.link(link).state != .connecting
                }
                if let during = instance.diagnostics() { texts.append(during) }
            }
            for (status, text) in texts {
                try stage.expect(status == MH_OK, "diagnostics returned \(status.named)")
                try stage.expect(
                    (try? JSONValue(parsing: Data(text.utf8)))?.objectValue != nil,
                    "diagnostics gave \(text.prefix(200))")
            }
        },
        ABIRule("a search begins, ends, and begins again", needs: [.scan]) { stage in
            let instance = try stage.start()
            for _ in 0..<3 {
                let status = instance.scan(true)
                try stage.expect(status <= 0, "scan returned \(status.named)")
                try stage.idle(for: .milliseconds(50))
                guard status == MH_OK, instance.record.read({ $0.searchFailed == nil }) else { continue }
                let end = instance.scan(false)
                try stage.expect(end == MH_OK, "the end of scan returned \(end.named)")
            }
        },
        ABIRule("a request with an unknown verb is refused", needs: [.requests]) { stage in
            let instance = try stage.start()
            let (request, status) = instance.manage("no_such_verb")
            if status == MH_OK {
                try stage.wait(for: "managed after manage") { instance.answer(to: request) != nil }
            }
            let answer = status == MH_OK ? instance.answer(to: request)?.status ?? status : status
            try stage.expect(answer == MH_ENOSUP, "it ended with \(answer.named), not MH_ENOSUP")
        },
    ]
}
