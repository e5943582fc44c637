// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CTransportABI
import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// What goes through `manage`, through real shared objects.
@Suite(.timeLimit(.minutes(10))) struct ManageTests {
    private func device(_ bench: Bench, _ written: [String: JSONValue]) -> TransportSettings {
        TransportSettings(
            device: "roof", options: bench.factory.check(written).values, written: written,
            environment: bench.recorder.environment)
    }

    @Test func `a pairing, the next one and the end of it cross`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let roof = device(bench, ["address": "aa:3", "pin": "123456"])
            var report = PairingReport(address: "aa:3", name: "MeshCore-roof", wasBonded: false, usedPasskey: true)
            #expect(try await bench.factory.pair(roof) == report)
            report.wasBonded = true
            report.usedPasskey = false
            #expect(try await bench.factory.pair(roof) == report)
            #expect(try await bench.factory.unpair(roof))
            #expect(try await !bench.factory.unpair(roof))
            await bench.factory.shutDown()
        }
    }

    @Test func `a scan is told which devices are configured`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let devices = [
                device(bench, ["address": "aa:7", "script": "count"]), device(bench, ["script": "dance"]),
            ]
            var results = try await bench.factory.scan(around: devices).makeAsyncIterator()
            #expect(try await results.next() == ScanResult(address: "aa:7", name: "roof"))
            await bench.factory.shutDown()
        }
    }

    @Test func `findings cross, of wrong options too`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let findings = await bench.factory.examine([
                device(bench, ["script": "fail"]), device(bench, ["script": "dance"]),
            ])
            #expect(
                findings == [
                    Finding(.ok, "script0", "is on"),
                    Finding(.problem, "roof", "is set to fail", advice: "choose another script"),
                    Finding(.problem, "roof", "no script \"dance\"", advice: "correct its options"),
                ])
            await bench.factory.shutDown()
        }
    }

    @Test func `what is known of an adapter crosses, and why nothing is`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            #expect(try await bench.factory.describe("script0") == ["adapter": "script0", "version": 9])
            do {
                _ = try await bench.factory.describe("script1")
                Issue.record("described")
            } catch let error as MeshError {
                #expect(error.code == .adapterUnavailable)
                #expect(error.message == "there is no script1")
            }
            await bench.factory.shutDown()
        }
    }

    @Test func `the reason of a failed pairing crosses`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            do {
                _ = try await bench.factory.pair(device(bench, ["script": "fail"]))
                Issue.record("paired")
            } catch let error as MeshError {
                #expect(error.code == .authenticationFailed)
                #expect(error.message == "the pin is wrong")
            }
            await bench.factory.shutDown()
        }
    }

    @Test func `at its deadline a request is cancelled and its end awaited`() async throws {
        try await onLoop { actor in
            var settings = ModuleSettings()
            settings.pairDeadline = .milliseconds(10)
            let bench = try Bench("scripted", actor.loop, settings: settings)
            do {
                _ = try await bench.factory.pair(device(bench, ["script": "hang"]))
                Issue.record("paired")
            } catch let error as MeshError {
                #expect(error.code == .operationTimeout)
                #expect(error.message == "module scripted did not finish \"pair\" within 10ms")
            }
            #expect(bench.recorder.count("cleaned up") == 1)
            await bench.factory.shutDown()
        }
    }

    @Test func `an asker that gives up hears so when the module has ended`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let hanging = device(bench, ["script": "hang"])
            let asker = Task { await code { _ = try await bench.factory.pair(hanging) } }
            try await until(actor.loop) { bench.recorder.count("pairing") == 1 }
            asker.cancel()
            #expect(await asker.value == .cancelled)
            #expect(bench.recorder.count("cleaned up") == 1)
            await bench.factory.shutDown()
        }
    }

    @Test func `the end of a module ends what was asked of it`() async throws {
        try await onLoop { actor in
            let before = actor.loop.openHandles
            let bench = try Bench("scripted", actor.loop)
            let hanging = device(bench, ["script": "hang"])
            let asker = Task { await code { _ = try await bench.factory.pair(hanging) } }
            try await until(actor.loop) { bench.recorder.count("pairing") == 1 }
            await bench.factory.shutDown()
            #expect(await asker.value == .cancelled)
            #expect(actor.loop.openHandles == before)
        }
    }

    @Test func `a module of ABI 1_0 is asked nothing`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let settings = device(bench, [:])
            #expect(await code { _ = try await bench.factory.pair(settings) } == .notSupported)
            #expect(await bench.factory.examine([settings]).isEmpty)
            await bench.factory.shutDown()
        }
    }

    @Test func `a module of ABI 1_1 lives on a host of 1_0`() async throws {
        try await onLoop { actor in
            let module = try ModuleLoader().load("scripted", path: Fixture.path("scripted"))
            let handle = create(module, onHostOf: 0, actor.loop)
            #expect(module.ops.start(handle) == MH_OK)
            // Such a host does not ask; if it did, the module would have nobody to answer.
            #expect(manage(module, handle, MH_VERB_EXAMINE, "{\"devices\":[]}") == MH_OK)
            #expect(module.ops.stop(handle) == MH_OK)
            try await turns(actor.loop)
            module.ops.destroy(handle)
        }
    }

    @Test func `a module of ABI 1_2 whose search fails on a host of 1_1 logs that`() async throws {
        try await onLoop { actor in
            let module = try ModuleLoader().load("scripted", path: Fixture.path("scripted"))
            let recorder = Recorder()
            let handle = create(module, onHostOf: 1, actor.loop, log: recorder.log)
            #expect(module.ops.start(handle) == MH_OK)
            let options = "{\"script\":\"adapter\"}"
            _ = options.withABIString { options in "roof".withABIString { module.ops.connect(handle, 1, $0, options) } }
            try await until(actor.loop) { recorder.count("connecting") == 1 }
            #expect("{}".withABIString { module.ops.scan(handle, 1, $0) } == MH_OK)
            try await until(actor.loop) {
                recorder.logged.contains { $0.contains("scanning failed error=script0 is off; switch it on") }
            }
            #expect(module.ops.stop(handle) == MH_OK)
            try await turns(actor.loop)
            module.ops.destroy(handle)
        }
    }

    /// An instance that was made by a host of an older minor.
    private func create(
        _ module: LoadedModule, onHostOf minor: UInt32, _ loop: EventLoop, log: LogSink = .none
    ) -> OpaquePointer? {
        let inbox = InstanceInbox(limits: InstanceInbox.Limits(), canResume: true, log: log)
        let api = UnsafeMutablePointer(mutating: HostCallbacks.makeAPI(inbox, loop: loop))
        api.pointee.struct_size = UInt32(MemoryLayout<mh_host_api>.offset(of: minor == 0 ? \.managed : \.scan_failed)!)
        api.pointee.abi_minor = minor
        if minor == 0 { api.pointee.managed = nil }
        api.pointee.scan_failed = nil
        var handle: OpaquePointer?
        let status = "{}".withABIString { module.ops.create(api, $0, &handle) }
        return status == MH_OK ? handle : nil
    }

    private func manage(
        _ module: LoadedModule, _ handle: OpaquePointer?, _ verb: String, _ params: String
    ) -> mh_status {
        params.withABIString { params in verb.withABIString { module.ops.manage(handle, 1, $0, params) } }
    }
}
