// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshTransportAPI
internal import Synchronization

/// What one instance has said, and what of it no module may say. Never freed: a module that talks after its end must find
/// somebody who notices.
///
/// What it says may come from any thread; the rest is for the thread of the loop.
final class InstanceRecord: Sendable {
    /// How far a link has come.
    enum LinkState: Sendable {
        /// `connect` is being called, or has returned MH_OK.
        case connecting
        case up
        /// It ended, or never began.
        case over
    }

    struct Link: Sendable {
        var state = LinkState.connecting
        /// The longest frame.
        var maximum = 0
        /// Why it ended, and what was said about it.
        var end: (status: mh_status, detail: String)?
        var frames: [[UInt8]] = []
        /// How many frames are answered with MH_AGAIN before one is taken.
        var refusals = 0
        /// A frame was refused and rx_ready has not been called since.
        var isFull = false
        var refused = 0
        var writables = 0
        /// Accepted sends without a tx_done, the oldest first.
        var pending: [UInt64] = []
        var phases: [UInt64] = []
    }

    /// One accepted send or request.
    struct Answer: Sendable {
        var link: mh_link
        var status: mh_status?
    }

    struct State: Sendable {
        var life = Life.created
        var links: [mh_link: Link] = [:]
        var sends: [UInt64: Answer] = [:]
        /// A request's answer: its status and its document.
        var requests: [UInt64: (status: mh_status, result: JSONValue?)?] = [:]
        var searchFailed: (status: mh_status, detail: String)?
        var found = 0
        var breaches: [Breach] = []
        /// The function that the loop's thread is in.
        var function: String?
    }

    enum Life: Sendable { case created, stopping, stopped, destroyed }

    private let state = Mutex(State())
    /// Values that nobody may see.
    private let secrets: [String]
    let canResume: Bool
    /// Called, from any thread, after each word of the module.
    private let heard: @Sendable () -> Void

    init(secrets: [String], canResume: Bool, heard: @escaping @Sendable () -> Void) {
        self.secrets = secrets.filter { $0.utf8.count >= 4 }
        self.canResume = canResume
        self.heard = heard
    }

    func read<Result>(_ body: (borrowing State) -> Result) -> Result { state.withLock { body($0) } }

    func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result { state.withLock { body(&$0) } }

    func link(_ id: mh_link) -> Link { read { $0.links[id] ?? Link() } }

    /// Every word of the module goes through here.
    @discardableResult
    func hear<Result: Sendable>(_ word: String, _ body: (inout State) -> Result) -> Result {
        let result = state.withLock { state in
            if state.life == .destroyed { state.breach(.silence, "\(word) came in destroy or after it") }
            return body(&state)
        }
        heard()
        return result
    }

    /// What is wrong with a text of the module, if anything is.
    func check(_ text: mh_str, _ name: String, _ state: inout State) -> String {
        guard let start = text.ptr else {
            if text.len > 0 { state.breach(.form, "\(name) has \(text.len) bytes and no pointer") }
            return ""
        }
        let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(start), count: min(text.len, 1 << 20))
        guard let string = String(validating: bytes, as: UTF8.self) else {
            state.breach(.form, "\(name) is not UTF-8")
            return ""
        }
        checkSecrets(string, name, &state)
        return string
    }

    func checkSecrets(_ text: String, _ name: String, _ state: inout State) {
        if secrets.contains(where: { text.contains($0) }) {
            state.breach(.secrets, "\(name) holds the value of a secret option")
        }
    }
}

extension InstanceRecord.State {
    mutating func breach(_ rule: StandingRule, _ what: String) {
        let place = function.map { ", in \($0)" } ?? ""
        let breach = Breach(rule: rule, what: what + place)
        // One module may do the same thing a thousand times.
        if breaches.count < 32, !breaches.contains(breach) { breaches.append(breach) }
    }

    /// A link that may still be spoken of. `word` says what is said.
    mutating func speaks(of id: mh_link, _ word: String) -> Bool {
        switch links[id]?.state {
        case nil:
            breach(.links, "\(word) for link \(id), which the host has not given")
            return false
        case .over:
            breach(.links, "\(word) for link \(id), which has ended")
            return false
        case .connecting, .up: return true
        }
    }
}
