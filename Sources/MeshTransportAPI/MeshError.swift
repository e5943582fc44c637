// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The one error type of the public API: a stable code, a message that says what failed and what to try, its cause and
/// its context.
///
/// Equality and retry policy look at ``code`` alone. One word of storage, so `throws(MeshError)` costs nothing.
public struct MeshError: Error, Sendable {
    private final class Storage: Sendable {
        let code: Code
        let message: String
        let cause: (any Error)?
        let context: Context

        init(code: Code, message: String, cause: (any Error)?, context: Context) {
            self.code = code
            self.message = message
            self.cause = cause
            self.context = context
        }
    }

    /// Where it happened.
    public struct Context: Sendable, Hashable {
        /// The configured device name, such as `roof`.
        public var device: String?
        /// What was being done, such as `connect`.
        public var operation: String?
        /// The other end, such as `192.168.4.1:5000`.
        public var peer: String?

        public init(device: String? = nil, operation: String? = nil, peer: String? = nil) {
            self.device = device
            self.operation = operation
            self.peer = peer
        }
    }

    private let storage: Storage

    /// `message` says what failed and what to try, with the value in question.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil, context: Context = Context()) {
        storage = Storage(code: code, message: message, cause: cause, context: context)
    }

    /// What kind of failure this is.
    public var code: Code { storage.code }
    /// What failed and what to try.
    public var message: String { storage.message }
    /// The error beneath this one, kept as it was.
    public var cause: (any Error)? { storage.cause }
    /// Where it happened.
    public var context: Context { storage.context }
    /// Whether trying again can help.
    public var disposition: Disposition { storage.code.disposition }

    /// The same error with the missing parts of its context filled in.
    public func adding(device: String? = nil, operation: String? = nil, peer: String? = nil) -> MeshError {
        let context = Context(
            device: storage.context.device ?? device, operation: storage.context.operation ?? operation,
            peer: storage.context.peer ?? peer)
        return MeshError(code, message, cause: cause, context: context)
    }

    /// Any error as a `MeshError`: itself, ``Code/cancelled`` for a `CancellationError`, else wrapped as
    /// ``Code/internalError`` with its text.
    public init(wrapping error: any Error) {
        switch error {
        case let error as MeshError: self = error
        case is CancellationError: self.init(.cancelled, "the operation was cancelled", cause: error)
        default: self.init(.internalError, "\(error)", cause: error)
        }
    }
}

extension MeshError {
    /// Whether trying again can help; all that a retry policy looks at.
    public enum Disposition: String, Sendable, Hashable {
        /// May pass by itself: try again with backoff.
        case transient
        /// Stays until a person changes something: do not try again.
        case permanent
        /// A fault in the program.
        case fatal
    }
}

extension MeshError: Equatable {
    public static func == (left: MeshError, right: MeshError) -> Bool { left.code == right.code }
}

extension MeshError: CustomStringConvertible {
    /// `[device: ]message (code)`.
    public var description: String {
        let place = context.device.map { "\($0): " } ?? ""
        return "\(place)\(message) (\(code.slug))"
    }
}
