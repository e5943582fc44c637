// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

struct FloodScopes {
    enum Wanted: Equatable { case unset, frame(Data) }
    var known: Data?
    static func concerns(_ command: Data) -> Bool {
        [2, 3, 7, 26, 27, 39, 50, 52, 57, 62].contains(command.first ?? 0)
    }
    func lead(for wanted: Wanted) -> Data? {
        let frame: Data = if case .frame(let f) = wanted { f } else { Data([0x36, 0]) }
        return known == frame ? nil : frame
    }
    mutating func answered(_ reply: Data, to command: Data) { known = command }
    mutating func linkReady() { known = nil }
}
struct SigningSession {
    enum Action { case reply(Data), transaction([Data]) }
    var data: Data?
    mutating func start() -> Action { data = Data(); return .reply(Data([0x13, 0, 0, 0x20, 0, 0])) }
    mutating func append(_ bytes: Data) -> Action {
        guard data != nil else { return .reply(Data([1, 4])) }
        data! += bytes; return .reply(Data([0]))
    }
    mutating func finish(maximumFrame: Int) -> Action {
        guard let d = data else { return .reply(Data([1, 4])) }
        data = nil
        return .transaction([Data([0x21]), Data([0x22]) + d, Data([0x23])])
    }
}
struct AirtimeBudget {
    var isLimited = false
    init(percent: Double, burst: Duration) {}
    static func packetLength(of command: Data) -> Int? {
        [2, 3, 7, 25, 26, 27, 36, 50, 52, 57, 62].contains(command.first ?? 0) ? 50 : nil
    }
    mutating func take(_ cost: Duration, now: Duration) -> Bool { true }
}
struct Modulation { func timeOnAir(bytes: Int) -> Duration { .zero } }
extension RadioCache { var modulation: Modulation? { nil }; var selfName: String? { "Test" } }
struct ClientSlots {
    struct Handover { var client: UInt64; var slot: Int }
    var slots: [String: [UInt64?]] = [:]
    mutating func join(base: String, client: UInt64) -> Int {
        var list = slots[base] ?? []
        if let i = list.firstIndex(of: client) { return i + 1 }
        if let i = list.firstIndex(of: nil) { list[i] = client; slots[base] = list; return i + 1 }
        list.append(client); slots[base] = list; return list.count
    }
    mutating func left(client: UInt64, gracefully: Bool) -> Handover? {
        for (k, v) in slots { if let i = v.firstIndex(of: client) { slots[k]![i] = nil } }
        return nil
    }
}
