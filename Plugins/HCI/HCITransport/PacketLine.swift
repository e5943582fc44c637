// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// A line on a socket that keeps the bounds of packets: each read and each write is one packet with its H4 indicator.
///
/// What the socket does not take at once waits here, in its order, until there is room.
final class PacketLine: HCILine {
    /// How many packets are read before others on the loop have their turn.
    private static let batch = 64
    /// The longest packet: 65,535 bytes of data, their header and the indicator.
    private static let longest = 5 + 0xFFFF

    private let loop: EventLoop
    private let descriptor: Int32
    private let giveBack: @Sendable () -> Void
    private let buffer: UnsafeMutableRawBufferPointer
    /// Nil once closed, and before reading has begun.
    private var poll: LoopPoll?
    private var isClosed = false
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    private var waitsForRoom = false
    private var onPacket: ((HCIPacketKind, RawSpan) -> Void)?
    private var onPause: (() -> Void)?
    private var onEnd: ((MeshError?) -> Void)?

    /// Takes over a socket; `giveBack` closes it, and may block.
    init(_ loop: EventLoop, descriptor: Int32, giveBack: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.descriptor = descriptor
        self.giveBack = giveBack
        buffer = .allocate(byteCount: Self.longest, alignment: 1)
    }

    deinit {
        assert(isClosed, "close() gives the adapter back")
        buffer.deallocate()
    }

    func startReading(
        _ onPacket: @escaping (HCIPacketKind, RawSpan) -> Void, onPause: @escaping () -> Void,
        onEnd: @escaping (MeshError?) -> Void
    ) {
        self.onPacket = onPacket
        self.onPause = onPause
        self.onEnd = onEnd
        do throws(LoopError) {
            poll = try LoopPoll(loop, descriptor: descriptor) { [weak self] in self?.happened($0, $1) }
            poll?.wait(for: .readable)
        } catch {
            loop.performLater { [weak self] in self?.end(MeshError(.resourceExhausted, "\(error)", cause: error)) }
        }
    }

    func close() async {
        guard !isClosed else { return }
        isClosed = true
        forgetReader()
        poll = nil
        await loop.blocking { [giveBack] in giveBack() }
    }

    private func happened(_ events: LoopPoll.Events, _ error: LoopError?) {
        if let error {
            return end(MeshError(.linkClosed, "the line to the controller has failed: \(error)", cause: error))
        }
        if events.contains(.writable) {
            do throws(MeshError) { try flush() } catch { return end(error) }
        }
        if events.contains(.readable) { read() }
    }

    private func end(_ error: MeshError?) {
        let onEnd = onEnd
        forgetReader()
        poll = nil
        onEnd?(error)
    }

    private func forgetReader() {
        onPacket = nil
        onPause = nil
        onEnd = nil
    }

    // MARK: Reading

    private func read() {
        var ending: MeshError??
        reading: for _ in 0..<Self.batch {
            // A packet may have led to the end.
            if isClosed { return }
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            switch count {
            case 1...:
                // What has no kind that we know is nothing to us.
                guard let kind = HCIPacketKind(rawValue: buffer[0]) else { continue }
                onPacket?(kind, UnsafeRawBufferPointer(rebasing: buffer[1..<count]).bytes)
            case 0:
                ending = .some(nil)
                break reading
            default:
                if errno == EINTR { continue }
                if errno != EAGAIN { ending = .some(Self.failure("read", errno)) }
                break reading
            }
        }
        onPause?()
        if let ending { end(ending) }
    }

    private static func failure(_ operation: String, _ number: Int32) -> MeshError {
        MeshError(
            .linkClosed, "the line to the controller has failed: \(operation): \(String(cString: strerror(number)))")
    }

    // MARK: Writing

    func send(_ packets: [HCIPacket]) throws(MeshError) {
        guard !isClosed else { return }
        for packet in packets {
            waiting.append([packet.kind.rawValue] + packet.bytes)
            waitingBytes += packet.bytes.count + 1
        }
        try flush()
        guard waitingBytes <= HCILineLimits.waitingBytes else { throw .lineStuck }
    }

    /// Writes until the socket takes no more.
    private func flush() throws(MeshError) {
        var sent = 0
        defer { waiting.removeFirst(sent) }
        while sent < waiting.count {
            let packet = waiting[sent]
            if packet.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { throw Self.failure("write", errno) }
                break
            }
            waitingBytes -= packet.count
            sent += 1
        }
        let waitsForRoom = sent < waiting.count
        guard waitsForRoom != self.waitsForRoom else { return }
        self.waitsForRoom = waitsForRoom
        poll?.wait(for: waitsForRoom ? [.readable, .writable] : .readable)
    }
}
