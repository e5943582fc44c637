// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// The conversation on the control socket: one JSON object a line.
///
///     → {"id":1,"method":"devices","params":{}}
///     ← {"id":1,"result":{…}}                                or {"id":1,"error":{"code":"…","message":"…"}}
///     → {"id":2,"method":"listen","params":{"types":["link"]}}
///     ← {"id":2,"event":{…}}                                  any number of them, until the connection ends
///     → {"id":3,"method":"scan","params":{"for_ms":10000}}
///     ← {"id":3,"event":{…}}                                  any number of them, until `scan.end`
enum ControlProtocol {
    /// The longest line a peer may send, in bytes.
    static let lineLimit = 65_536

    /// A request as it came.
    struct Request {
        var id: JSONValue
        var method: String
        var params: JSONValue

        init(_ line: Data) throws(MeshError) {
            let object = try JSONValue(parsing: line)
            guard let method = object["method"]?.stringValue else {
                throw MeshError(.invalidArgument, "a request needs a \"method\"")
            }
            id = object["id"] ?? .null
            self.method = method
            params = object["params"] ?? [:]
        }

        init(method: String, params: JSONValue) {
            id = 1
            self.method = method
            self.params = params
        }

        var line: Data {
            ControlProtocol.line(["id": id, "method": .string(method), "params": params])
        }
    }

    static func line(_ object: JSONValue) -> Data {
        object.serialized() + Data("\n".utf8)
    }

    static func result(_ value: JSONValue, for id: JSONValue) -> Data {
        line(["id": id, "result": value])
    }

    static func event(_ value: JSONValue, for id: JSONValue) -> Data {
        line(["id": id, "event": value])
    }

    static func failure(_ error: MeshError, for id: JSONValue) -> Data {
        line(["id": id, "error": error.json])
    }
}

extension MeshError {
    /// Code and message, as shown in JSON.
    var json: JSONValue {
        ["code": .string(code.slug), "message": .string(message)]
    }
}

/// Cuts a byte stream into lines.
struct LineSplitter {
    private var partial = Data()

    /// The lines that `bytes` completes, without their ends; nil when a line is longer than the limit.
    mutating func lines(adding bytes: UnsafeRawBufferPointer, limit: Int = ControlProtocol.lineLimit) -> [Data]? {
        var lines: [Data] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            partial.append(contentsOf: rest[..<end])
            lines.append(partial)
            partial = Data()
            rest = rest[(end + 1)...]
        }
        partial.append(contentsOf: rest)
        return partial.count <= limit && lines.allSatisfy { $0.count <= limit } ? lines : nil
    }
}
