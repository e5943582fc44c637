// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshCrypto

/// The SHA-256 digest of a module's file: what `sha256` of `[module.NAME]` pins it to.
public struct ModuleDigest: Sendable, Hashable, CustomStringConvertible {
    private static let digits = Array("0123456789abcdef".utf8)

    let bytes: [UInt8]

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// From 64 hexadecimal digits; nil from any other text.
    public init?(_ text: String) {
        let digits = text.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard digits.count == text.utf8.count, digits.count == 2 * SHA256.byteCount else { return nil }
        bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// 64 hexadecimal digits in lower case.
    public var description: String { Self.hex(bytes) }

    /// Enough of it for a person to tell two apart.
    var short: String { "\(Self.hex(bytes.prefix(6)))…\(Self.hex(bytes.suffix(2)))" }

    private static func hex(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Of the file that this descriptor is of, from its beginning; its position is left alone. The file is not mapped: one
    /// that is cut short meanwhile gives another digest, not SIGBUS.
    static func ofFile(_ descriptor: Int32, path: String) throws(ModuleRefusal) -> ModuleDigest {
        var failure: Int32 = 0
        do throws(CryptoError) {
            var stream = try SHA256Stream()
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var offset: off_t = 0
            while true {
                let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, offset) }
                if count < 0, errno == EINTR { continue }
                if count < 0 { failure = errno }
                if count <= 0 { break }
                try stream.append(buffer.span.extracting(0..<count).bytes)
                offset += off_t(count)
            }
            if failure == 0 { return ModuleDigest(bytes: try stream.finish()) }
        } catch {
            throw ModuleRefusal(
                path, "its digest cannot be computed: \(error)", advice: "install libssl3, or leave its sha256 out")
        }
        throw ModuleRefusal(
            path, "cannot be read (\(String(cString: strerror(failure))))", advice: "check the file and its disk")
    }
}
