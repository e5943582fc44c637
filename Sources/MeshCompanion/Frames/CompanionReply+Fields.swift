// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

extension CompanionReply {
    /// The first byte of the frame.
    public var code: UInt8 {
        if case .unknown(let code, _) = self { code } else { knownCode.rawValue }
    }

    private var knownCode: ReplyCode {
        switch self {
        case .ok: .ok
        case .error: .error
        case .contactsStart: .contactsStart
        case .contact: .contact
        case .endOfContacts: .endOfContacts
        case .selfInfo: .selfInfo
        case .sent: .sent
        case .currentTime: .currentTime
        case .noMoreMessages: .noMoreMessages
        case .exportedContact: .exportedContact
        case .batteryAndStorage: .batteryAndStorage
        case .deviceInfo: .deviceInfo
        case .privateKey: .privateKey
        case .disabled: .disabled
        case .channelInfo: .channelInfo
        case .signStart: .signStart
        case .signature: .signature
        case .customVariables: .customVariables
        case .advertPath: .advertPath
        case .tuning: .tuning
        case .statistics: .statistics
        case .autoAdd: .autoAdd
        case .allowedRepeatFrequencies: .allowedRepeatFrequencies
        case .channelData: .channelData
        case .defaultScope: .defaultScope
        case .cliReply: .cliReply
        case .message(let message): message.replyCode
        case .unknown: preconditionFailure("an unknown reply has no known code")
        }
    }

    /// The reply with nothing filled in yet.
    static func prototype(_ code: ReplyCode) -> CompanionReply {
        switch code {
        case .ok: .ok(value: nil)
        case .error: .error(code: nil)
        case .contactsStart: .contactsStart(total: 0)
        case .contact: .contact(.empty)
        case .endOfContacts: .endOfContacts(latestChange: 0)
        case .selfInfo: .selfInfo(.empty)
        case .sent: .sent(.empty)
        case .currentTime: .currentTime(0)
        case .noMoreMessages: .noMoreMessages
        case .exportedContact: .exportedContact(Data())
        case .batteryAndStorage: .batteryAndStorage(.empty)
        case .deviceInfo: .deviceInfo(.empty)
        case .privateKey: .privateKey(Data())
        case .disabled: .disabled
        case .channelInfo: .channelInfo(.empty)
        case .signStart: .signStart(maximumLength: 0)
        case .signature: .signature(Data())
        case .customVariables: .customVariables("")
        case .advertPath: .advertPath(.empty)
        case .tuning: .tuning(.empty)
        case .statistics: .statistics(.empty)
        case .autoAdd: .autoAdd(.empty)
        case .allowedRepeatFrequencies: .allowedRepeatFrequencies([])
        case .channelData: .channelData(.empty)
        case .defaultScope: .defaultScope(nil)
        case .cliReply: .cliReply("")
        case .contactMessage, .channelMessage, .contactMessageV3, .channelMessageV3: .message(.prototype(code))
        }
    }
}

extension CompanionReply: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        switch self {
        case .noMoreMessages, .disabled: break
        case .contact(var fields):
            try fields.visit(&visitor)
            self = .contact(fields)
        case .selfInfo(var fields):
            try fields.visit(&visitor)
            self = .selfInfo(fields)
        case .sent(var fields):
            try fields.visit(&visitor)
            self = .sent(fields)
        case .message(var fields):
            try fields.visit(&visitor)
            self = .message(fields)
        case .batteryAndStorage(var fields):
            try fields.visit(&visitor)
            self = .batteryAndStorage(fields)
        case .deviceInfo(var fields):
            try fields.visit(&visitor)
            self = .deviceInfo(fields)
        case .channelInfo(var fields):
            try fields.visit(&visitor)
            self = .channelInfo(fields)
        case .advertPath(var fields):
            try fields.visit(&visitor)
            self = .advertPath(fields)
        case .tuning(var fields):
            try fields.visit(&visitor)
            self = .tuning(fields)
        case .statistics(var fields):
            try fields.visit(&visitor)
            self = .statistics(fields)
        case .autoAdd(var fields):
            try fields.visit(&visitor)
            self = .autoAdd(fields)
        case .channelData(var fields):
            try fields.visit(&visitor)
            self = .channelData(fields)
        case .ok(var value):
            try visitor.integer("value", optional: &value)
            self = .ok(value: value)
        case .error(var code):
            try visitor.integer("error_code", optional: &code)
            let known = code.flatMap(CompanionErrorCode.init(rawValue:)).map { "\($0)" }
            visitor.derived("reason", (known ?? code.map { "\($0)" }).map { .string($0) })
            self = .error(code: code)
        case .contactsStart(var total):
            try visitor.integer("total", &total)
            self = .contactsStart(total: total)
        case .endOfContacts(var change):
            try visitor.integer("latest_change", &change)
            self = .endOfContacts(latestChange: change)
        case .currentTime(var time):
            try visitor.integer("time", &time)
            self = .currentTime(time)
        case .exportedContact(var packet):
            try visitor.rest("packet", &packet)
            let bytes = packet
            visitor.derived("decoded", MeshPacket.json(decoding: bytes))
            self = .exportedContact(packet)
        case .privateKey(var key):
            try visitor.bytes("private_key", &key, count: 64, secret: true)
            self = .privateKey(key)
        case .signStart(var length):
            try visitor.reserved("\0")
            try visitor.integer("maximum_length", &length)
            self = .signStart(maximumLength: length)
        case .signature(var signature):
            try visitor.bytes("signature", &signature, count: 64)
            self = .signature(signature)
        case .customVariables(var text):
            try visitor.text("text", &text)
            let pairs = Self.variables(text).map { ($0.name, JSONValue.string($0.value)) }
            visitor.derived("variables", .object(Dictionary(pairs, uniquingKeysWith: { $1 })))
            self = .customVariables(text)
        case .allowedRepeatFrequencies(var ranges):
            try visitor.rows("ranges", &ranges, prototype: .empty, count: nil)
            self = .allowedRepeatFrequencies(ranges)
        case .defaultScope(var scope):
            if try visitor.begin("scope_name", isSet: scope != nil) {
                var fields = scope ?? .empty
                try fields.visit(&visitor)
                scope = fields
            }
            self = .defaultScope(scope)
        case .cliReply(var text):
            try visitor.text("text", &text)
            self = .cliReply(text)
        case .unknown(let code, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(code: code, bytes: bytes)
        }
    }
}
