// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import Testing

/// Bytes from hexadecimal digits.
func hex(_ digits: String) -> [UInt8] {
    var values = digits.compactMap(\.hexDigitValue)[...]
    var bytes: [UInt8] = []
    while let high = values.popFirst(), let low = values.popFirst() { bytes.append(UInt8(high << 4 | low)) }
    return bytes
}

/// 1000 bytes without a short period.
let thousandBytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7) }

struct HashTests {
    // FIPS 180-4, examples.
    @Test(
        arguments: [
            ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (Array("abc".utf8), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ] as [([UInt8], String)])
    func `SHA-256`(data: [UInt8], digest: String) throws {
        #expect(try SHA256.digest(of: data) == hex(digest))
        #expect(digest.utf8.count == SHA256.byteCount * 2)
    }

    // The same, a piece at a time.
    @Test(arguments: [1, 7, 64, 999, 1_000])
    func `SHA-256 of pieces is that of the whole`(length: Int) throws {
        var stream = try SHA256Stream()
        for start in stride(from: 0, to: thousandBytes.count, by: length) {
            try stream.append(thousandBytes[start..<min(start + length, thousandBytes.count)].span.bytes)
        }
        #expect(try stream.finish() == SHA256.digest(of: thousandBytes))
        #expect(try SHA256Stream().finish() == SHA256.digest(of: []))
    }

    // RFC 4231, test cases 1, 2, 3 and 6.
    @Test(
        arguments: [
            (
                [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                [UInt8](repeating: 0xAA, count: 131),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ] as [([UInt8], [UInt8], String)])
    func `HMAC with SHA-256`(key: [UInt8], data: [UInt8], code: String) throws {
        #expect(try HMACSHA256.code(of: data, key: key) == hex(code))
        #expect(code.utf8.count == HMACSHA256.byteCount * 2)
    }

    // Computed with pycryptodome.
    @Test func `a thousand bytes`() throws {
        let digest = "89f4ff56a25dd1db06a4ce6033603775d705fb96f30f8693733fef602a1ca532"
        #expect(try SHA256.digest(of: thousandBytes) == hex(digest))
        let code = "0328c6445e359a0b7cb9e9caaf260b754b835bd7f21d35e57f41af9578f6b313"
        #expect(try HMACSHA256.code(of: thousandBytes, key: Array(0..<100)) == hex(code))
    }

    @Test func `an empty key is one of zeros, as the definition says`() throws {
        #expect(try HMACSHA256.code(of: [], key: []) == HMACSHA256.code(of: [], key: [UInt8](repeating: 0, count: 64)))
    }

    @Test func `many threads may begin at once`() async throws {
        let expected = try SHA256.digest(of: thousandBytes)
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<32 { group.addTask { try SHA256.digest(of: thousandBytes) } }
            for try await digest in group { #expect(digest == expected) }
        }
    }
}
