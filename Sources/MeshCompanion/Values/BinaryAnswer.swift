// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// What a node answers to a ``BinaryRequest``: the payload of BINARY_RESPONSE. The bytes do not tell which request they
/// answer, and may have zeros at the end that fill the last cipher block.
public enum BinaryAnswer: Sendable, Hashable {
    case status(NodeStatus)
    case telemetry([CayenneLPP.Reading])
    /// With the node's clock, seconds since 1970.
    case minMaxAverage(clock: UInt32, [SensorRange])
    case accessList([AccessEntry])
    /// With how many there are; the rows are those asked for, as many as fit.
    case neighbours(total: UInt16, [Neighbour])
    case owner(OwnerInfo)
    /// The answer to a request without a known answer.
    case unknown(Data)

    /// The extremes and the mean of a sensor's values, as numbers of ``CayenneLPP/Kind/rangeComponents``.
    public struct SensorRange: Sendable, Hashable {
        public var channel: UInt8
        public var kind: CayenneLPP.Kind
        public var minimum: [Int64]
        public var maximum: [Int64]
        public var average: [Int64]

        public init(
            channel: UInt8, kind: CayenneLPP.Kind, minimum: [Int64], maximum: [Int64], average: [Int64]
        ) {
            self.channel = channel
            self.kind = kind
            self.minimum = minimum
            self.maximum = maximum
            self.average = average
        }
    }

    /// Somebody who may do something on a node.
    public struct AccessEntry: Sendable, Hashable {
        public var node: KeyPrefix
        public var permissions: UInt8

        public init(node: KeyPrefix, permissions: UInt8) {
            self.node = node
            self.permissions = permissions
        }
    }

    /// A repeater that a repeater hears.
    public struct Neighbour: Sendable, Hashable {
        /// As many bytes of the key as were asked for.
        public var keyPrefix: Data
        public var secondsAgo: UInt32
        public var signalToNoise: SignalToNoise

        public init(keyPrefix: Data, secondsAgo: UInt32, signalToNoise: SignalToNoise) {
            self.keyPrefix = keyPrefix
            self.secondsAgo = secondsAgo
            self.signalToNoise = signalToNoise
        }
    }

    /// Whose node it is.
    public struct OwnerInfo: Sendable, Hashable {
        public var firmware: String
        public var nodeName: String
        public var owner: String

        public init(firmware: String, nodeName: String, owner: String) {
            self.firmware = firmware
            self.nodeName = nodeName
            self.owner = owner
        }
    }

    /// Decodes ``BinaryResponse/payload``.
    public init(decoding payload: Data, to request: BinaryRequest) throws(DecodeError) {
        switch request {
        case .status: self = .status(try WireFieldReader.decode(payload, as: NodeStatus.empty))
        case .telemetry: self = .telemetry(try CayenneLPP.decode(payload))
        case .minMaxAverage, .accessList, .neighbours, .owner:
            self = try ByteReader.decode([UInt8](payload)) { reader throws(DecodeError) in
                switch request {
                case .minMaxAverage: try Self.minMaxAverage(&reader)
                case .accessList: try Self.accessList(&reader)
                case .neighbours(let request): try Self.neighbours(&reader, Int(min(request.prefixLength, 32)))
                default: Self.owner(&reader)
                }
            }
        case .keepAlive, .unknown: self = .unknown(payload)
        }
    }

    private static func minMaxAverage(_ reader: inout ByteReader) throws(DecodeError) -> BinaryAnswer {
        let clock = try reader.read(UInt32.self)
        var rows: [SensorRange] = []
        while let channel = reader.next, channel != 0 {
            let (kind, offset) = try CayenneLPP.readHead(&reader)
            let components = kind.rangeComponents
            rows.append(
                SensorRange(
                    channel: channel, kind: kind,
                    minimum: try CayenneLPP.readNumbers(components, of: kind, offset, &reader),
                    maximum: try CayenneLPP.readNumbers(components, &reader),
                    average: try CayenneLPP.readNumbers(components, &reader)))
        }
        return .minMaxAverage(clock: clock, rows)
    }

    /// Rows of seven bytes. Less than a row, or a row of zeros, is the filling of the last block.
    private static func accessList(_ reader: inout ByteReader) throws(DecodeError) -> BinaryAnswer {
        var rows: [AccessEntry] = []
        while reader.remaining >= KeyPrefix.length + 1 {
            let node = KeyPrefix(try reader.readBytes(KeyPrefix.length)) ?? .zero
            let permissions = try reader.read(UInt8.self)
            if node != .zero { rows.append(AccessEntry(node: node, permissions: permissions)) }
        }
        return .accessList(rows)
    }

    private static func neighbours(_ reader: inout ByteReader, _ prefixLength: Int) throws(DecodeError) -> BinaryAnswer
    {
        let total = try reader.read(UInt16.self)
        let count = try reader.read(UInt16.self)
        var rows: [Neighbour] = []
        for _ in 0..<count {
            rows.append(
                Neighbour(
                    keyPrefix: Data(try reader.readBuffer(prefixLength)), secondsAgo: try reader.read(UInt32.self),
                    signalToNoise: SignalToNoise(quarters: try reader.read(Int8.self))))
        }
        return .neighbours(total: total, rows)
    }

    /// `firmware\nname\nowner`; the owner may have lines of its own.
    private static func owner(_ reader: inout ByteReader) -> BinaryAnswer {
        let lines = reader.readText().parts(separatedBy: "\n", maximum: 3)
        func line(_ index: Int) -> String { index < lines.count ? lines[index] : "" }
        return .owner(OwnerInfo(firmware: line(0), nodeName: line(1), owner: line(2)))
    }
}

extension BinaryAnswer {
    /// The fields.
    public var json: JSONValue {
        switch self {
        case .status(let status): return .object(JSONFieldWriter.members(of: status, showsSecrets: false))
        case .telemetry(let readings):
            return ["telemetry": .array(readings.map(\.json))]
        case .minMaxAverage(let clock, let rows):
            let ranges = rows.map { row in
                CayenneLPP.row(
                    row.channel, row.kind,
                    [
                        "minimum": CayenneLPP.value(row.kind.rangeComponents, row.minimum),
                        "maximum": CayenneLPP.value(row.kind.rangeComponents, row.maximum),
                        "average": CayenneLPP.value(row.kind.rangeComponents, row.average),
                    ])
            }
            return ["clock": .int(Int64(clock)), "ranges": .array(ranges)]
        case .accessList(let rows):
            let entries = rows.map { row -> JSONValue in
                ["node": .string("\(row.node)"), "permissions": .int(Int64(row.permissions))]
            }
            return ["access_list": .array(entries)]
        case .neighbours(let total, let rows):
            let neighbours = rows.map { row -> JSONValue in
                [
                    "node": .string(HexText.text(row.keyPrefix)), "seconds_ago": .int(Int64(row.secondsAgo)),
                    "snr_db": .double(row.signalToNoise.decibels),
                ]
            }
            return ["total": .int(Int64(total)), "neighbours": .array(neighbours)]
        case .owner(let info):
            return [
                "firmware": .string(info.firmware), "node_name": .string(info.nodeName), "owner": .string(info.owner),
            ]
        case .unknown(let bytes): return ["bytes": .string(HexText.text(bytes))]
        }
    }
}
