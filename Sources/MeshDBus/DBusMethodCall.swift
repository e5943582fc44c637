// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import Synchronization

/// A call of a method that this program exports. It is answered exactly once, now or later, from any thread: a second
/// answer has no effect, and one that is dropped unanswered is answered with ``DBusError/failed``.
public final class DBusMethodCall: Sendable {
    /// The unique name of the caller.
    public let sender: String
    public let path: String
    public let interface: String
    public let member: String
    /// Descriptors in here are open as long as this object lives; see ``DBusValue/descriptor(_:)``.
    public let arguments: [DBusValue]
    private let descriptors: [Int32]
    /// Nil when the caller wants no answer.
    private let address: DBusReplyAddress?
    private weak let connection: DBusConnection?
    private let isAnswered = Atomic(false)

    init(
        _ header: DBusSignal, descriptors: [Int32], address: DBusReplyAddress?, connection: DBusConnection
    ) {
        sender = header.sender
        path = header.path
        interface = header.interface
        member = header.member
        arguments = header.arguments
        self.descriptors = descriptors
        self.address = address
        self.connection = connection
    }

    deinit {
        fail(DBusError(DBusError.failed, "\(member) was not answered"))
        for descriptor in descriptors { close(descriptor) }
    }

    /// Answers with results. What cannot be expressed is answered with an error that says why.
    public func reply(_ results: [DBusValue] = []) {
        answer { address throws(DBusError) in try DBusMessage(resultsFor: address, results) }
    }

    /// Answers with an error.
    public func fail(_ error: DBusError) {
        answer { address throws(DBusError) in try DBusMessage(errorFor: address, error) }
    }

    private func answer(_ message: (DBusReplyAddress) throws(DBusError) -> DBusMessage) {
        guard !isAnswered.exchange(true, ordering: .relaxed), let address, let connection else { return }
        let answer: DBusMessage
        do throws(DBusError) {
            // Made here and now: descriptors are the answerer's, who may close them next.
            answer = try message(address)
        } catch {
            guard let failure = try? DBusMessage(errorFor: address, error) else { return }
            answer = failure
        }
        connection.performIfOpen { $0.send(answer) }
    }
}

extension DBusConnection {
    /// Sends an answer. It fails when the connection has ended, and nobody waits for it then.
    fileprivate func send(_ answer: DBusMessage) {
        _ = try? transport.send(answer)
    }
}
