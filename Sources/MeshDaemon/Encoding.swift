// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshTransportAPI

/// What `meshhost encode` makes of JSON.
enum Encoding {
    /// The bytes, and the member of the JSON document they go under. An error names the frame, the field, and what to try.
    static func bytes(
        of text: String, _ subject: HostCommand.DecodeSubject
    ) throws(UsageError) -> (member: String, Data) {
        let topic = "encode \(subject.rawValue)"
        let json: JSONValue
        do throws(MeshError) {
            json = try JSONValue(parsing: Data(text.utf8))
        } catch {
            let example = CommandTable.all.first { $0.name == topic }?.examples.first ?? topic
            throw UsageError(
                message: "\(topic): \(error.message); write it between single quotes: meshhost \(example)", topic: topic
            )
        }
        do throws(FieldError) {
            return try bytes(of: json, subject)
        } catch {
            let frame = subject == .companion ? json["name"]?.stringValue.map { "\($0): " } : nil
            throw UsageError(message: "\(topic): \(frame ?? "")\(error)", topic: topic)
        }
    }

    /// The bytes, and the member of the JSON document they go under.
    static func bytes(
        of json: JSONValue, _ subject: HostCommand.DecodeSubject
    ) throws(FieldError) -> (member: String, Data) {
        switch subject {
        case .companion:
            var members = json.objectValue
            // What `decode --request` tells beside.
            members?["answer"] = nil
            return ("frame", try CompanionFrame.encoded(json: members.map { .object($0) } ?? json))
        case .packet: return ("packet", try MeshPacket(json: json).encoded())
        case .lpp: return ("payload", try CayenneLPP.encode(try CayenneLPP.readings(json: json)))
        }
    }
}
