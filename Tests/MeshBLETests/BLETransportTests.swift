// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

struct BLETransportTests {
    // MARK: The way up

    @Test func `a link goes through its phases and comes up with its facts`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            try await bench.transport.connect()
            #expect(await bench.transport.isConnected)
            await bench.transport.disconnect()
            #expect(
                bench.log.entries == [
                    "waitingForBluetooth", "restoringState", "connecting", "discoveringServices",
                    "discoveringCharacteristics", "subscribingToNotifications", "discoveryComplete", "connected",
                    "up MeshCore-roof (C0:11:22:33:44:55) 173", "down as asked", "disconnecting", "idle",
                ])
            #expect(await bench.central.openLinks == 0)
            #expect(await bench.central.observerCount == 0)
        }
    }

    @Test func `a device that is connected already is adopted`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.configure { $0.isAdopted = true }
            try await bench.transport.connect()
            #expect(await !bench.central.calls.contains(.connect))
            await bench.transport.disconnect()
            #expect(await bench.central.openLinks == 0)
        }
    }

    @Test(arguments: [
        ScriptedCentral.Call.adopt, .connect, .discoverServices, .discoverCharacteristics, .pair, .subscribe,
        .readWriteLength,
    ])
    func `a connect that is cancelled ends only after what it began`(call: ScriptedCentral.Call) async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.passkey = BLEPasskey(123_456) }
            for behaviour in [ScriptedCentral.Behaviour.hang, .succeedWhenCancelled] {
                let before = await bench.central.calls.count { $0 == call }
                await bench.central.script(call, behaviour)
                let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                    _ = actor
                    return await bench.failConnect()
                }
                await bench.central.reached(call, count: before + 1)
                attempt.cancel()
                let error = await attempt.value
                #expect(error?.code == .cancelled)
                #expect(await bench.central.inFlight == 0)
                #expect(await bench.central.openLinks == 0)
                #expect(await bench.transport.phase == .idle)
                // The next attempt of a case has to come to the same call.
                if call == .adopt { break }
                await bench.central.configure { $0.device.isBonded = false }
            }
            await bench.transport.disconnect()
            try await bench.transport.connect()
            await bench.transport.disconnect()
        }
    }

    @Test func `a connect ends wherever its cancellation falls`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.always(.connect, .hang)
            for rounds in 0..<16 {
                let attempt = Task(executorPreference: actor.loop.taskExecutor) { await bench.failConnect() }
                actor.loop.perform(afterRounds: rounds) { attempt.cancel() }
                #expect(await attempt.value?.code == .cancelled)
            }
            await bench.transport.disconnect()
        }
    }

    @Test func `a link that comes after its deadline is closed before connect throws`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.connectionTimeout = .milliseconds(20) }
            await bench.central.script(.connect, .succeedWhenCancelled)
            let error = await bench.failConnect()
            #expect(error?.code == .connectionTimeout)
            #expect(error?.message.hasPrefix("while connecting (MeshCore-roof (C0:11:22:33:44:55))") == true)
            #expect(await bench.central.links.count == 1)
            #expect(await bench.central.openLinks == 0)
            await bench.transport.disconnect()
        }
    }

    @Test func `a link that is lost before anybody watches it is noticed`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            for call in [ScriptedCentral.Call.discoverServices, .discoverCharacteristics, .subscribe, .readWriteLength]
            {
                await bench.central.script(call, .loseLink)
                #expect(await bench.failConnect()?.code == .connectionFailed)
            }
            try await bench.transport.connect()
            await bench.transport.disconnect()
        }
    }

    @Test func `Bluetooth that is off fails the attempt and tells when it is back`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.bluetoothGrace = .milliseconds(10) }
            await bench.central.become(.poweredOff)
            await bench.transport.setBluetoothStateChangeHandler { bench.log.add("Bluetooth \($0)") }
            await bench.transport.setBluetoothPoweredOnHandler { bench.log.add("back") }
            let error = await bench.failConnect()
            #expect(error?.code == .adapterUnavailable)
            #expect(error?.message.contains("hci0 is switched off") == true)
            #expect(
                bench.log.entries == ["waitingForBluetooth", "Bluetooth poweredOff", "adapter false", "idle"])
            bench.log.clear()
            await bench.central.become(.poweredOn)
            #expect(bench.log.entries == ["Bluetooth poweredOn", "back", "adapter true"])
            try await bench.transport.connect()
            await bench.transport.disconnect()
        }
    }

    @Test func `a transport that is dropped after a failed attempt keeps nothing`() async throws {
        try await onLoop(time: .virtual) { actor in
            let central = ScriptedCentral(actor.loop)
            await central.always(.connect, .fail(.unreachable))
            weak var weakTransport: BLETransport?
            do {
                let transport = BLETransport(
                    loop: actor.loop, central: central,
                    settings: BLETransportSettings(target: .name("MeshCore-roof")),
                    environment: EventLog().environment)
                weakTransport = transport
                await #expect(throws: MeshError.self) { try await transport.connect() }
                #expect(await central.observerCount == 1)
            }
            for _ in 0..<50 where weakTransport != nil { await Task.yield() }
            #expect(weakTransport == nil)
            #expect(await central.observerCount == 0)
        }
    }

    // MARK: Pairing

    @Test func `a fresh radio is paired with once, before it is used`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.passkey = BLEPasskey(123_456) }
            try await bench.transport.connect()
            await bench.transport.disconnect()
            try await bench.transport.connect()
            await bench.transport.disconnect()
            let calls = await bench.central.calls
            #expect(calls.count { $0 == .pair } == 1)
            #expect(calls.firstIndex(of: .pair)! < calls.firstIndex(of: .subscribe)!)
        }
    }

    @Test func `an ESP32 with a bond that protects nothing gets another one`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.passkey = BLEPasskey(123_456) }
            await bench.central.configure { $0.device.isBonded = true }
            await bench.central.script(.write, .fail(.insufficientSecurity))
            try await bench.transport.connect()
            await #expect(throws: MeshError(.linkClosed, "")) { try await bench.transport.send(Data([1])) }
            await bench.transport.disconnect()
            try await bench.transport.connect()
            try await bench.transport.send(Data([1]))
            let calls = await bench.central.calls
            #expect(calls.count { $0 == .removeBond } == 1)
            #expect(calls.count { $0 == .pair } == 1)
            await bench.transport.disconnect()
        }
    }

    // MARK: Receiving

    @Test func `frames that come before the link is up, and between empty ones, are delivered`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.script(.readWriteLength, .hang)
            let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                return await bench.failConnect()
            }
            await bench.central.reached(.readWriteLength)
            let link = await bench.central.link()
            await link.notify([1])
            await link.notify([])
            await link.notify([2])
            #expect(await bench.next(1, from: bench.transport.receivedData) == [], "no stream before the link is up")
            await bench.central.release(.readWriteLength)
            #expect(await attempt.value == nil)
            await link.notify([])
            await link.notify(Array(repeating: 3, count: 520))
            let frames = await bench.next(3, from: bench.transport.receivedData)
            #expect(frames.map(\.count) == [1, 1, 520])
            guard case .object(let facts) = await bench.transport.diagnostics() else { return }
            #expect(facts["frames_empty"] == .int(2))
            #expect(facts["frames_received"] == .int(3))
            #expect(facts["mtu"] == .int(176))
            await bench.transport.disconnect()
        }
    }

    @Test func `what finds no room is dropped, the newest first, and counted`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            try await bench.transport.connect()
            let stream = await bench.transport.receivedData
            let link = await bench.central.link()
            for number in 0..<1_100 { await link.notify([UInt8(number & 0xFF), UInt8(number >> 8)]) }
            await link.lose()
            var count = 0
            for await frame in stream {
                #expect(Int(frame[0]) | Int(frame[1]) << 8 == count)
                count += 1
            }
            #expect(count == 1_024)
            let dropped = bench.log.entries.compactMap { $0.hasPrefix("dropped ") ? Int($0.dropFirst(8)) : nil }
            #expect(dropped.reduce(0, +) == 76)
            await bench.transport.disconnect()
        }
    }

    // MARK: Sending

    @Test func `writes are one at a time, in the order of the calls`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            try await bench.transport.connect()
            await bench.central.script(.write, .hang)
            let sends = (0..<10).map { number in
                Task(executorPreference: actor.loop.taskExecutor) {
                    _ = actor
                    try await bench.transport.send(Data([UInt8(number)]))
                }
            }
            await bench.central.reached(.write)
            await bench.settle()
            #expect(await bench.central.calls.count { $0 == .write } == 1)
            sends[4].cancel()
            await #expect(throws: MeshError(.cancelled, "")) { try await sends[4].value }
            await bench.central.release(.write)
            for number in [0, 1, 2, 3, 5, 6, 7, 8, 9] {
                #expect(await bench.central.nextFrame() == [UInt8(number)])
                try await sends[number].value
            }
            #expect(await bench.central.mostInFlight == 1)
            #expect(await !bench.sendAtOnce(Data([99])), "whether it arrives is not known at once")
            await bench.transport.disconnect()
        }
    }

    @Test func `a frame over the limit is refused here`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.configure { $0.maximumWriteLength = 20 }
            try await bench.transport.connect()
            await #expect(throws: MeshError(.frameTooLong, "")) {
                try await bench.transport.send(Data(repeating: 0, count: 21))
            }
            #expect(await !bench.central.calls.contains(.write))
            await bench.transport.disconnect()
        }
    }

    @Test func `a write that is not acknowledged in time leaves the link up for another try`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) { $0.writeTimeout = .milliseconds(20) }
            try await bench.transport.connect()
            await bench.central.script(.write, .hang, .succeed, .hang, .hang)
            await #expect(throws: MeshError(.operationTimeout, "")) { try await bench.transport.send(Data([1])) }
            try await bench.transport.send(Data([2]))
            await #expect(throws: MeshError(.operationTimeout, "")) { try await bench.transport.send(Data([3])) }
            #expect(await bench.transport.isConnected)
            await #expect(throws: MeshError(.operationTimeout, "")) { try await bench.transport.send(Data([4])) }
            #expect(await !bench.transport.isConnected)
            #expect(bench.log.downs.map(\.code) == [.operationTimeout])
            await bench.transport.disconnect()
        }
    }

    @Test(arguments: [true, false])
    func `writes without response go where the device takes them`(isOffered: Bool) async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.configure { $0.properties = isOffered ? [.write, .writeWithoutResponse] : .write }
            #expect(await !bench.transport.supportsWriteWithoutResponse)
            try await bench.transport.connect()
            #expect(await bench.transport.supportsWriteWithoutResponse == isOffered)
            #expect(await !bench.transport.supportsPipelinedReads)
            try await bench.transport.send(Data([1]))
            try await bench.transport.sendWithoutResponse(Data([2]))
            #expect(await bench.central.writesWithoutResponse == (isOffered ? 1 : 0))
            await bench.transport.disconnect()
        }
    }

    @Test func `a disconnect with frames on their way fails them and leaves none`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            try await bench.transport.connect()
            await bench.central.always(.write, .hang)
            let sends = (0..<3).map { number in
                Task(executorPreference: actor.loop.taskExecutor) {
                    _ = actor
                    try await bench.transport.send(Data([UInt8(number)]))
                }
            }
            await bench.central.reached(.write)
            await bench.transport.disconnect()
            for send in sends { await #expect(throws: MeshError(.linkClosed, "")) { try await send.value } }
            #expect(await bench.central.inFlight == 0)
            #expect(await bench.central.openLinks == 0)
        }
    }

    // MARK: Reconnecting by itself

    @Test func `when the reconnection handler runs the new stream is in place`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop) {
                $0.reconnectsAutomatically = true
                $0.reconnectDelay = .milliseconds(1) ... .milliseconds(2)
            }
            let (back, continuation) = AsyncStream.makeStream(of: AsyncStream<Data>.self)
            let transport = bench.transport
            await transport.setAutoReconnectingHandler { error in bench.log.add("reconnecting \(error!.code)") }
            await transport.setReconnectionHandler {
                bench.log.add("reconnected")
                continuation.yield(transport.assumeIsolated { $0.receivedData })
            }
            await transport.setDisconnectionHandler { error in bench.log.add("ended \(error?.code.slug ?? "as asked")")
            }
            try await transport.connect()
            let old = await transport.receivedData
            await bench.central.link().notify([1])
            await bench.central.configure { $0.device.rssi = -90 }
            bench.log.clear()
            await bench.central.script(.connect, .fail(.unreachable))
            await bench.central.link().lose()
            #expect(await bench.next(2, from: old) == [[1]])
            for await stream in back {
                await bench.central.link().notify([2])
                #expect(await bench.next(1, from: stream) == [[2]])
                break
            }
            await transport.disconnect()
            let entries = bench.log.entries
            #expect(
                entries.starts(with: [
                    "down link.closed-by-peer", "autoReconnecting", "reconnecting link.closed-by-peer",
                ])
                    || entries.starts(with: [
                        "down link.closed-by-peer", "reconnecting link.closed-by-peer", "autoReconnecting",
                    ]))
            #expect(entries.firstIndex(of: "reconnected")! > entries.lastIndex(of: "connected")!)
            #expect(entries.last == "ended as asked")
            #expect(await bench.central.mostInFlight == 1)
        }
    }

    @Test func `the target is switched while an attempt is in flight`() async throws {
        try await onLoop(time: .virtual) { actor in
            let bench = BLEBench(actor.loop)
            await bench.central.script(.connect, .succeedWhenCancelled)
            let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                return await bench.failConnect()
            }
            await bench.central.reached(.connect)
            let other = BLETarget.address(BLEAddress("C0:11:22:33:44:66")!)
            await bench.transport.switchTarget(other)
            #expect(await attempt.value?.code == .cancelled)
            #expect(await bench.central.openLinks == 0)
            try await bench.transport.connect()
            #expect(await bench.central.targets.last == other)
            #expect(await bench.central.openLinks == 1)
            await bench.transport.disconnect()
        }
    }
}

extension BLEBench {
    /// From a test on the loop.
    func sendAtOnce(_ frame: Data) async -> Bool {
        await LoopActor(transport.loop).run { _ in transport.sendAtOnce(frame) }
    }
}
