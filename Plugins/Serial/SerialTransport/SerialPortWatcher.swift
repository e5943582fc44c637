// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// Tells when serial ports come and go: one for all transports of a module, so that whoever ends the module can end the
/// watching of transports that are kept without a link.
///
/// Nothing is polled: the kernel tells of changes in the folder where the port would appear, or in the nearest one that
/// exists; udev removes `/dev/serial/by-id` with the last port in it.
///
/// Sendable because of one invariant: all of it is touched on the loop's thread only.
public final class SerialPortWatcher: @unchecked Sendable {
    /// One who waits. Dropping it ends the wait; on the loop's thread.
    final class Wait {
        fileprivate let look: () -> Void
        fileprivate let folder: () -> String
        fileprivate var watch: LoopFolderWatch?
        fileprivate var watched = ""
        fileprivate var timer: LoopTimer?

        fileprivate init(folder: @escaping () -> String, look: @escaping () -> Void) {
            self.folder = folder
            self.look = look
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
        for entry in entries { entry.wait.map(end) }
        entries = []
    }

    /// Calls `body` once the port is there and can be opened.
    func whenUsable(_ choice: SerialChoice, _ body: @escaping () -> Void) -> Wait {
        var isTold = false
        return begin(folder: { [catalogue] in catalogue.folderToWatch(for: choice) }) { [catalogue] in
            guard !isTold, catalogue.isUsable(choice) else { return }
            isTold = true
            body()
        }
    }

    /// Calls `body` some moments from now, and after each change of the ports.
    func atEachChange(_ body: @escaping () -> Void) -> Wait {
        begin(folder: { [catalogue] in catalogue.root + "/dev" }, look: body)
    }

    private func begin(folder: @escaping () -> String, look: @escaping () -> Void) -> Wait {
        let wait = Wait(folder: folder, look: look)
        guard !isClosed else { return wait }
        entries.removeAll { $0.wait == nil }
        entries.append(Entry(wait: wait))
        wait.timer = LoopTimer(loop)
        watch(wait)
        schedule(wait, Self.firstLook)
        return wait
    }

    private func end(_ wait: Wait) {
        wait.timer = nil
        wait.watch = nil
    }

    private func schedule(_ wait: Wait, _ delay: Duration) {
        guard let timer = wait.timer, !timer.isScheduled else { return }
        timer.schedule(after: delay) { [weak self, weak wait] in
            guard let self, let wait else { return }
            wait.look()
            watch(wait)
        }
    }

    /// Where the kernel's limit of watches is reached, the first look is the last; the host tries now and then all the same.
    private func watch(_ wait: Wait) {
        let folder = wait.folder()
        guard wait.timer != nil, folder != wait.watched || wait.watch == nil else { return }
        wait.watched = folder
        wait.watch = try? LoopFolderWatch(loop, folder: folder) { [weak self, weak wait] in
            guard let self, let wait else { return }
            // The folder itself may be gone, and another of its name be there later.
            if wait.folder() != wait.watched { wait.watched = "" }
            schedule(wait, Self.settling)
        }
    }
}
