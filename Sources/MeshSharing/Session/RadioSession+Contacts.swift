// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// Contact lists, each client its own, all from one pass over the radio's.
extension RadioSession {
    /// GET_CONTACTS.
    func listContacts(_ frame: Data, _ expectation: ReplyExpectation, _ client: VirtualCompanion) {
        switch cache.contactsState {
        case .unsupported where isServing:
            submit(frame, expectation, client)
        case .valid:
            beginList(client, frame)
        case .unknown, .stale, .unsupported:
            guard link != nil else { return contactsReady(client, frame) }
            client.work = .contacts(frame)
            passContacts()
        }
    }

    /// What can be known of the contacts now is known.
    func contactsReady(_ client: VirtualCompanion, _ command: Data) {
        client.work = nil
        switch cache.contactsState {
        case .valid, .stale:
            beginList(client, command)
        case .unsupported where isServing:
            submit(command, CommandSpec.expectation(for: command), client)
        case .unknown, .unsupported:
            counters.commandsWhileAway += 1
            give(client, CompanionFrame.error(.badState))
        }
        serve(client)
    }

    private func beginList(_ client: VirtualCompanion, _ command: Data) {
        guard case .getContacts(let since)? = try? CompanionCommand(decoding: command) else { return }
        counters.answeredHere += 1
        let list = cache.contactList(since: since ?? 0)
        give(client, list.start)
        client.work = .listing(list, next: 0)
        continueList(client)
    }

    /// Gives rows as long as the client's connection takes them.
    func continueList(_ client: VirtualCompanion) {
        guard case .listing(let list, var next) = client.work else { return }
        while next < list.count, !client.connection.isBlocked {
            give(client, list.row(at: next))
            next += 1
            // It may have been cut.
            guard case .listing = client.work else { return }
        }
        guard next == list.count else {
            client.work = .listing(list, next: next)
            return
        }
        give(client, list.end)
        finished(client)
    }
}
