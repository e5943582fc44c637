// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import Testing

@testable import MeshHCITransport

/// Bonded devices that use another address than their own on the air.
struct HCIPrivacyTests {
    private static let identity = DeviceAddress(0xC0AA_BBCC_DDEE, .random)
    private static let bond = Bond(
        peer: identity, peerResolvingKey: [UInt8](1...16), centralKey: nil, peripheralKey: nil,
        isAuthenticated: false, isSecureConnections: true)

    /// A radio at one of the addresses that the bond's key makes.
    private static func radio() throws -> VirtualPeripheral.Settings {
        var radio = VirtualPeripheral.Settings()
        radio.address = try ResolvableAddress.make(key: [UInt8](1...16), random: 0x12_3456)
        return radio
    }

    private static func addBond(_ bench: HCIBench) async throws {
        await bench.poweredOn()
        await bench.host.here { $0.book[VirtualController.address, identity] = bond }
    }

    @Test(.timeLimit(.minutes(10)))
    func `forgetting a device ends the link to its private address`() async throws {
        let radio = try Self.radio()
        try await HCIBench.run(radios: [radio]) { actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect(radio)
            try await Self.addBond(bench)
            let wasBonded = try await bench.host.removeBond(.address(BLEAddress(Self.identity)))
            #expect(wasBonded)
            #expect(link.here { $0.end != nil })
            #expect(await bench.controller.linkCount == 0)
            await link.close()
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a device that is heard by a private address is found in the keys by its name`() async throws {
        let radio = try Self.radio()
        try await HCIBench.run(radios: [radio]) { actor, bench in
            try await Self.addBond(bench)
            var settings = BLETransportSettings(target: .name(radio.name))
            settings.connectionTimeout = HCIBench.phaseTimeout
            let wasBonded = try await bench.host.unpair(.name(radio.name), settings)
            #expect(wasBonded)
            #expect(await bench.host.book.peers(of: VirtualController.address) == [])
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a failed pairing counts for the device, whatever address it had`() async throws {
        let radio = try Self.radio()
        try await HCIBench.run(radios: [radio]) { actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect(radio)
            try await Self.addBond(bench)
            link.here { _ = $0.blockPairing(.failedByPeer(.confirmValueFailed)) }
            let (identity, now) = (Self.identity, actor.loop.now)
            #expect(await bench.host.here { $0.attempts.blockedUntil(identity, now: now) } != nil)
            await link.close()
        }
    }
}
