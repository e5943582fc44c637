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
        book.configure(1, .address(target), passkey.flatMap { BLEPasskey($0) })
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
        book.configure(1, .name("Roof"), BLEPasskey("123456"))
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .reject(.notConfigured))
        book.linkBegan(Self.device, BLEPasskey("123456"))
        expect(book.answer(.passkey, from: Self.device, address: nil), is: .passkey(123_456))
        book.linkEnded(Self.device)
        expect(book.answer(.passkey, from: Self.device, address: nil), is: .reject(.notConfigured))
    }

    @Test func `a device is answered for as long as somebody wants it, and as who asked last wants it`() throws {
        var book = try Self.book("111111")
        let target = BLETarget.address(try #require(BLEAddress("C0:11:22:33:44:55")))
        book.configure(2, target, BLEPasskey("222222"))
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .passkey(222_222))
        book.forget(2)
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .passkey(111_111))
        book.forget(1)
        expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .reject(.notConfigured))
    }

    @Test func `an address with its kind says more than one without`() throws {
        var book = PairingBook()
        book.configure(1, .address(try #require(Self.address)), BLEPasskey("111111"))
        book.configure(2, .address(try #require(BLEAddress("C0:11:22:33:44:55"))), BLEPasskey("222222"))
        for _ in 0..<20 {
            expect(book.answer(.passkey, from: Self.device, address: Self.address), is: .passkey(111_111))
        }
    }

    @Test func `pairings of one device at once share what was asked`() throws {
        var book = try Self.book("123456")
        book.pairingBegan(Self.device)
        _ = book.answer(.passkey, from: Self.device, address: Self.address)
        book.pairingBegan(Self.device)
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt(passkeyWasAsked: true))
        expect(book.isPairing, is: true)
        expect(book.pairingEnded(Self.device), is: PairingBook.Attempt(passkeyWasAsked: true))
        expect(book.isPairing, is: false)
    }

    @Test func `one rejection may pass, two in a row do not`() {
        var book = PairingBook()
        expect(book.rejectionMayPass(Self.device), is: true)
        expect(book.rejectionMayPass(Self.device), is: false)
        expect(book.rejectionMayPass(Self.device), is: true)
        book.pairingSucceeded(Self.device)
        expect(book.rejectionMayPass(Self.device), is: true)
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
