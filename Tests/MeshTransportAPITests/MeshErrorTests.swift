// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTransportAPI
import Testing

struct MeshErrorTests {
    @Test func `equality looks at the code alone`() {
        #expect(MeshError(.linkClosed, "one") == MeshError(.linkClosed, "two"))
        #expect(MeshError(.linkClosed, "one") != MeshError(.cancelled, "one"))
    }

    @Test func `a slug leads back to its code`() {
        for code in [MeshError.Code.contended, .linkClosedByPeer, .frameTooLong, .internalError] {
            #expect(MeshError.Code(slug: code.slug) == code)
        }
        #expect(MeshError.Code(slug: "no.such") == nil)
    }

    @Test func `context is filled in, never overwritten, and the cause is kept`() {
        let cause = MeshError(.hostNotFound, "no address")
        let error = MeshError(.connectionFailed, "no way", cause: cause, context: .init(device: "roof"))
            .adding(device: "shed", operation: "connect", peer: "radio.lan:5000")
        #expect(error.context == MeshError.Context(device: "roof", operation: "connect", peer: "radio.lan:5000"))
        #expect(error.cause as? MeshError == cause)
        #expect(error.description == "roof: no way (link.connection-failed)")
    }

    @Test func `a cancellation is a code of its own, other errors keep their text`() {
        struct Strange: Error {}
        #expect(MeshError(wrapping: CancellationError()).code == .cancelled)
        #expect(MeshError(wrapping: MeshError(.queueFull, "full")).code == .queueFull)
        #expect(MeshError(wrapping: Strange()).code == .internalError)
    }

    @Test func `what a retry cannot mend is permanent`() {
        #expect(MeshError.Code.authenticationFailed.disposition == .permanent)
        #expect(MeshError.Code.connectionRefused.disposition == .transient)
        #expect(MeshError.Code.internalError.disposition == .fatal)
    }
}

struct JSONValueTests {
    @Test func `a document reads back as it was written`() throws {
        let value: JSONValue = [
            "text": "a \"quoted\" / slash", "number": -12, "big": .int(.max), "flag": true, "nothing": nil,
            "list": [1, .double(2.5), "three"], "object": ["inner": []],
        ]
        #expect(try JSONValue(parsing: value.serialized()) == value)
        #expect(try JSONValue(parsing: value.serialized(pretty: true)) == value)
    }

    @Test func `keys are sorted and slashes stay`() {
        let value: JSONValue = ["b": "x/y", "a": 1]
        #expect(value.text() == #"{"a":1,"b":"x/y"}"#)
    }

    @Test func `what JSON cannot say becomes null`() {
        #expect(JSONValue.double(.nan).text() == "null")
    }

    @Test(arguments: ["", "{", "nul", "[1 2]", "{\"a\":}", "\u{1}"])
    func `what is no document is refused`(_ text: String) {
        #expect(throws: MeshError.self) { try JSONValue(parsing: Data(text.utf8)) }
    }
}
