// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshJournal

struct ClientIdentityTests {
    @Test func `the text form says who it is`() {
        let identity = ClientIdentity(share: "home", name: "mccli", address: "192.168.1.20", slot: 2)
        #expect(identity.description == "home/mccli@192.168.1.20#2")
        #expect(ClientIdentity("home/mccli@192.168.1.20#2") == identity)
    }

    @Test(arguments: [
        "", " ", "a b", "a/b@c#1", "%", "%2F", "100%25", "ö 🛰", "\u{0}\u{1F}\u{7F}", "fe80::1%eth0", "../../x",
        "'; DROP TABLE cursor; --",
    ])
    func `any name can be read back, and no two have one form`(_ name: String) throws {
        let forms = try [
            ClientIdentity(share: name, name: "n", address: "a"), ClientIdentity(share: "s", name: name, address: "a"),
            ClientIdentity(share: "s", name: "n", address: name),
        ].map { identity in
            let form = identity.description
            #expect(form.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F })
            let again = try #require(ClientIdentity(form))
            #expect(again == identity)
            #expect(again.name.utf8.elementsEqual(identity.name.utf8))
            return form
        }
        #expect(Set(forms).count == 3)
    }

    @Test(arguments: [
        "", "a", "a/b", "a/b@c", "a/b@c#", "a/b@c#x", "a/b@c#1#2", "a/b@c#1 ", "a/b/c@d#1", "a/b@c#+1", "a/b@c#01",
        "a/%41@c#1", "a/%2f@c#1", "a/%@c#1", "a/%4@c#1", "a/%FF@c#1", "a b/c@d#1",
    ])
    func `what is no form is none`(_ text: String) {
        #expect(ClientIdentity(text) == nil)
    }
}
