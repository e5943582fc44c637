// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshWire

/// A read whose one reply is kept as it came.
enum CachedRead: Sendable, Hashable {
    case selfInfo
    case deviceInfo
    case battery
    case customVariables
    case tuning
    case autoAdd
    case allowedRepeatFrequencies
    case defaultScope
    case channel(UInt8)

    /// What a command reads; nil for other commands.
    init?(command: Data) {
        switch command.first.flatMap(CommandCode.init) {
        case .appStart: self = .selfInfo
        case .deviceQuery: self = .deviceInfo
        case .getBatteryAndStorage: self = .battery
        case .getCustomVariables: self = .customVariables
        case .getTuning: self = .tuning
        case .getAutoAdd: self = .autoAdd
        case .getAllowedRepeatFrequencies: self = .allowedRepeatFrequencies
        case .getDefaultScope: self = .defaultScope
        case .getChannel:
            guard let index = command.field8(at: 1) else { return nil }
            self = .channel(index)
        default: return nil
        }
    }

    /// What a reply tells; nil for others, and for one that is too short.
    init?(reply: Data) {
        guard reply.withUnsafeBytes({ CompanionLayout.isPlausible($0.bytes) }) else { return nil }
        switch reply.first.flatMap(ReplyCode.init) {
        case .selfInfo: self = .selfInfo
        case .deviceInfo: self = .deviceInfo
        case .batteryAndStorage: self = .battery
        case .customVariables: self = .customVariables
        case .tuning: self = .tuning
        case .autoAdd: self = .autoAdd
        case .allowedRepeatFrequencies: self = .allowedRepeatFrequencies
        case .defaultScope: self = .defaultScope
        case .channelInfo:
            guard let index = reply.field8(at: 1) else { return nil }
            self = .channel(index)
        default: return nil
        }
    }

    /// Whether the radio will give this error again for as long as it runs: it does not know the command, or has no
    /// channel of that number.
    func isLasting(_ error: UInt8?) -> Bool {
        switch error.flatMap(CompanionErrorCode.init) {
        case .unsupported: true
        case .notFound: if case .channel = self { true } else { false }
        default: false
        }
    }
}
