// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshTransportAPI
internal import Synchronization

/// One device of the module: its transport, kept from link to link, and where that reports to.
///
/// The transport is kept because it may know more than one link tells: that it has found the device's services before, or
/// that it waits for its adapter.
struct ExportedDevice {
    /// What the transport was made for.
    var options: [String: JSONValue]
    var transport: any MeshTransport
    var reports: LinkReports
}

/// Where a transport's events go, from any thread: to its present link, or between links, of its adapter only, to the
/// last one.
final class LinkReports: Sendable {
    /// What concerns the end of a link.
    struct Facts: Sendable {
        var info: LinkInfo?
        var reason: MeshError?
    }

    private struct State {
        var link: mh_link?
        var isOpen = false
        var isClosed = false
        var facts = Facts()
    }

    private let host: HostHandle
    private let state = Mutex(State())

    init(_ host: HostHandle) {
        self.host = host
    }

    /// What the transport said of the present link.
    var facts: Facts { state.withLock { $0.facts } }

    /// A link is using the transport, which may not serve another then.
    var isInUse: Bool { state.withLock { $0.isOpen } }

    /// From here on this is the link.
    func begin(_ link: mh_link) {
        state.withLock { $0 = State(link: link, isOpen: true) }
    }

    /// The link has ended.
    func end() {
        state.withLock { state in
            state.isOpen = false
            if state.isClosed { state.link = nil }
        }
    }

    /// There will be no other link: once this one has ended, nothing that the transport says is heard.
    func close() {
        state.withLock { state in
            state.isClosed = true
            if !state.isOpen { state.link = nil }
        }
    }

    func report(_ event: LinkEvent) {
        // The host is told under the lock: its calls neither block nor come back, and so an event cannot slip past an end.
        state.withLock { state in
            guard let link = state.link else { return }
            if case .adapter(let isAvailable) = event {
                return host.linkEvent(link, MH_EVENT_ADAPTER, isAvailable ? 1 : 0)
            }
            guard state.isOpen else { return }
            switch event {
            case .phase(let phase): host.linkEvent(link, MH_EVENT_PHASE, phase.abiValue)
            case .up(let info): state.facts.info = info
            case .down(let reason): state.facts.reason = reason
            case .framesDropped(let count): host.linkEvent(link, MH_EVENT_FRAMES_DROPPED, UInt64(clamping: count))
            case .bytesSkipped(let count): host.linkEvent(link, MH_EVENT_BYTES_SKIPPED, UInt64(clamping: count))
            case .adapter: break
            }
        }
    }
}
