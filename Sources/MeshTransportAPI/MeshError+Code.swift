// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension MeshError {
    /// A stable kind of failure. The slug appears in logs, JSON and metrics and never changes its meaning.
    ///
    /// A struct over a private enum, so that a new code breaks nobody's `switch`.
    public struct Code: Sendable, Hashable {
        private enum Value: String {
            case adapterUnavailable = "adapter.unavailable"
            case authenticationFailed = "link.authentication-failed"
            case cancelled = "cancelled"
            case characteristicNotFound = "link.characteristic-not-found"
            case configurationInvalid = "config.invalid"
            case connectionFailed = "link.connection-failed"
            case connectionRefused = "link.refused"
            case connectionTimeout = "link.timeout"
            case contended = "link.contended"
            case deviceUnknown = "device.unknown"
            case frameTooLong = "frame.too-long"
            case handshakeFailed = "session.handshake-failed"
            case hostNotFound = "link.host-not-found"
            case internalError = "internal"
            case invalidArgument = "argument.invalid"
            case linkClosed = "link.closed"
            case linkClosedByPeer = "link.closed-by-peer"
            case messageUnacknowledged = "message.unacknowledged"
            case moduleFailed = "module.failed"
            case moduleRefused = "module.refused"
            case notConnected = "link.not-connected"
            case notSupported = "not-supported"
            case operationTimeout = "operation.timeout"
            case permissionDenied = "permission-denied"
            case queueFull = "queue.full"
            case radioBadState = "radio.bad-state"
            case radioDisabled = "radio.disabled"
            case radioFileError = "radio.file-error"
            case radioIllegalArgument = "radio.illegal-argument"
            case radioNotFound = "radio.not-found"
            case radioRefused = "radio.refused"
            case radioTableFull = "radio.table-full"
            case radioUnreadable = "radio.unreadable"
            case radioUnsupported = "radio.unsupported"
            case resourceExhausted = "resource.exhausted"
            case serviceUnavailable = "service.unavailable"
            case storageFailed = "storage.failed"
        }

        private let value: Value

        /// The text form, such as `link.timeout`.
        public var slug: String { value.rawValue }

        /// The code with this text form, if there is one.
        public init?(slug: String) {
            guard let value = Value(rawValue: slug) else { return nil }
            self.value = value
        }

        private init(_ value: Value) {
            self.value = value
        }

        /// Whether trying again can help.
        public var disposition: Disposition {
            switch value {
            case .adapterUnavailable, .cancelled, .connectionFailed, .connectionRefused, .connectionTimeout, .contended,
                .handshakeFailed, .hostNotFound, .linkClosed, .linkClosedByPeer, .messageUnacknowledged, .moduleFailed,
                .notConnected, .operationTimeout, .queueFull, .radioBadState, .radioTableFull, .resourceExhausted,
                .serviceUnavailable, .storageFailed:
                .transient
            case .authenticationFailed, .characteristicNotFound, .configurationInvalid, .deviceUnknown, .frameTooLong,
                .invalidArgument, .moduleRefused, .notSupported, .permissionDenied, .radioDisabled, .radioFileError,
                .radioIllegalArgument, .radioNotFound, .radioRefused, .radioUnreadable, .radioUnsupported:
                .permanent
            case .internalError:
                .fatal
            }
        }

        /// The adapter or the network is off, gone or blocked. Wait for it; attempts make no sense.
        public static let adapterUnavailable = Code(.adapterUnavailable)
        /// The peer refused PIN, key or token.
        public static let authenticationFailed = Code(.authenticationFailed)
        /// The caller gave up.
        public static let cancelled = Code(.cancelled)
        /// The device lacks the service or characteristic the link needs.
        public static let characteristicNotFound = Code(.characteristicNotFound)
        /// An option or a config value is not acceptable.
        public static let configurationInvalid = Code(.configurationInvalid)
        /// The connection could not be made for a reason without a code of its own.
        public static let connectionFailed = Code(.connectionFailed)
        /// The peer is there and refuses: nothing listens.
        public static let connectionRefused = Code(.connectionRefused)
        /// No connection within the deadline.
        public static let connectionTimeout = Code(.connectionTimeout)
        /// Another host takes the device away again and again.
        public static let contended = Code(.contended)
        /// No device with that name is configured.
        public static let deviceUnknown = Code(.deviceUnknown)
        /// The frame is longer than the link can carry.
        public static let frameTooLong = Code(.frameTooLong)
        /// The link came up and the device did not answer the session's first questions.
        public static let handshakeFailed = Code(.handshakeFailed)
        /// The host name has no address.
        public static let hostNotFound = Code(.hostNotFound)
        /// A fault in the program.
        public static let internalError = Code(.internalError)
        /// A caller's value is not acceptable.
        public static let invalidArgument = Code(.invalidArgument)
        /// The link is closed, by this side or for a reason unknown.
        public static let linkClosed = Code(.linkClosed)
        /// The peer closed the link.
        public static let linkClosedByPeer = Code(.linkClosedByPeer)
        /// The message was sent, more than once if that was asked for, and no acknowledgement came. It may have arrived.
        public static let messageUnacknowledged = Code(.messageUnacknowledged)
        /// A module broke the rules of the module boundary, or died.
        public static let moduleFailed = Code(.moduleFailed)
        /// A module was not loaded.
        public static let moduleRefused = Code(.moduleRefused)
        /// The operation needs a link and there is none.
        public static let notConnected = Code(.notConnected)
        /// This transport or device cannot do it.
        public static let notSupported = Code(.notSupported)
        /// The peer did not answer in time; the link may still be good.
        public static let operationTimeout = Code(.operationTimeout)
        /// The operating system or the peer's role refuses.
        public static let permissionDenied = Code(.permissionDenied)
        /// A bounded queue has no room.
        public static let queueFull = Code(.queueFull)
        /// The radio cannot do it at present: something else is under way, or nothing that it would belong to.
        public static let radioBadState = Code(.radioBadState)
        /// The radio's firmware was built without it.
        public static let radioDisabled = Code(.radioDisabled)
        /// The radio could not read or write its flash memory.
        public static let radioFileError = Code(.radioFileError)
        /// The radio does not accept a value.
        public static let radioIllegalArgument = Code(.radioIllegalArgument)
        /// The radio knows no such contact or channel.
        public static let radioNotFound = Code(.radioNotFound)
        /// The radio refused for a reason that this version does not know.
        public static let radioRefused = Code(.radioRefused)
        /// The radio's table or packet pool is full.
        public static let radioTableFull = Code(.radioTableFull)
        /// The radio's answer could not be read.
        public static let radioUnreadable = Code(.radioUnreadable)
        /// The radio's firmware does not know the command, or not in this form.
        public static let radioUnsupported = Code(.radioUnsupported)
        /// No memory, descriptors or slots left.
        public static let resourceExhausted = Code(.resourceExhausted)
        /// A service the operation needs is not running.
        public static let serviceUnavailable = Code(.serviceUnavailable)
        /// A file could not be read or written.
        public static let storageFailed = Code(.storageFailed)
    }
}

extension MeshError.Code: CustomStringConvertible {
    /// The slug.
    public var description: String { slug }
}
