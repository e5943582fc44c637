// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshWire

// What a radio says is wrong, as errors of the public API: the one place that translates it.

extension MeshError {
    /// An error reply to this command.
    init(radio code: UInt8?, to command: Data) {
        let name = Self.name(of: command)
        let (kind, reason): (Code, String) =
            switch code.flatMap(CompanionErrorCode.init) {
            case .unsupported: (.radioUnsupported, "its firmware does not know it, or not in this form")
            case .notFound: (.radioNotFound, "it has no such contact or channel")
            case .tableFull: (.radioTableFull, "a table or its packet pool is full; try again later")
            case .badState: (.radioBadState, "it cannot do that at present")
            case .fileError: (.radioFileError, "it could not read or write its flash memory")
            case .illegalArgument: (.radioIllegalArgument, "it does not accept a value")
            case nil: (.radioRefused, "its reason is \(code.map { "\($0)" } ?? "not told")")
            }
        self.init(kind, "the radio refused \(name): \(reason)", context: Context(operation: name))
    }

    /// The reply DISABLED to this command.
    static func disabled(_ command: Data) -> MeshError {
        let name = name(of: command)
        return MeshError(
            .radioDisabled, "the radio's firmware was built without \(name)", context: Context(operation: name))
    }

    /// A reply or answer that makes no sense.
    static func unreadable(_ command: Data, _ cause: DecodeError? = nil) -> MeshError {
        let name = name(of: command)
        return MeshError(
            .radioUnreadable, "the answer to \(name) could not be read" + (cause.map { ": \($0)" } ?? ""), cause: cause,
            context: Context(operation: name))
    }

    /// No reply, or no answer, in time.
    static func timedOut(_ command: Data, _ who: String) -> MeshError {
        let name = name(of: command)
        return MeshError(
            .operationTimeout, "\(who) did not answer \(name) in time", context: Context(operation: name))
    }

    /// A caller's value that has no place in a frame.
    init(_ error: FieldError, _ name: String) {
        self.init(
            .invalidArgument, "\(name) cannot be sent: \(error)", cause: error, context: Context(operation: name))
    }

    /// What a command is called in messages.
    static func name(of command: Data) -> String {
        guard let first = command.first else { return "an empty command" }
        return CommandCode(rawValue: first).map { CommandSpec.of($0).name } ?? "command \(first)"
    }
}
