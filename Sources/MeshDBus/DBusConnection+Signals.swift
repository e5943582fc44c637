// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshLoop

/// A handler of signals.
final class DBusSubscription {
    let match: DBusMatch
    let handler: @Sendable (DBusSignal) -> Void
    /// Its token was dropped, perhaps by a handler of the same signal.
    var isEnded = false

    init(_ match: DBusMatch, _ handler: @escaping @Sendable (DBusSignal) -> Void) {
        self.match = match
        self.handler = handler
    }
}

/// A well-known name whose owner is known, because a match speaks of it.
struct DBusFollowedName {
    /// How many matches do.
    var uses = 0
    var owner: String?
    /// Why the owner cannot be known.
    var failure: DBusError?
}

/// Keeps a match with its handler: dropping it ends both, without waiting for the bus. From any thread; on the loop the
/// handler does not run any more from then on.
public final class DBusMatchToken: Sendable {
    private weak let connection: DBusConnection?
    private let id: UInt64

    init(_ connection: DBusConnection, _ id: UInt64) {
        self.connection = connection
        self.id = id
    }

    deinit {
        let id = id
        connection?.performIfOpen { $0.removeMatch(id) }
    }
}

// A signal names its sender by its unique name, a match most often by a well-known one. The bus has compared them when it
// delivers a signal for a match; but which match it was it does not say, and a signal that somebody sends to this
// connection alone is delivered without any match (a system bus usually lets everybody do that). So the owner of each
// well-known name in a match is kept here: asked for once, and kept up to date by NameOwnerChanged, which the bus sends in
// order with the signals of the old and the new owner.

extension DBusConnection {
    /// How long the bus itself may take.
    private static let busTimeout = Duration.seconds(25)

    /// Has `handler` called for each signal that `match` describes, and returns when the bus knows of it: the handler is
    /// there from the bus's answer on, so that no signal that the bus handles after it is missed.
    ///
    /// Handlers run on the loop, synchronously, in the order of arrival, and in that order with the replies to calls (see
    /// ``DBusConnection`` for whom that holds). To a caller that is an actor on the loop, this returns before the handler
    /// is called; to others the first signals may come before. Several matches are independent: a signal that two
    /// describe goes to both handlers, in the order in which the bus has answered.
    ///
    /// Throws what the bus answered, and else what ``call(_:timeout:)`` throws; nothing is left of the match then.
    public func addMatch(
        _ match: DBusMatch, _ handler: @escaping @Sendable (DBusSignal) -> Void
    ) async throws(DBusError) -> DBusMatchToken {
        if Task.isCancelled { throw DBusTransport.cancelled }
        let name = match.followedSender
        if let name { try follow(name) }
        let id = nextID()
        do throws(DBusError) {
            try await tell(match.rule) { [weak self] in
                self?.assumeIsolated { $0.subscribe(id, match, handler) }
            }
        } catch {
            if let name { unfollow(name) }
            throw error
        }
        // The bus answers in order, so the owner was known before.
        if let name, let failure = followedNames[name]?.failure {
            removeMatch(id)
            throw failure
        }
        guard transport.isOpen else { throw DBusTransport.disconnected }
        return DBusMatchToken(self, id)
    }

    /// Tells the bus of a rule; `added` is called before the next message is dispatched.
    private func tell(_ rule: String, added: @escaping () -> Void) async throws(DBusError) {
        let reply = try transport.send(
            DBusMessage(.bus("AddMatch", [.string(rule)])), awaitingReplyWithin: Self.busTimeout, arrived: added)
        do throws(DBusError) {
            _ = try await transport.reply(reply)
        } catch {
            // The bus has added it, or will: it was told to. After its refusal there is nothing to remove.
            if error.name == DBusError.cancelled || error.name == DBusError.noReply { forget(rule) }
            throw error
        }
    }

    private func subscribe(_ id: UInt64, _ match: DBusMatch, _ handler: @escaping @Sendable (DBusSignal) -> Void) {
        subscriptions[id] = DBusSubscription(match, handler)
        subscriptionOrder.append(id)
    }

    fileprivate func removeMatch(_ id: UInt64) {
        guard let subscription = subscriptions.removeValue(forKey: id) else { return }
        subscription.isEnded = true
        subscriptionOrder.removeAll { $0 == id }
        forget(subscription.match.rule)
        if let name = subscription.match.followedSender { unfollow(name) }
    }

    /// Has the bus forget a rule, without waiting for it.
    private func forget(_ rule: String) {
        // It fails when the connection has ended, and the rule with it.
        _ = try? transport.send(DBusMessage(.bus("RemoveMatch", [.string(rule)]), wantsReply: false))
    }

    // MARK: Owners of names

    private static func ownerRule(_ name: String) -> String {
        DBusMatch(
            sender: DBusNames.bus, interface: DBusNames.bus, member: "NameOwnerChanged", path: DBusNames.busPath,
            argument0: name
        ).rule
    }

    private func follow(_ name: String) throws(DBusError) {
        if followedNames[name] == nil {
            let rule = try transport.send(DBusMessage(.bus("AddMatch", [.string(Self.ownerRule(name))])))
            let owner = try transport.send(DBusMessage(.bus("GetNameOwner", [.string(name)])))
            followedNames[name] = DBusFollowedName()
            transport.await(rule, within: Self.busTimeout) { [weak self] reply in
                guard case .failure(let error) = reply else { return }
                self?.assumeIsolated { $0.followedNames[name]?.failure = error }
            }
            transport.await(owner, within: Self.busTimeout) { [weak self] reply in
                self?.assumeIsolated { $0.learnOwner(of: name, reply) }
            }
        }
        followedNames[name]?.uses += 1
    }

    private func learnOwner(of name: String, _ reply: Result<DBusReceived, DBusError>) {
        do throws(DBusError) {
            guard case .string(let owner)? = try reply.get().arguments().values.first else { return }
            setOwner(of: name, owner)
        } catch {
            if error.name != DBusError.nameHasNoOwner { followedNames[name]?.failure = error }
        }
    }

    private func unfollow(_ name: String) {
        guard var followed = followedNames[name] else { return }
        followed.uses -= 1
        guard followed.uses == 0 else {
            followedNames[name] = followed
            return
        }
        setOwner(of: name, nil)
        followedNames[name] = nil
        forget(Self.ownerRule(name))
    }

    private func noteOwnerChange(_ header: DBusSignal, _ message: DBusReceived) {
        guard header.sender == DBusNames.bus, header.interface == DBusNames.bus, header.member == "NameOwnerChanged",
            let values = try? message.arguments().values, values.count == 3,
            case (.string(let name), .string(let owner)) = (values[0], values[2])
        else { return }
        setOwner(of: name, owner.isEmpty ? nil : owner)
    }

    private func setOwner(of name: String, _ owner: String?) {
        guard followedNames[name] != nil else { return }
        followedNames[name]?.owner = owner
        bytesTakers.setOwner(of: name, owner)
    }

    // MARK: Routing

    /// Hands a signal to the handlers that want it. One whose arguments cannot be read is dropped.
    func route(_ message: DBusReceived) {
        var signal = DBusSignal(
            sender: message.sender ?? "", path: message.path ?? "", interface: message.interface ?? "",
            member: message.member ?? "")
        noteOwnerChange(signal, message)
        let takers = subscriptionOrder.compactMap { subscriptions[$0] }.filter {
            $0.match.accepts(signal, owner: $0.match.followedSender.flatMap { followedNames[$0]?.owner })
        }
        guard !takers.isEmpty, let (arguments, descriptors) = try? message.arguments() else { return }
        // Several handlers may see a descriptor, and none need look at it: so it is not theirs.
        defer { for descriptor in descriptors { Glibc.close(descriptor) } }
        signal.arguments = arguments
        for taker in takers where !taker.isEnded && taker.match.accepts(arguments) { taker.handler(signal) }
    }
}
