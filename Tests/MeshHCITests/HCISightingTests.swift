// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import MeshWire
import Testing

@testable import MeshHCITransport

/// What is heard, and who is told of it: without a line, for hearing needs none.
struct HCISightingTests {
    private static let address = DeviceAddress(0xC011_2233_4455, .random)
    private static let report = AdvertisingReport(
        kind: [.connectable], address: address, rssi: -60, data: [2, 1, 6, 5, 9] + Array("Roof".utf8))

    @Test func `a device that was heard is known by name and by address`() async throws {
        try await onLoop { actor in
            let controller = HCIController(loop: actor.loop, port: .unix(path: "/x"), file: nil, log: .none)
            controller.here { controller in
                controller.heard(Self.report)
                let peer = GATTPeer(address: BLEAddress(Self.address), name: "Roof", rssi: -60)
                #expect(controller.lastSighting(of: .name("Roof")) == peer)
                #expect(controller.lastSighting(of: .address(BLEAddress(Self.address.value))) == peer)
                #expect(controller.lastSighting(of: .name("Barn")) == nil)
            }
        }
    }

    @Test func `scanners get what is news`() async throws {
        try await onLoop { actor in
            let controller = HCIController(loop: actor.loop, port: .unix(path: "/x"), file: nil, log: .none)
            let (results, continuation) = AsyncThrowingStream.makeStream(of: ScanResult.self)
            controller.here { controller in
                controller.scanners[1] = .init(continuation: continuation)
                controller.heard(Self.report)
                controller.heard(Self.report)
                controller.endScan(1)
                #expect(controller.scanners.isEmpty)
            }
            continuation.finish()
            var found: [ScanResult] = []
            for try await result in results { found.append(result) }
            #expect(found.map(\.address) == ["C0:11:22:33:44:55"])
            #expect(found.first?.name == "Roof")
            #expect(found.first.map { AdvertisingData.decode($0.advertisement).data.localName?.text } == "Roof")
        }
    }

    /// Another controller's failure ends the stream of all; who is told nothing any more must not keep this one scanning.
    @Test func `a scan that is over is not gone on with`() async throws {
        try await onLoop { actor in
            let controller = HCIController(loop: actor.loop, port: .unix(path: "/x"), file: nil, log: .none)
            let (results, continuation) = AsyncThrowingStream.makeStream(of: ScanResult.self)
            continuation.finish()
            controller.here { controller in
                controller.scanners[1] = .init(continuation: continuation)
                controller.heard(Self.report)
                #expect(controller.scanners.isEmpty)
            }
            _ = results
        }
    }

    @Test func `without a controller a scan says what is missing`() async throws {
        try await onLoop { actor in
            let controllers = HCIControllers(loop: actor.loop, log: .none)
            await #expect(throws: MeshError.self) { try await controllers.scan([]) }
            #expect(await controllers.examine([]).map(\.severity) == [.problem])
        }
    }

    @Test func `versions have names`() {
        var descriptor = ControllerDescriptor()
        for (version, name) in [(6, "4.0"), (9, "5.0"), (13, "5.4"), (5, nil), (200, nil)] as [(UInt8, String?)] {
            descriptor.hciVersion = version
            #expect(descriptor.bluetoothVersion == name)
        }
    }
}
