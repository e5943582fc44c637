// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A command to the controller (Core Specification 5.4, Vol 4 Part E §5.4.1). The commands that this host uses are made
/// by the functions in the extensions.
public struct HCICommand: Sendable, Hashable {
    public let opcode: HCIOpcode
    /// At most 255 bytes.
    public let parameters: [UInt8]

    public init(_ opcode: HCIOpcode, parameters: [UInt8] = []) {
        precondition(parameters.count <= 255)
        self.opcode = opcode
        self.parameters = parameters
    }

    /// Writes the parameters in the order of the specification.
    init(_ opcode: HCIOpcode, _ write: (inout ByteWriter) -> Void) {
        var writer = ByteWriter(capacity: 32)
        write(&writer)
        self.init(opcode, parameters: writer.bytes)
    }

    /// The packet without H4's indicator.
    public var packet: [UInt8] {
        var writer = ByteWriter(capacity: 3 + parameters.count)
        writer.write(opcode.rawValue)
        writer.write(UInt8(parameters.count))
        writer.write(contentsOf: parameters)
        return writer.bytes
    }

    /// Reads a packet without H4's indicator, for captures and tests.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> HCICommand {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let opcode = HCIOpcode(rawValue: try reader.read())
            let count = Int(try reader.read(UInt8.self))
            let parameters = try reader.readBytes(count)
            try reader.expectEnd()
            return HCICommand(opcode, parameters: parameters)
        }
    }
}
