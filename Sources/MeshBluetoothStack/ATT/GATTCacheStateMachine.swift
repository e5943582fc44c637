// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// Which of a peer's handles are known, and whether they are good still (Core Specification 5.4, Vol 3 Part G §2.5.2, §7.3).
///
///     ┌───────────┐ tag read, and the same   ┌───────┐
///     │ unchecked │ ───────────────────────▶ │ valid │──┐ a handle is refused, or Service Changed:
///     └─────┬─────┘                          └───────┘  │ forget, and end the link
///           │ another tag, Service Changed              ▼
///           ▼                                       ┌───────┐
///     ┌────────────┐ setUpFinished ┌──────────┐     │ stale │
///     │ discovering│ ────────────▶ │ learning │     └───────┘
///     └────────────┘               └────┬─────┘         ▲
///           ▲ nothing stored            │ tag known:    │ Service Changed
///                                       ▼ store         │
///                                  ┌─────────┐ ─────────┘
///                                  │ learned │
///                                  └─────────┘
///
/// The check costs one round trip and saves two or three. A device that has no tag would gain nothing by being asked, so
/// what is stored of it is never used; it is kept to see that it is the same build still, which has no tag either. Learning
/// comes behind the set-up: it takes up to five requests, and nobody waits for them. The specification lets a bonded client
/// trust its handles without a check as long as no Service Changed comes; radios that are flashed keep their bonds, move
/// their handles and do not tell, so here it is not trusted.
///
/// A CCCD is always written: a device that was reset remembers its bond and forgets what was asked for.
public struct GATTCacheStateMachine: Sendable {
    /// How to get at a service, or at a CCCD.
    public enum Lookup<Found: Sendable & Hashable>: Sendable, Hashable {
        case known(Found)
        /// Its result goes to ``tagRead(_:)``; then look again.
        case check(GATTProcedure)
        case discover
    }

    public enum LearnAction: Sendable, Hashable {
        /// Its result goes to ``learned(_:)``.
        case ask(GATTProcedure)
        /// Keep this.
        case store(RemoteDatabase)
        case nothing
    }

    public enum ChangeAction: Sendable, Hashable {
        case nothing
        /// What is kept of the peer is no good.
        case forget
        /// The same, and it has been used on this link already: end it.
        case forgetAndEnd
    }

    private enum Step: Sendable {
        case hash
        case firmware
        /// Waits for the handle of Service Changed.
        case serviceChanged
        /// Waits for its CCCD.
        case configuration(of: UInt16)
        case subscription(to: UInt16)
    }

    private enum State: Sendable {
        /// Waits for the tag.
        case unchecked(RemoteDatabase)
        /// Waits for nothing; what was stored is used.
        case valid
        /// Waits for what is found, to be compared with what was stored.
        case discovering(old: RemoteDatabase?)
        case learning(Step)
        case learned
        /// Waits for the end of the link.
        case stale
    }

    private var state: State
    /// What is known on this link.
    public private(set) var database = RemoteDatabase(tag: .absent)
    /// Whether stored handles were used.
    public private(set) var isHit = false
    /// The peer remembers what this client subscribes to.
    private var isBonded = false

    /// `stored` is what is kept of the peer.
    public init(stored: RemoteDatabase?) {
        if let stored, stored.tag != .absent {
            state = .unchecked(stored)
        } else {
            state = .discovering(old: stored)
        }
    }

    // MARK: Looking

    public func services(_ uuid: BluetoothUUID) -> Lookup<[RemoteService]> {
        if case .unchecked(let stored) = state, let check = Self.check(stored.tag) { return .check(check) }
        let found = database.services.map(\.service).filter { $0.uuid == uuid }
        return found.isEmpty ? .discover : .known(found)
    }

    /// What ``Lookup/check(_:)`` asked for was answered.
    public mutating func tagRead(_ result: Result<GATTResult, GATTFailure>) {
        guard case .unchecked(let stored) = state else { return }
        if case .success(.value(let value)) = result, Self.tag(like: stored.tag, value) == stored.tag {
            database = stored
            isHit = true
            state = .valid
        } else {
            state = .discovering(old: nil)
        }
    }

    /// The characteristics of a service; nil if they are not known.
    public func characteristics(_ range: ATTPacket.HandleRange) -> [RemoteCharacteristic]? {
        database.services.first { $0.service.range == range && !$0.characteristics.isEmpty }?.characteristics
    }

    /// The CCCD of a value, whose descriptors end at `last`. A characteristic that notifies has one (Vol 3 Part G
    /// §3.3.1.1), so a place where only one descriptor fits is its place.
    public func configuration(of value: UInt16, last: UInt16) -> Lookup<UInt16> {
        if let known = database.configurations[value] { return .known(known) }
        return value < last && value + 1 == last ? .known(last) : .discover
    }

    // MARK: Finding

    public mutating func servicesFound(_ services: [RemoteService]) {
        for service in services where !database.services.contains(where: { $0.service == service }) {
            database.services.append(.init(service, characteristics: []))
        }
    }

    public mutating func characteristicsFound(
        _ characteristics: [RemoteCharacteristic], in range: ATTPacket.HandleRange
    ) {
        guard let index = database.services.firstIndex(where: { $0.service.range == range }) else { return }
        database.services[index].characteristics = characteristics
    }

    /// The CCCD has taken a value.
    public mutating func configurationFound(_ handle: UInt16, of value: UInt16) {
        database.configurations[value] = handle
    }

    // MARK: Losing

    /// The peer refused a request. Only handles that came from the store are suspected.
    public mutating func refused(_ code: ATTErrorCode) -> ChangeAction {
        guard case .valid = state, code.saysThatHandlesAreStale else { return .nothing }
        return drop()
    }

    /// The peer indicates a value.
    public mutating func indicationReceived(_ handle: UInt16) -> ChangeAction {
        switch state {
        case .unchecked(let stored):
            guard stored.serviceChanged == handle else { return .nothing }
            // Nothing of it has been used.
            state = .discovering(old: nil)
            return .forget
        case .discovering, .stale: return .nothing
        case .valid, .learning, .learned: return database.serviceChanged == handle ? drop() : .nothing
        }
    }

    private mutating func drop() -> ChangeAction {
        state = .stale
        return .forgetAndEnd
    }

    // MARK: Learning

    /// The link is in use, and what is known now is what it takes to get there. With a bond the peer remembers what this
    /// client subscribes to, so that Service Changed is worth it.
    public mutating func setUpFinished(isBonded: Bool) -> LearnAction {
        self.isBonded = isBonded
        guard case .discovering(let old) = state, !database.services.isEmpty else { return .nothing }
        if let old, old.hasLayout(of: database) {
            state = .learned
            return .nothing
        }
        return ask(.hash)
    }

    /// What ``LearnAction/ask(_:)`` asked for was answered.
    public mutating func learned(_ result: Result<GATTResult, GATTFailure>) -> LearnAction {
        guard case .learning(let step) = state else { return .nothing }
        switch result {
        case .failure(.bearerEnded), .failure(.timedOut), .failure(.queueFull):
            state = .stale
            return .nothing
        case .success, .failure: break
        }
        switch (step, result) {
        case (.hash, .success(.value(let hash))) where hash.count == 16: return tagged(.hash(hash))
        case (.hash, _): return ask(.firmware)
        case (.firmware, .success(.value(let text))) where !text.isEmpty: return tagged(.firmware(text))
        case (.firmware, _): return store()
        // It cannot be read, and the refusal tells where it is (Vol 3 Part F §3.4.4.1).
        case (.serviceChanged, .failure(.refused(.readNotPermitted, let handle))) where handle > 0 && handle < .max:
            return ask(.configuration(of: handle))
        case (.configuration(let handle), .success(.descriptors(let found)))
        where found.first?.type == .clientConfiguration:
            return ask(.subscription(to: handle))
        case (.subscription(let handle), .success):
            database.serviceChanged = handle
            return store()
        case (.serviceChanged, _), (.configuration, _), (.subscription, _): return store()
        }
    }

    private mutating func tagged(_ tag: RemoteDatabase.Tag) -> LearnAction {
        database.tag = tag
        return isBonded ? ask(.serviceChanged) : store()
    }

    private mutating func ask(_ step: Step) -> LearnAction {
        state = .learning(step)
        switch step {
        case .hash: return .ask(.readByType(.databaseHash))
        case .firmware: return .ask(.readByType(.firmwareRevision))
        case .serviceChanged: return .ask(.readByType(.serviceChanged))
        case .configuration(let handle): return .ask(.discoverDescriptors(.init(handle + 1, handle + 1)))
        case .subscription(let handle): return .ask(.write(handle + 1, [2, 0]))
        }
    }

    private mutating func store() -> LearnAction {
        state = .learned
        return .store(database)
    }

    private static func check(_ tag: RemoteDatabase.Tag) -> GATTProcedure? {
        switch tag {
        case .hash: .readByType(.databaseHash)
        case .firmware: .readByType(.firmwareRevision)
        case .absent: nil
        }
    }

    private static func tag(like tag: RemoteDatabase.Tag, _ value: [UInt8]) -> RemoteDatabase.Tag {
        switch tag {
        case .hash: .hash(value)
        case .firmware: .firmware(value)
        case .absent: .absent
        }
    }
}
