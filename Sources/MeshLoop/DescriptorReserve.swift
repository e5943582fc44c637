// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Descriptors that are kept back for the time when the process, or the machine, has no more of them. Used on the loop's
/// thread only.
///
/// A connection that cannot be accepted for want of a descriptor stays where it is, and so does the event that tells of it: a
/// loop that listens would turn for ever. With one descriptor given up, it can be accepted and closed: its client sees an
/// end. What must be served all the same, such as the operator who wants to know what is wrong, keeps that descriptor.
public final class DescriptorReserve {
    /// How many are kept: one to turn away with, the others to serve with.
    static let size = 6
    /// So many must be free beside the reserve before want counts as over.
    private static let headroom = 16
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(30)

    /// What is told.
    public enum Change: Sendable {
        /// There are no descriptors any more; what failed.
        case exhausted(LoopError)
        /// There are again. So many connections were closed unserved meanwhile.
        case relieved(turnedAway: UInt64)
    }

    private let openSpare: () -> Int32?
    private var descriptors: [Int32] = []
    private unowned let loop: EventLoop
    /// Nil while nothing is wanting.
    private var timer: LoopTimer?
    private var delay = firstDelay
    private var turnedAwayNow: UInt64 = 0
    /// Whether there was a want of descriptors when that was last looked at.
    public private(set) var isExhausted = false
    /// Connections that were closed unserved, ever.
    public private(set) var turnedAway: UInt64 = 0
    /// Told when want begins and when it ends.
    public var onChange: ((Change) -> Void)?

    /// `openSpare` gives a descriptor that is good for nothing, or nil when there is none.
    init(_ loop: EventLoop, openSpare: @escaping () -> Int32? = DescriptorReserve.openNothing) {
        self.loop = loop
        self.openSpare = openSpare
        refill()
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    /// How many are in reserve, filled up first.
    var count: Int {
        refill()
        return descriptors.count
    }

    /// Does what has failed for want of a descriptor once more, with one of the reserve given up for it; nil when there is none.
    /// What is below zero has needed none, and it goes back.
    func withOneMore(_ body: () -> Int32) -> Int32? {
        guard let spare = descriptors.popLast() else { return nil }
        close(spare)
        let result = body()
        if result < 0 { refill() }
        return result
    }

    /// A connection was closed unserved.
    func hasTurnedAway() {
        turnedAway += 1
        turnedAwayNow += 1
        refill()
    }

    /// Looks whether there are descriptors; for what has failed elsewhere, perhaps for want of one.
    public func check() {
        if !hasHeadroom { wanted(EMFILE, "open a descriptor") }
    }

    /// Something failed for want of a descriptor.
    func wanted(_ error: Int32, _ operation: String) {
        guard !isExhausted else { return }
        isExhausted = true
        delay = Self.firstDelay
        turnedAwayNow = 0
        watch()
        onChange?(.exhausted(LoopError(status: -error, operation: operation)))
    }

    private func watch() {
        let timer = timer ?? LoopTimer(loop)
        self.timer = timer
        timer.schedule(after: delay) { [unowned self] in lookAgain() }
    }

    private func lookAgain() {
        guard hasHeadroom else {
            delay = min(delay * 2, Self.longestDelay)
            return watch()
        }
        isExhausted = false
        timer = nil
        onChange?(.relieved(turnedAway: turnedAwayNow))
    }

    /// Fills it up as far as that is possible now.
    func refill() {
        while descriptors.count < Self.size, let descriptor = openSpare() { descriptors.append(descriptor) }
    }

    /// Whether the reserve is full and there are some beside it.
    private var hasHeadroom: Bool {
        refill()
        guard descriptors.count == Self.size else { return false }
        var taken: [Int32] = []
        defer { for descriptor in taken { close(descriptor) } }
        while taken.count < Self.headroom {
            guard let descriptor = openSpare() else { return false }
            taken.append(descriptor)
        }
        return true
    }

    private static func openNothing() -> Int32? {
        let descriptor = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
        return descriptor >= 0 ? descriptor : nil
    }
}

extension EventLoop {
    /// The descriptors that this process keeps back, made when they are first asked for and kept as long as somebody holds
    /// them: every listener does.
    public var descriptorReserve: DescriptorReserve {
        assert(isOnLoop)
        if let reserve { return reserve }
        let reserve = DescriptorReserve(self)
        self.reserve = reserve
        return reserve
    }
}
