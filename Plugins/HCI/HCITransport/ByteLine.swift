// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// A line that carries H4 as a stream of bytes.
final class ByteLine: HCILine {
    private let stream: LoopStream
    private var decoder = H4Decoder()
    private var onPackets: (([HCIPacket]) -> Void)?
    private var onEnd: ((MeshError?) -> Void)?

    /// Takes over an open connection.
    init(_ stream: LoopStream) {
        self.stream = stream
    }

    func startReading(_ onPackets: @escaping ([HCIPacket]) -> Void, onEnd: @escaping (MeshError?) -> Void) {
        self.onPackets = onPackets
        self.onEnd = onEnd
        stream.startReading({ [weak self] in self?.received($0) }, onEnd: { [weak self] in self?.ended($0) })
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        // Collected first: what a packet leads to may close the line.
        var packets: [HCIPacket] = []
        let synchrony = decoder.bytesReceived(bytes.bytes) { kind, packet in
            packets.append(HCIPacket(kind: kind, bytes: packet.withUnsafeBytes { Array($0) }))
        }
        if !packets.isEmpty { onPackets?(packets) }
        if case .lost(let finding) = synchrony {
            end(MeshError(.linkClosed, "the line to the controller is out of step: \(finding)"))
        }
    }

    private func ended(_ error: LoopError?) {
        end(error.map { MeshError(.linkClosed, "the line to the controller has failed: \($0)", cause: $0) })
    }

    private func end(_ error: MeshError?) {
        let onEnd = onEnd
        self.onEnd = nil
        onPackets = nil
        stream.close()
        onEnd?(error)
    }

    func send(_ packets: [HCIPacket]) throws(MeshError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(packets.reduce(0) { $0 + $1.bytes.count + 1 })
        for packet in packets {
            bytes.append(packet.kind.rawValue)
            bytes.append(contentsOf: packet.bytes)
        }
        guard stream.pendingWriteBytes + bytes.count <= HCILineLimits.waitingBytes else { throw .lineStuck }
        // A write that fails is told as the end of reading.
        bytes.withUnsafeBytes { stream.write($0) }
    }

    func close() async {
        onPackets = nil
        onEnd = nil
        stream.close()
    }
}
