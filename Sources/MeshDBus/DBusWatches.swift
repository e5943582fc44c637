// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import MeshLoop

/// The watches of one libdbus connection as polls of the loop.
///
/// libdbus has one watch for reading and one for writing, both on the same descriptor, and switches them on and off as
/// it has something to write; libuv allows one poll for each descriptor. So there is one poll for each descriptor,
/// which waits for the sum of what its enabled watches want, and hands what came to each of them. While nothing is
/// written that is the reading alone, and an idle connection makes no wake-ups.
///
/// Used on the loop's thread only, as libdbus calls back within calls of ours.
final class DBusWatches {
    private final class Descriptor {
        var watches: [OpaquePointer] = []
        /// What the poll waits for.
        var events: LoopPoll.Events = []
        let poll: LoopPoll

        init(_ poll: LoopPoll) {
            self.poll = poll
        }
    }

    private let loop: EventLoop
    private var descriptors: [Int32: Descriptor] = [:]
    /// Reads a descriptor that has something in libdbus's place; false where that is libdbus's.
    var reader: ((Int32) -> Bool)?
    /// Whether nobody waits for something to read.
    private(set) var isReadingPaused = false

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    /// Takes the watches that are there, and all that come. False: no memory.
    func attach(to connection: OpaquePointer) -> Bool {
        dbus_connection_set_watch_functions(
            connection,
            { watch, data in
                guard let watch, let data else { return 0 }
                return DBusWatches.of(data).add(watch) ? 1 : 0
            },
            { watch, data in
                if let watch, let data { DBusWatches.of(data).remove(watch) }
            },
            { watch, data in
                if let watch, let data { DBusWatches.of(data).toggled(watch) }
            }, Unmanaged.passUnretained(self).toOpaque(), nil) != 0
    }

    private static func of(_ data: UnsafeMutableRawPointer) -> DBusWatches {
        Unmanaged<DBusWatches>.fromOpaque(data).takeUnretainedValue()
    }

    private func add(_ watch: OpaquePointer) -> Bool {
        let number = dbus_watch_get_unix_fd(watch)
        if descriptors[number] == nil {
            let poll = try? LoopPoll(loop, descriptor: number) { [weak self] events, error in
                self?.happened(number, events, error)
            }
            guard let poll else { return false }
            descriptors[number] = Descriptor(poll)
        }
        descriptors[number]?.watches.append(watch)
        update(number)
        return true
    }

    private func remove(_ watch: OpaquePointer) {
        let number = dbus_watch_get_unix_fd(watch)
        descriptors[number]?.watches.removeAll { $0 == watch }
        update(number)
    }

    private func toggled(_ watch: OpaquePointer) {
        update(dbus_watch_get_unix_fd(watch))
    }

    /// Waits for what the watches want now. libdbus closes the descriptor once its watches are removed, so the poll must
    /// be gone by then.
    private func update(_ number: Int32) {
        guard let descriptor = descriptors[number] else { return }
        guard !descriptor.watches.isEmpty else {
            descriptors[number] = nil
            return
        }
        var events: LoopPoll.Events = []
        for watch in descriptor.watches where dbus_watch_get_enabled(watch) != 0 {
            let flags = dbus_watch_get_flags(watch)
            if flags & DBUS_WATCH_READABLE.rawValue != 0, !isReadingPaused { events.insert(.readable) }
            if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { events.insert(.writable) }
        }
        if events == descriptor.events { return }
        descriptor.events = events
        descriptor.poll.wait(for: events)
    }

    private func happened(_ number: Int32, _ events: LoopPoll.Events, _ error: LoopError?) {
        guard let descriptor = descriptors[number] else { return }
        // libuv stops a poll that has failed.
        if error != nil { descriptor.events = [] }
        var came: UInt32 = 0
        if events.contains(.readable) { came |= DBUS_WATCH_READABLE.rawValue }
        if events.contains(.writable) { came |= DBUS_WATCH_WRITABLE.rawValue }
        let trouble = DBUS_WATCH_ERROR.rawValue | DBUS_WATCH_HANGUP.rawValue
        let isRead = (error != nil || events.contains(.readable)) && reader?(number) == true
        for watch in descriptor.watches {
            // Handling one watch may remove or disable another.
            guard descriptor.watches.contains(watch), dbus_watch_get_enabled(watch) != 0 else { continue }
            let wanted = dbus_watch_get_flags(watch)
            if isRead, wanted & DBUS_WATCH_READABLE.rawValue != 0 { continue }
            // Reading and writing find out what the trouble is, after what has still arrived has been read.
            let flags = error == nil ? came & wanted : wanted | trouble
            // False means no memory: the poll reports the same again.
            if flags != 0 { dbus_watch_handle(watch, flags) }
        }
        if error != nil { update(number) }
    }

    /// From now on, or no longer, nobody waits for something to read.
    func pauseReading(_ isPaused: Bool) {
        guard isPaused != isReadingPaused else { return }
        isReadingPaused = isPaused
        for number in descriptors.keys { update(number) }
    }
}
