// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import Testing

@testable import MeshBlueZTransport

struct PairingBookTests {
    private static let device = "/org/bluez/hci0/dev_C0_11_22_33_44_55"
    private static let address = BLEAddress("C0:11:22:33:44:55/random")
    private static let questions: [PairingBook.Question] = [
        .passkey, .pinCode, .confirmation, .display, .authorization, .service,
    ]

    private static func book(_ passkey: String?) throws -> PairingBook {
        var book = PairingBook()
        let target = try #require(BLEAddress("C0:11:22:33:44:55"))
        book.configure(.address(target), passkey.flatMap { BLEPasskey($0) })
        return book
    }

    @Test func `a configured device gets its passkey, by number and by digits`() throws {
        var book = try Self.book("42")
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .passkey(42))
        expect(book.answer(.pinCode, from: Self.device, address: Self.address), is: .pinCode("000042"))
    }

    @Test(arguments: questions)
    func `others get nothing`(question: PairingBook.Question) throws {
        var book = try Self.book("123456")
        let other = "/org/bluez/hci0/dev_C0_11_22_33_44_66"
        expect(
            book.answer(question, from: other, address: BLEAddress("C0:11:22:33:44:66")), is: .reject(.notConfigured))
        expect(book.answer(question, from: other, address: nil), is: .reject(.notConfigured))
    }

    @Test(arguments: [
        (PairingBook.Question.passkey, PairingBook.Answer.reject(.noPasskey)), (.pinCode, .reject(.noPasskey)),
        (.confirmation, .accept), (.display, .accept), (.authorization, .accept), (.service, .accept),
    ])
    func `a configured device without a passkey may pair without one`(
        question: PairingBook.Question, answer: PairingBook.Answer
    ) throws {
        var book = try Self.book(nil)
        expect(book.answer(question, from: Self.device, address: Self.address), is: answer)
    }

    @Test(arguments: [PairingBook.Question.confirmation, .authorization])
    func `with a passkey no bond is made that nobody has authenticated`(question: PairingBook.Question) throws {
        var book = try Self.book("123456")
        expect(book.answer(question, from: Self.device, address: Self.address), is: .reject(.needsPerson))
    }

    @Test func `a device that is meant by its name is the one that is linked, and no other of that name`() {
        var book = PairingBook()
        book.configure(.name("Roof"), BLEPasskey("123456"))
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .reject(.notConfigured))
        book.linkBegan(Self.device, BLEPasskey("123456"))
        expect(book.answer(.passkey, from: Self.device, address: nil), is: .passkey(123_456))
        book.linkEnded(Self.device)
        expect(book.answer(.passkey, from: Self.device, address: nil), is: .reject(.notConfigured))
    }

    @Test func `an attempt tells whether the passkey was asked for, and why it was refused`() throws {
        var book = try Self.book("123456")
        book.pairingBegan(Self.device)
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt())
        book.pairingBegan(Self.device)
        _ = book.answer(.passkey, from: Self.device, address: Self.address)
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt(passkeyWasAsked: true))
        book.pairingBegan(Self.device)
        _ = book.answer(.confirmation, from: Self.device, address: Self.address)
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt(refusal: .needsPerson))
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt())
    }

    @Test(arguments: [
        ("RequestPasskey", PairingBook.Question.passkey), ("RequestPinCode", .pinCode),
        ("RequestConfirmation", .confirmation), ("DisplayPasskey", .display), ("DisplayPinCode", .display),
        ("RequestAuthorization", .authorization), ("AuthorizeService", .service), ("Cancel", nil), ("Release", nil),
    ])
    func `methods of the agent are these questions`(member: String, question: PairingBook.Question?) {
        #expect(PairingAgent.question(of: member) == question)
    }

    @Test func `answers are sent in the types that bluetoothd reads`() {
        #expect(PairingAgent.reply(.passkey(7)) == [.uint32(7)])
        #expect(PairingAgent.reply(.pinCode("000007")) == [.string("000007")])
        #expect(PairingAgent.reply(.accept) == [])
        #expect(PairingAgent.reply(.reject(.noPasskey)) == nil)
    }
}
