// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshTransportAPI

extension ABIRule {
    /// Rules about the beginning and the end of links.
    static let links = [
        ABIRule("connect is answered by link_up or link_down", needs: [.options]) { stage in
            let instance = try stage.start()
            let link = try instance.connect()
            try stage.wait(for: "link_up or link_down after connect") {
                instance.record.link(link).state != .connecting
            }
        },
        ABIRule("disconnect ends a connect under way", needs: [.options]) { stage in
            for turns in 0..<3 {
                let instance = try stage.start()
                let link = try instance.connect()
                for _ in 0..<turns { try stage.idle(for: .milliseconds(1)) }
                try instance.close(link)
                try instance.end()
                stage.forget(instance)
            }
        },
        ABIRule("disconnect is answered by one link_down, with MH_ECANCELED") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            try instance.close(link)
            let status = instance.record.link(link).end?.status ?? MH_OK
            try stage.expect(status == MH_ECANCELED, "link_down has \(status.named)")
            // A second link_down would come now.
            try stage.idle(for: .milliseconds(50))
        },
        ABIRule("disconnect of a link that has ended is refused") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            try instance.close(link)
            let status = instance.disconnect(link)
            try stage.expect(status == MH_ECLOSED, "it returned \(status.named), not MH_ECLOSED")
            try stage.idle(for: .milliseconds(50))
        },
        ABIRule("disconnect ends a link at every step") { stage in
            let steps: [(String, (TestedInstance, mh_link) throws -> Void)] = [
                ("right after link_up", { _, _ in }),
                ("after some time", { _, _ in try stage.idle(for: .milliseconds(50)) }),
                ("right after send", { instance, link in _ = instance.send(TestFrame.short, on: link) }),
                ("after tx_done", { instance, link in _ = try instance.carry(TestFrame.short, on: link) }),
                (
                    "with many frames on their way",
                    { instance, link in
                        for _ in 0..<200 where instance.send(TestFrame.of(3), on: link).status == MH_AGAIN { break }
                    }
                ),
            ]
            for (step, play) in steps {
                let instance = try stage.start()
                let link = try instance.open()
                try play(instance, link)
                do {
                    try instance.close(link)
                } catch RuleEnd.broken(let what) {
                    throw RuleEnd.broken("\(step): \(what)")
                } catch RuleEnd.overdue(let what) {
                    throw RuleEnd.overdue("\(step): \(what)")
                }
                try instance.end()
                stage.forget(instance)
            }
        },
        ABIRule("links can be made one after the other") { stage in
            let instance = try stage.start()
            for number in 1...10 {
                do {
                    let link = try instance.open()
                    try instance.close(link)
                } catch RuleEnd.unreachable(let why) where number > 1 {
                    throw RuleEnd.broken("after \(number - 1) links: \(why)")
                }
            }
        },
        ABIRule("a link that is good outlives a probe") { stage in
            let instance = try stage.start()
            if stage.module.ops.probe == nil { throw RuleEnd.inapplicable("the module has no probe") }
            let link = try instance.open()
            let status = instance.probe(link)
            try stage.expect(status == MH_OK || status == MH_ENOSUP, "probe returned \(status.named)")
            try stage.idle(for: .milliseconds(200))
            try stage.expect(instance.record.link(link).state == .up, "the link has ended")
        },
    ]

    /// Rules about what a link carries.
    static let frames = [
        ABIRule("frames of 1 byte up to the maximum are carried") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            let maximum = instance.record.link(link).maximum
            for length in Set([1, 2, maximum - 1, maximum]).sorted() where length > 0 {
                let status = try instance.carry(TestFrame.of(length), on: link)
                try stage.expect(status == MH_OK, "\(length) bytes of \(maximum) ended with \(status.named)")
            }
            try stage.expect(instance.record.link(link).state == .up, "the link has ended")
        },
        ABIRule("frames of no byte, or of more than the maximum, are refused") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            let maximum = instance.record.link(link).maximum
            for length in [0, maximum + 1, 65_536] {
                let status = try instance.carry(TestFrame.of(length), on: link)
                try stage.expect(status != MH_OK, "\(length) bytes were accepted, of \(maximum)")
            }
            try stage.expect(instance.record.link(link).state == .up, "a refused frame ended the link")
        },
        ABIRule("frames that find no room are told when there is some") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            // Many at once, each offered again until it is taken.
            for number in 0..<500 {
                var isTaken = false
                while !isTaken, instance.record.link(link).state == .up {
                    let writables = instance.record.link(link).writables
                    let status = instance.send(TestFrame.of(4, number: number), on: link).status
                    try stage.expect(status >= 0, "send returned \(status.named)")
                    isTaken = status == MH_OK
                    if isTaken { continue }
                    try stage.wait(for: "writable after MH_AGAIN") {
                        instance.record.link(link).writables > writables || instance.record.link(link).state == .over
                    }
                }
            }
            try stage.wait(for: "tx_done for each accepted send") { instance.record.link(link).pending.isEmpty }
        },
        ABIRule("a send on a link that has ended is refused") { stage in
            let instance = try stage.start()
            let link = try instance.open()
            try instance.close(link)
            let status = instance.send(TestFrame.short, on: link).status
            try stage.expect(status < 0, "it returned \(status.named)")
            try stage.idle(for: .milliseconds(50))
        },
        ABIRule("frames come back as they went", needs: [.echo]) { stage in
            let instance = try stage.start()
            let link = try instance.open()
            let maximum = instance.record.link(link).maximum
            try instance.synchronize(link, stage)
            let lengths = Set([1, 2, 15, 16, maximum - 1, maximum]).sorted().filter { (1...maximum).contains($0) }
            for (index, length) in lengths.enumerated() {
                let frame = TestFrame.of(length, number: index)
                _ = try instance.carry(frame, on: link)
                try stage.wait(for: "a frame of \(length) bytes") { instance.record.link(link).frames.count > index }
                let came = instance.record.link(link).frames[index]
                try stage.expect(
                    came == frame,
                    came.count == length
                        ? "\(length) bytes came back changed" : "\(length) bytes came back as \(came.count)")
            }
        },
        ABIRule("frames keep their order", needs: [.echo]) { stage in
            let instance = try stage.start()
            let link = try instance.open()
            try instance.synchronize(link, stage)
            try instance.exchange(0..<100, on: link, stage) { _ in }
        },
        ABIRule("frames that the host has no room for are kept", needs: [.echo]) { stage in
            if stage.module.ops.rx_ready == nil {
                throw RuleEnd.inapplicable("the module has no rx_ready: such frames are lost")
            }
            let instance = try stage.start()
            let link = try instance.open()
            try instance.synchronize(link, stage)
            for round in 0..<3 {
                instance.record.update { $0.links[link]?.refusals = 1 }
                try instance.exchange(round * 20..<round * 20 + 20, on: link, stage) { _ in
                    guard instance.record.link(link).isFull else { return }
                    try stage.idle(for: .milliseconds(20))
                    _ = instance.ready(link)
                }
            }
            try stage.expect(instance.record.link(link).refused > 0, "no frame was refused")
        },
    ]
}

extension TestedInstance {
    /// Passes over what the device gives back of links before this one, up to a frame that is none of theirs.
    fileprivate func synchronize(_ link: mh_link, _ stage: Stage) throws {
        let marker = TestFrame.random(min(record.link(link).maximum, 12))
        let status = try carry(marker, on: link)
        try stage.expect(status == MH_OK, "a frame ended with \(status.named)")
        try stage.wait(for: "a frame of \(marker.count) bytes that has been sent") {
            record.link(link).frames.contains(marker) || record.link(link).state == .over
        }
        record.update { $0.links[link]?.frames = [] }
    }

    /// Sends numbered frames, and waits until all of them have come back, in order. `between` runs whenever something has
    /// been said.
    fileprivate func exchange(
        _ numbers: Range<Int>, on link: mh_link, _ stage: Stage, between: (Int) throws -> Void
    ) throws {
        let first = record.link(link).frames.count
        for number in numbers {
            let status = try carry(TestFrame.of(5, number: number), on: link)
            try stage.expect(status == MH_OK, "frame \(number) ended with \(status.named)")
            try between(number)
        }
        var count = record.link(link).frames.count
        while count < first + numbers.count {
            try between(count)
            try stage.wait(for: "frame \(count - first) of \(numbers.count)") {
                let facts = record.link(link)
                return facts.frames.count > count || facts.isFull || facts.state == .over
            }
            count = record.link(link).frames.count
            if record.link(link).state == .over { throw RuleEnd.broken("the link has ended") }
        }
        let came = record.link(link).frames.dropFirst(first).map { $0.count > 1 ? Int($0[1]) : -1 }
        try stage.expect(came == Array(numbers), "the frames came back as \(came.prefix(40))")
    }
}
