// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

struct CommandAdmissionTests {
    static func isAdmitted(_ frame: Data, _ role: ClientRole) -> Bool {
        if case .admitted = CommandAdmission.of(frame, role: role) { true } else { false }
    }

    /// A frame with this code and length; its body is that of the command where the firmware looks at it.
    static func frame(_ code: CommandCode, length: Int) -> Data {
        let word: [CommandCode: String] = [.reboot: "reboot", .factoryReset: "reset"]
        let body = Data((word[code] ?? "").utf8)
        return Data([code.rawValue]) + body + Data(count: length - 1 - body.count)
    }

    @Test func `REBOOT and FACTORY_RESET need their word`() {
        let refused = CommandAdmission.refused(Data([0x01, 0x06]))
        #expect(CommandAdmission.of(Data([0x13]) + Data("rebooT".utf8), role: .owner) == refused)
        #expect(CommandAdmission.of(Data([0x13]) + Data(count: 6), role: .owner) == refused)
        #expect(CommandAdmission.of(Data([0x33]) + Data("resot".utf8), role: .owner) == refused)
    }

    @Test func `a bare REMOVE_CONTACT never reaches the radio`() {
        // Reference §1.5: the firmware would delete the contact that the previous command named.
        #expect(CommandAdmission.of(Data([0x0F]), role: .owner) == .refused(Data([0x01, 0x06])))
    }

    @Test(arguments: CommandCode.allCases)
    func `no command shorter than its layout is admitted`(_ code: CommandCode) {
        let spec = CommandSpec.of(code)
        for length in 1..<max(1, spec.minimumLength) {
            #expect(!Self.isAdmitted(Data([code.rawValue]) + Data(count: length - 1), .owner))
        }
        #expect(Self.isAdmitted(Self.frame(code, length: spec.minimumLength), .owner))
    }

    @Test func `an empty frame is refused`() {
        #expect(CommandAdmission.of(Data(), role: .owner) == .refused(Data([0x01, 0x06])))
    }

    @Test func `the private key is answered with DISABLED, as the firmware does`() {
        #expect(CommandAdmission.of(Data([0x17]), role: .admin) == .refused(Data([0x0F])))
        #expect(Self.isAdmitted(Data([0x17]), .owner))
    }

    @Test(arguments: [
        (CommandCode.getTime, ClientRole.observe), (.sendTextMessage, .chat), (.setName, .admin), (.reboot, .owner),
        (.factoryReset, .owner), (.setDevicePIN, .owner), (.sendRawPacket, .owner), (.importPrivateKey, .owner),
    ])
    func `a command needs its role and no more`(_ code: CommandCode, _ role: ClientRole) {
        let frame = Self.frame(code, length: CommandSpec.of(code).minimumLength + 1)
        for candidate in ClientRole.allCases {
            #expect(Self.isAdmitted(frame, candidate) == (candidate >= role), "\(code) as \(candidate)")
        }
    }

    @Test func `an unknown command passes for an admin only`() {
        #expect(Self.isAdmitted(Data([0x7E, 1]), .admin))
        #expect(CommandAdmission.of(Data([0x7E, 1]), role: .chat) == .refused(Data([0x01, 0x01])))
    }

    @Test func `the PIN in the device info is for the owner only`() throws {
        let info = try data("0d0d2008" + "40e20100" + "4141")
        #expect(CompanionFrame.shown(info, to: .owner) == info)
        #expect(CompanionFrame.shown(info, to: .admin) == (try data("0d0d2008" + "00000000" + "4141")))
        #expect(CompanionFrame.shown(try data("0d0d20"), to: .chat) == (try data("0d0d20")))
        #expect(CompanionFrame.shown(try data("0980009265aabbcc"), to: .chat) == (try data("0980009265aabbcc")))
    }

    @Test func `lengths between two forms are refused`() {
        #expect(Self.isAdmitted(Data([17]), .owner))
        #expect(!Self.isAdmitted(Data([17]) + Data(count: 5), .owner))
        #expect(!Self.isAdmitted(Data([39]) + Data(count: 20), .owner))
    }

    // Golden bytes: MeshCore One's reference tests and meshcore_py (reference §3.2, rows C1, C2, C11, C13, C17, C18).
    @Test(arguments: [
        "010320202020202020" + "4d436f7265", "1603", "0200008000926501234567 89ab48656c6c6f", "030000800092654869",
        "1f03", "200047656e6572616c" + String(repeating: "00", count: 25) + "000102030405060708090a0b0c0d0e0f",
    ])
    func `frames of existing clients are admitted`(_ hex: String) throws {
        #expect(Self.isAdmitted(try data(hex), .admin))
    }
}

/// Bytes from hexadecimal digits; blanks are for reading only.
func data(_ hex: String) throws -> Data {
    let digits = hex.filter { $0 != " " }
    var bytes = Data()
    var index = digits.startIndex
    while index < digits.endIndex {
        let next = digits.index(index, offsetBy: 2)
        bytes.append(try #require(UInt8(digits[index..<next], radix: 16)))
        index = next
    }
    return bytes
}
