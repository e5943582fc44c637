// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

// begin: the handbook's example
/// Says hello to everybody, and then writes down what comes.
func greet(over transport: any MeshTransport, into lines: (String) -> Void) async throws {
    let session = MeshCoreSession(transport: transport)
    let events = await session.events
    try await session.start()
    try await session.ready()
    for contact in await session.contactBook.contacts where contact.type == .chat {
        do {
            let success = try await session.send("Hello", to: contact.publicKey)
            lines("\(contact.name) has it after \(success.attempts) attempts")
        } catch {
            lines("\(contact.name): \(error.message)")
        }
    }
    for await case .message(let message) in events { lines(message.text) }
    await session.stop()
}
// end

/// The example of the handbook's page on the session library.
struct ExampleTests {
    @Test func `the example does what it says`() async throws {
        let radio = ScriptedRadio { frame, number in
            switch frame.first {
            case 4: SessionContactTests.list(total: 1, SessionContactTests.ann, change: 100)
            case 2: [SessionMessageTests.receipt(1), SessionMessageTests.confirmation(1)]
            case 10 where number == 1: [SessionMessageTests.message]
            default: nil
            }
        }
        var lines: [String] = []
        let (words, continuation) = AsyncStream.makeStream(of: String.self)
        let program = Task { try await greet(over: radio) { continuation.yield($0) } }
        for await word in words.prefix(2) { lines.append(word) }
        #expect(lines == ["Ann has it after 1 attempts", "Hello"])
        // The program ends when its task does.
        program.cancel()
        try await program.value
        #expect(await !radio.isConnected)
    }

    @Test func `the handbook has the same text`() throws {
        let here = URL(filePath: #filePath)
        let source = String(decoding: try Data(contentsOf: here), as: UTF8.self)
        let page = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/MeshDaemon/Documentation.docc/SessionLibrary.md")
        let handbook = String(decoding: try Data(contentsOf: page), as: UTF8.self)
        let begin = try #require(source.firstRange(of: "// begin: the handbook's example\n"))
        let end = try #require(source[begin.upperBound...].firstRange(of: "// end\n"))
        #expect(handbook.contains("```swift\n" + source[begin.upperBound..<end.lowerBound] + "```\n"))
    }
}
