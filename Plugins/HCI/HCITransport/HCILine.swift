// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI

/// A packet between host and controller.
struct HCIPacket: Sendable, Equatable {
    var kind: HCIPacketKind
    /// Without H4's indicator.
    var bytes: [UInt8]
}

/// An open line to a controller: packets go in and come out, whatever is below. Used on the loop's thread only.
///
/// Two kinds: ByteLine for what has to be cut into packets, PacketLine for sockets that keep their bounds.
protocol HCILine: AnyObject {
    /// Hands on what the controller says, packet by packet without H4's indicator, in the bytes it was read into: they are
    /// valid during the call only. `onPause` runs behind the packets that came together, `onEnd` once, when nothing more
    /// will come, with the reason where there is one. None of them runs after ``close()`` was called, which any of them may
    /// do.
    func startReading(
        _ onPacket: @escaping (HCIPacketKind, RawSpan) -> Void, onPause: @escaping () -> Void,
        onEnd: @escaping (MeshError?) -> Void)

    /// Sends packets in their order, as fast as the line takes them. Throws when it does not work any more, or has taken
    /// nothing for so long that ``HCILineLimits/waitingBytes`` wait: it is of no use then.
    func send(_ packets: [HCIPacket]) throws(MeshError)

    /// Drops what waits, and returns when the controller may be opened anew.
    func close() async
}

enum HCILineLimits {
    /// How much may wait for a line that takes nothing. Credits keep honest controllers far below: 64 buffers of 1,021
    /// bytes are a sixteenth of it.
    static let waitingBytes = 1 << 20
}

extension MeshError {
    /// The line takes nothing any more.
    static let lineStuck = MeshError(
        .linkClosed, "the controller has taken nothing for too long; \(HCILineLimits.waitingBytes) bytes wait for it")
}
