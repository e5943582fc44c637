// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// Tells when serial ports come and go: one for all transports of a module, so that whoever ends the module can end the
/// watching of transports that are kept without a link.
///
/// Nothing is polled: the kernel tells of changes in the folder where the port would appear, or in the nearest one that
/// exists, and in those of the links that lead there; udev removes `/dev/serial/by-id` with the last port in it.
///
/// Sendable because of one invariant: all of it is touched on the loop's thread only.
public final class SerialPortWatcher: @unchecked Sendable {
    /// One who waits. Dropping it ends the wait; on the loop's thread.
    final class Wait {
        /// The folders whose changes can bring what is waited for.
        fileprivate let folders: () -> [String]
        /// Looks at what is there; whether to go on waiting.
        fileprivate let look: () -> Bool
        fileprivate var watches: [LoopFolderWatch] = []
        /// Nil once the wait is over.
        fileprivate var timer: LoopTimer?

        fileprivate init(folders: @escaping () -> [String], look: @escaping () -> Bool) {
            self.folders = folders
            self.look = look
        }

        fileprivate func end() {
            timer = nil
            watches = []
        }
    }

    private struct Entry {
        weak var wait: Wait?
    }

    /// Between a change and the look at what it was: udev makes a port, sets its rights and adds links to it, all in a few
    /// milliseconds.
    private static let settling = Duration.milliseconds(100)
    /// Before the first look: who waits has just found that the port is gone, and what it reports of that comes first.
    private static let firstLook = Duration.milliseconds(300)
    /// Between two looks where the kernel's limit of watches is reached.
    private static let unwatchedLook = Duration.seconds(2)

    private let loop: EventLoop
    let catalogue: SerialPortCatalogue
    private var entries: [Entry] = []
    private var isClosed = false

    /// Watches the ports of this machine.
    public convenience init(loop: EventLoop) {
        self.init(loop: loop, catalogue: SerialPortCatalogue())
    }

    init(loop: EventLoop, catalogue: SerialPortCatalogue) {
        self.loop = loop
        self.catalogue = catalogue
    }

    /// Ends all waiting, for good.
    public func close() {
        isClosed = true
        for entry in entries { entry.wait?.end() }
        entries = []
    }

    /// Calls `body` once, when the port is there and can be opened.
    func whenUsable(_ choice: SerialChoice, _ body: @escaping () -> Void) -> Wait {
        begin(folders: { [catalogue] in catalogue.foldersToWatch(for: choice) }) { [catalogue] in
            guard catalogue.isUsable(choice) else { return true }
            body()
            return false
        }
    }

    /// Calls `body` some moments from now, and after each change of the ports.
    func atEachChange(_ body: @escaping () -> Void) -> Wait {
        begin(folders: { [catalogue] in [catalogue.root + "/dev"] }) {
            body()
            return true
        }
    }

    private func begin(folders: @escaping () -> [String], look: @escaping () -> Bool) -> Wait {
        let wait = Wait(folders: folders, look: look)
        guard !isClosed else { return wait }
        entries.removeAll { $0.wait == nil }
        entries.append(Entry(wait: wait))
        wait.timer = LoopTimer(loop)
        schedule(wait, Self.firstLook)
        return wait
    }

    /// A look that is to come soon anyway is not put off.
    private func schedule(_ wait: Wait, _ delay: Duration) {
        guard let timer = wait.timer, !timer.isScheduled else { return }
        timer.schedule(after: delay) { [weak self, weak wait] in
            if let self, let wait { look(wait) }
        }
    }

    /// Watches first, then looks, so that nothing is missed in between. The watch is a new one each time: the folder may have
    /// gone, and another of its name have come.
    private func look(_ wait: Wait) {
        var folders: [String]
        repeat {
            folders = wait.folders()
            wait.watches = folders.compactMap { folder in
                try? LoopFolderWatch(loop, folder: folder) { [weak self, weak wait] in
                    if let self, let wait { schedule(wait, Self.settling) }
                }
            }
        } while wait.watches.count == folders.count && wait.folders() != folders
        guard wait.look() else { return wait.end() }
        if wait.watches.count < folders.count { schedule(wait, Self.unwatchedLook) }
    }
}
