// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Gathers what a consumer has taken, so that not every frame takes the inbox's lock. Used on the loop only.
final class FrameCredits {
    /// So much is given back at once: little beside the half of the limits that lets a stalled module go on.
    private let portion: (frames: Int, bytes: Int)
    private var taken = (frames: 0, bytes: 0)

    init(_ limits: InstanceInbox.Limits) {
        portion = (max(1, limits.frames / 16), max(1, limits.bytes / 16))
    }

    /// Counts one frame; what to give back now, if it is enough.
    func add(_ bytes: Int) -> (frames: Int, bytes: Int)? {
        taken.frames += 1
        taken.bytes += bytes
        guard taken.frames >= portion.frames || taken.bytes >= portion.bytes else { return nil }
        defer { taken = (0, 0) }
        return taken
    }
}
