// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

extension CompanionPush {
    /// The first byte of the frame.
    public var code: UInt8 {
        if case .unknown(let code, _) = self { code } else { knownCode.rawValue }
    }

    private var knownCode: PushCode {
        switch self {
        case .advert: .advert
        case .pathUpdated: .pathUpdated
        case .sendConfirmed: .sendConfirmed
        case .messageWaiting: .messageWaiting
        case .rawData: .rawData
        case .loginSuccess: .loginSuccess
        case .loginFailed: .loginFailed
        case .statusResponse: .statusResponse
        case .receivedPacketLog: .receivedPacketLog
        case .trace: .trace
        case .newAdvert: .newAdvert
        case .telemetryResponse: .telemetryResponse
        case .binaryResponse: .binaryResponse
        case .pathDiscovery: .pathDiscovery
        case .controlData: .controlData
        case .contactDeleted: .contactDeleted
        case .contactsFull: .contactsFull
        case .unknown: preconditionFailure("an unknown push has no known code")
        }
    }

    /// The push with nothing filled in yet.
    static func prototype(_ code: PushCode) -> CompanionPush {
        switch code {
        case .advert: .advert(.zero)
        case .pathUpdated: .pathUpdated(.zero)
        case .sendConfirmed: .sendConfirmed(.empty)
        case .messageWaiting: .messageWaiting
        case .rawData: .rawData(.empty)
        case .loginSuccess: .loginSuccess(.empty)
        case .loginFailed: .loginFailed(.zero)
        case .statusResponse: .statusResponse(.empty)
        case .receivedPacketLog: .receivedPacketLog(.empty)
        case .trace: .trace(.empty)
        case .newAdvert: .newAdvert(.empty)
        case .telemetryResponse: .telemetryResponse(.empty)
        case .binaryResponse: .binaryResponse(.empty)
        case .pathDiscovery: .pathDiscovery(.empty)
        case .controlData: .controlData(.empty)
        case .contactDeleted: .contactDeleted(.zero)
        case .contactsFull: .contactsFull
        }
    }
}

extension CompanionPush: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        switch self {
        case .messageWaiting, .contactsFull: break
        case .sendConfirmed(var fields):
            try fields.visit(&visitor)
            self = .sendConfirmed(fields)
        case .rawData(var fields):
            try fields.visit(&visitor)
            self = .rawData(fields)
        case .loginSuccess(var fields):
            try fields.visit(&visitor)
            self = .loginSuccess(fields)
        case .statusResponse(var fields):
            try fields.visit(&visitor)
            self = .statusResponse(fields)
        case .receivedPacketLog(var fields):
            try fields.visit(&visitor)
            self = .receivedPacketLog(fields)
        case .trace(var fields):
            try fields.visit(&visitor)
            self = .trace(fields)
        case .newAdvert(var fields):
            try fields.visit(&visitor)
            self = .newAdvert(fields)
        case .telemetryResponse(var fields):
            try fields.visit(&visitor)
            self = .telemetryResponse(fields)
        case .binaryResponse(var fields):
            try fields.visit(&visitor)
            self = .binaryResponse(fields)
        case .pathDiscovery(var fields):
            try fields.visit(&visitor)
            self = .pathDiscovery(fields)
        case .controlData(var fields):
            try fields.visit(&visitor)
            self = .controlData(fields)
        case .advert(var key):
            try visitor.key(&key)
            self = .advert(key)
        case .pathUpdated(var key):
            try visitor.key(&key)
            self = .pathUpdated(key)
        case .contactDeleted(var key):
            try visitor.key(&key)
            self = .contactDeleted(key)
        case .loginFailed(var node):
            try visitor.reserved("\0")
            try visitor.prefix("from", &node)
            self = .loginFailed(node)
        case .unknown(let code, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(code: code, bytes: bytes)
        }
    }
}
