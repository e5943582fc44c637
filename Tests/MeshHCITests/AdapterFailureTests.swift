// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct AdapterFailureTests {
    private static let adapter = HCIPort.adapter(index: 3)

    @Test(
        arguments: [
            (AdapterFailure.Step.openSocket, EAFNOSUPPORT, "RestrictAddressFamilies=AF_BLUETOOTH"),
            (.look, ENODEV, "there is no adapter hci3"), (.takeDown, ENODEV, "there is no adapter hci3"),
            (.bind, ENODEV, "there is no adapter hci3"),
            (.takeDown, EPERM, "AmbientCapabilities=CAP_NET_ADMIN"),
            (.bind, EPERM, "AmbientCapabilities=CAP_NET_ADMIN"),
            (.look, EBUSY, "hci3 is switched on"), (.takeDown, EBUSY, "another program has taken hci3"),
            (.bind, EUSERS, "another program has taken hci3"), (.bind, EBUSY, "AutoEnable=false"),
            (.bind, ERFKILL, "rfkill unblock bluetooth"),
            (.bind, EIO, "hci3 cannot be opened: bind: Input/output error"),
        ])
    func `what the kernel refuses is explained`(step: AdapterFailure.Step, number: Int32, words: String) {
        let error = AdapterFailure(step, number).error(Self.adapter)
        #expect(error.message.contains(words), "\(error.message)")
        #expect(error.code == (number == EPERM ? .permissionDenied : .adapterUnavailable))
    }

    @Test func `only an adapter that somebody was faster with is tried again at once`() {
        #expect(AdapterFailure(.bind, EBUSY).isPassing)
        for other in [AdapterFailure(.look, EBUSY), .init(.takeDown, EBUSY), .init(.bind, EUSERS), .init(.bind, EPERM)]
        {
            #expect(!other.isPassing)
        }
    }

    @Test func `an adapter that is not there is told of, and opens nothing`() async throws {
        try await onLoop { actor in
            do throws(MeshError) {
                _ = try await HCIPort.adapter(index: 4_711).open(actor.loop, takingFromOthers: false)
                Issue.record("opened")
            } catch {
                // With Bluetooth and without it.
                #expect(error.code == .adapterUnavailable)
                #expect(error.message.contains("hci4711"))
            }
        }
    }

    @Test func `what is told of an adapter that nobody has taken yet`() {
        let address = DeviceAddress(0x00AA_0104_0004, .public)
        let free = AdapterFacts(publicAddress: address, isUp: false).finding(Self.adapter)
        #expect(free.severity == .ok)
        #expect(free.message.contains("00:AA:01:04:00:04"))
        let used = AdapterFacts(publicAddress: nil, isUp: true).finding(Self.adapter)
        #expect(used.severity == .note)
        #expect(used.message.contains("is taken from bluetoothd"))
    }

    @Test func `an adapter is examined without being opened`() async throws {
        try await onLoop { actor in
            let controllers = HCIControllers(loop: actor.loop, log: .none)
            let written: [String: JSONValue] = ["controller": "hci4711", "address": "C0:11:22:33:44:55"]
            let settings = try #require(HCISettings.read(HCISettings.options.resolve(written).0).settings)
            let findings = await controllers.examine([(name: "roof", settings: settings)])
            #expect(findings.first?.severity == .problem)
            #expect(findings.first?.message.contains("hci4711") == true)
            for controller in await controllers.all { #expect(await !controller.isWanted) }
            await controllers.close()
        }
    }
}
