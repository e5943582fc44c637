// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI

/// The bytes of hexadecimal digits; what is no digit is passed over.
func hex(_ digits: String) -> Data {
    let digits = digits.compactMap(\.hexDigitValue)
    return Data(stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
}

func zeros(_ count: Int) -> String { String(repeating: "00", count: count) }

/// Frames of the reference (companion-protocol §3) and of meshcore_py 2.3.17, as in MeshCompanionTests.
enum Golden {
    static let keyHex = "0123456789ab" + zeros(26)
    static let key = PublicKey(hex: keyHex)!
    static let otherKeyHex = String(repeating: "ab", count: 32)
    static let otherKey = PublicKey(hex: otherKeyHex)!
    /// 2024-01-01 UTC, 80009265 in frames.
    static let date: UInt32 = 1_704_067_200

    /// R1.
    static let selfInfo = hex(
        "05010a16a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4dc47d9028eb0cbff0000000095440d0090d003"
            + "000b05435436325f66646c")
    /// Protocol version 13, 350 contacts, 40 channels.
    static let deviceInfo = hex(
        "0d0daf2840e20100" + "313420417567203230323600" + "426f617264" + zeros(35) + "76312e31372e31" + zeros(13)
            + "0101")
    /// R4.
    static let time = hex("0980009265")
    static let ok = hex("00")
    /// R5: not found.
    static let notFound = hex("0102")
    /// R6: flood, deadbeef, 5000 ms.
    static let sent = hex("0601deadbeef88130000")

    /// CONTACT with this key, name and time of change.
    static func contact(_ keyHex: String, _ name: String, changed: UInt32 = date, path: UInt8 = 0xFF) -> Data {
        var frame = hex("03" + keyHex + "0100") + Data([path]) + Data(repeating: 0, count: 64)
        frame += Data(name.utf8) + Data(repeating: 0, count: 32 - name.utf8.count)
        frame += hex("80009265" + zeros(8))
        return frame + number(changed)
    }

    static func number(_ value: UInt32) -> Data { withUnsafeBytes(of: value.littleEndian) { Data($0) } }
}

/// A session with a scripted radio, in a time of its own.
struct SessionBench {
    let radio: ScriptedRadio
    let clock = ManualClock()
    let session: MeshCoreSession

    /// By default the session does nothing of its own after the handshake.
    init(
        pipelines: Bool = false, settings: MeshSessionSettings = .quiet(),
        script: @escaping ScriptedRadio.Script = { _, _ in nil }
    ) {
        radio = ScriptedRadio(pipelines: pipelines, script: script)
        session = MeshCoreSession(
            transport: radio, settings: settings,
            environment: MeshSessionEnvironment(clock: clock, date: { Golden.date }, random: { 7 }))
    }

    /// Waits until the session has taken all that the radio has said.
    func flush() async {
        let events = await session.events
        await radio.say(hex("83"))
        _ = await events.first { $0 == .messagesWaiting }
    }

    /// Waits until so many frames have been sent, and the session has taken all that the radio has said to them.
    @discardableResult
    func settled(_ count: Int) async -> [String] {
        let sent = await radio.sent(count)
        await flush()
        return sent
    }

    /// A session that is ready.
    static func ready(
        pipelines: Bool = false, settings: MeshSessionSettings = .quiet(),
        script: @escaping ScriptedRadio.Script = { _, _ in nil }
    ) async throws -> SessionBench {
        let bench = SessionBench(pipelines: pipelines, settings: settings, script: script)
        try await bench.session.start()
        try await bench.session.ready()
        return bench
    }
}

extension MeshSessionSettings {
    /// Nothing of its own after the handshake, but for what `adjust` says.
    static func quiet(_ adjust: (inout MeshSessionSettings) -> Void = { _ in }) -> MeshSessionSettings {
        var settings = MeshSessionSettings()
        settings.correctsClock = false
        settings.keepsContacts = false
        settings.fetchesMessages = false
        settings.probeAfter = nil
        settings.messagePoll = nil
        adjust(&settings)
        return settings
    }
}

/// The code of the error that this throws.
func code(_ work: () async throws -> some Any) async -> MeshError.Code? {
    do {
        _ = try await work()
        return nil
    } catch {
        return (error as? MeshError)?.code
    }
}

extension AsyncStream where Element: Sendable {
    /// Elements up to one that satisfies the condition.
    func first(_ condition: (Element) -> Bool) async -> Element? {
        for await element in self where condition(element) { return element }
        return nil
    }
}
