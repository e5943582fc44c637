// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// Which links are wanted, on disk: `intents.json` in the state directory,
/// `{"v": 1, "devices": {"roof": {"intent": "disconnect"}}}`.
///
/// Only what somebody asked for is stored. Entries of devices that are not configured are kept, and so are entries that
/// another version wrote.
public actor IntentStore {
    private static let version: Int64 = 1

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Nil: nothing is stored.
    private let file: StateFile?
    private var entries: [String: JSONValue]
    /// Rises with each change of the entries.
    private var revision: UInt64 = 0
    /// Those who wait until their revision is durable.
    private var waiters: [(revision: UInt64, continuation: CheckedContinuation<MeshError?, Never>)] = []
    private var isWriting = false

    /// A store without a file, for a program that decides at each start what it wants: intents hold as long as it runs.
    public init(inMemory loop: EventLoop) {
        self.init(loop: loop, file: nil, entries: [:])
    }

    private init(loop: EventLoop, file: StateFile?, entries: [String: JSONValue]) {
        self.loop = loop
        self.file = file
        self.entries = entries
    }

    /// Reads the store. A file that cannot be understood is kept as `intents.json.corrupt`, and the store starts empty.
    /// Throws ``MeshError/Code-swift.struct/storageFailed`` when the file cannot be read at all: starting with the wrong
    /// intents would connect what somebody disconnected.
    public static func open(
        directory: String, loop: EventLoop, log: LogSink
    ) async throws(MeshError) -> IntentStore {
        let file = StateFile(directory: directory, name: "intents.json")
        let entries = try await loop.blocking { () throws(MeshError) -> [String: JSONValue]? in
            guard let contents = try file.read() else { return [:] }
            if let json = try? JSONValue(parsing: contents), json["v"] == .int(version),
                let devices = json["devices"]?.objectValue
            {
                return devices
            }
            try file.setAside()
            return nil
        }
        if entries == nil {
            log(
                .error, "the stored intents cannot be understood; all devices start with their configured intent",
                [("path", file.path), ("kept_as", file.corruptPath)])
        }
        return IntentStore(loop: loop, file: file, entries: entries ?? [:])
    }

    /// What was last asked for a device; nil if nothing was.
    public func intent(of device: String) -> StoredIntent? {
        entries[device].flatMap { StoredIntent(json: $0) }
    }

    /// Stores what was asked. Durable when it returns. Changes that come while one is being written share the next write.
    /// Throws ``MeshError/Code-swift.struct/storageFailed``; the change then holds until a restart.
    public func set(_ intent: StoredIntent, for device: String) async throws(MeshError) {
        let entry = intent.json
        if entries[device] != entry {
            entries[device] = entry
            revision += 1
        } else if !isWriting, waiters.isEmpty, isDurable {
            return
        }
        let wanted = revision
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<MeshError?, Never>) in
            // The writing may have ended, with this change or without it, since the look above.
            if durableRevision >= wanted { return continuation.resume(returning: nil) }
            waiters.append((wanted, continuation))
            if !isWriting { startWriting() }
        }
        if let failure { throw failure.adding(device: device) }
    }

    private var durableRevision: UInt64 = 0
    private var isDurable: Bool { durableRevision == revision }

    /// Writes until nobody waits. One task at a time; it ends with the last waiter, so nobody has to stop it.
    private func startWriting() {
        isWriting = true
        Task(executorPreference: loop.taskExecutor) { await self.writeWhileWaited() }
    }

    private func writeWhileWaited() async {
        repeat { await write() } while !waiters.isEmpty
        isWriting = false
    }

    private func write() async {
        let written = revision
        let json: JSONValue = ["v": .int(Self.version), "devices": .object(entries)]
        var contents = json.serialized(pretty: true)
        contents.append(UInt8(ascii: "\n"))
        let failure = await loop.blocking { [file, contents] () -> MeshError? in
            do throws(MeshError) {
                try file?.write(contents)
                return nil
            } catch {
                return error
            }
        }
        if failure == nil { durableRevision = written }
        let answered = waiters.filter { $0.revision <= written }
        waiters.removeAll { $0.revision <= written }
        for waiter in answered { waiter.continuation.resume(returning: failure) }
    }
}
