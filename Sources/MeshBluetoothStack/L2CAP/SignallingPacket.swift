// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A command of LE signalling: one in each frame (Core Specification 5.4, Vol 3 Part A §4).
public struct SignallingPacket: Sendable, Hashable {
    public enum Content: Sendable, Hashable {
        /// §4.1
        case reject(Reason, data: [UInt8])
        /// §4.6
        case disconnectionRequest(destination: UInt16, source: UInt16)
        /// §4.20
        case parameterUpdateRequest(ConnectionParameters)
        /// §4.21; not accepted: the central refuses.
        case parameterUpdateResponse(isAccepted: Bool)
        /// §4.22: a peer wants a channel of its own.
        case connectionRequest
        /// §4.25
        case enhancedConnectionRequest
        /// Another request, or a response to one that was never made.
        case other(code: UInt8)
    }

    /// Why a command is rejected (§4.1, table 4.4).
    public enum Reason: UInt16, Sendable, Hashable {
        case notUnderstood = 0
        case tooLong = 1
        case invalidChannel = 2
    }

    /// Pairs a response with its request; never 0.
    public var identifier: UInt8
    public var content: Content

    public init(identifier: UInt8, content: Content) {
        self.identifier = identifier
        self.content = content
    }

    /// As the payload of a frame. Commands that this host never sends are sent without content.
    public var bytes: [UInt8] {
        var data = ByteWriter(capacity: 8)
        let code: UInt8
        switch content {
        case .reject(let reason, let detail):
            code = 0x01
            data.write(reason.rawValue)
            data.write(contentsOf: detail)
        case .disconnectionRequest(let destination, let source):
            code = 0x06
            data.write(destination)
            data.write(source)
        case .parameterUpdateRequest(let parameters):
            code = 0x12
            data.write(parameters.minimumInterval)
            data.write(parameters.maximumInterval)
            data.write(parameters.latency)
            data.write(parameters.supervisionTimeout)
        case .parameterUpdateResponse(let isAccepted):
            code = 0x13
            data.write(isAccepted ? 0 as UInt16 : 1)
        case .connectionRequest: code = 0x14
        case .enhancedConnectionRequest: code = 0x17
        case .other(let other): code = other
        }
        return Self.packet(code, identifier, data.bytes)
    }

    static func packet(_ code: UInt8, _ identifier: UInt8, _ data: [UInt8]) -> [UInt8] {
        var writer = ByteWriter(capacity: 4 + data.count)
        writer.write(code)
        writer.write(identifier)
        writer.write(UInt16(data.count))
        writer.write(contentsOf: data)
        return writer.bytes
    }

    /// Reads the payload of a frame.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> SignallingPacket {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let code = try reader.read(UInt8.self)
            let identifier = try reader.read(UInt8.self)
            guard identifier != 0 else { throw DecodeError(.invalidField("identifier"), offset: 1) }
            let count = Int(try reader.read(UInt16.self))
            guard reader.remaining >= count else {
                throw DecodeError(.truncated(missing: count - reader.remaining), offset: reader.offset)
            }
            guard reader.remaining == count else {
                throw DecodeError(.trailing(count: reader.remaining - count), offset: 4 + count)
            }
            return SignallingPacket(identifier: identifier, content: try content(code, &reader))
        }
    }

    private static func content(_ code: UInt8, _ reader: inout ByteReader) throws(DecodeError) -> Content {
        switch code {
        case 0x01:
            let start = reader.offset
            guard let reason = Reason(rawValue: try reader.read()) else {
                throw DecodeError(.invalidField("reason"), offset: start)
            }
            return .reject(reason, data: reader.readRest())
        case 0x06: return .disconnectionRequest(destination: try reader.read(), source: try reader.read())
        case 0x12:
            return .parameterUpdateRequest(
                ConnectionParameters(
                    minimumInterval: try reader.read(), maximumInterval: try reader.read(), latency: try reader.read(),
                    supervisionTimeout: try reader.read()))
        case 0x13: return .parameterUpdateResponse(isAccepted: try reader.read(UInt16.self) == 0)
        case 0x14: return .connectionRequest
        case 0x17: return .enhancedConnectionRequest
        default: return .other(code: code)
        }
    }
}
