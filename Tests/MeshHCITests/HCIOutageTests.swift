// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct HCIOutageTests {
    @Test(arguments: [
        (LoopError.Kind.notFound, "no such thing"), (.connectionRefused, "nobody listens"),
        (.permissionDenied, "this user"), (.system, "EBUSY: busy"),
    ])
    func `a port that cannot be opened is named, and why`(kind: LoopError.Kind, words: String) {
        let error = LoopError(kind: kind, operation: "connect", detail: "EBUSY: busy")
        let text = HCIOutage.unopened(error).error(.unix(path: "/run/hci0")).message
        #expect(text.contains("unix:/run/hci0"))
        #expect(text.contains(words))
    }

    @Test(arguments: [
        HCIOutage.silent, .lost, .unfit(.noBuffers), .reset(.hardwareError(66)), .reset(.commandTimedOut(.readRSSI)),
    ])
    func `every outage names the controller and what to try`(outage: HCIOutage) {
        #expect(outage.message(.tcp(host: "h", port: 1)).hasPrefix("the controller at tcp:h:1"))
        #expect(!outage.advice.isEmpty)
    }

    @Test(.timeLimit(.minutes(10))) func `who asks for a controller that is not there is told so at once`() async throws
    {
        try await onLoop(time: .virtual) { actor in
            let port = HCIPort.unix(path: "/nonexistent/hci0")
            let controllers = HCIControllers(loop: actor.loop, log: .none)
            let central = HCICentral(controllers: controllers, port: port, bondDirectory: "")
            let (states, continuation) = AsyncStream.makeStream(of: BluetoothState.self)
            let observation = await central.observeState { continuation.yield($0) }
            var texts: [String] = []
            for await state in states {
                guard case .unusable(let text) = state else {
                    Issue.record("the controller is usable")
                    return
                }
                texts.append(text)
                if text.contains("no such thing") { break }
            }
            #expect(texts.count == 2)
            #expect(texts.first?.contains("has not answered yet") == true)
            _ = observation
            await controllers.close()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `who does not wait for a slow controller is told that it is slow`()
        async throws
    {
        try await HCIBench.run(deadlines: HCIDeadlines()) { actor, bench in
            await bench.controller.configure { $0.ignored = [.readLocalVersion] }
            let transport = bench.transport(.init(), { $0.bluetoothGrace = .seconds(1) })
            let error = await #expect(throws: MeshError.self) { try await transport.connect() }
            #expect(error?.code == .adapterUnavailable)
            #expect(error?.message.contains("has not answered yet") == true, "\(error?.message ?? "")")
            await transport.disconnect()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `an attempt that ends with a reset of the controller says why`() async throws {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            await bench.controller.configure {
                $0.peers[0].isAdvertising = false
                $0.ignored = [.readRSSI]
            }
            let attempt = await bench.beginAttempt()
            await bench.host.send(.read(.readRSSI, of: ConnectionHandle(0x40)), .nobody)
            let error = await attempt.value?.error
            #expect(error?.code == .adapterUnavailable)
            #expect(error?.message.contains("is reset: it left the command \(HCIOpcode.readRSSI) unanswered") == true)
            // And nothing of it is left when that is over.
            await bench.controller.heal()
            await bench.poweredOn()
            await (try await bench.connect()).close()
        }
    }

    /// localhost is ::1 as well on many machines that have IPv6.
    @Test(.timeLimit(.minutes(10))) func `each address of a host is tried`() async throws {
        try await onLoop { actor in
            for host in ["127.0.0.1", "::1"] {
                guard let address = SocketAddress(ip: host, port: 0),
                    case var listener = try? LoopListener(actor.loop, on: address, onConnection: { _ in }),
                    let number = listener?.address.port
                else { continue }
                let addresses = try await actor.loop.resolve(host: "localhost", port: number)
                guard addresses.contains(where: { "\($0)" == "\(listener?.address ?? address)" }) else { continue }
                let port = HCIPort.tcp(host: "localhost", port: number)
                await (try await port.open(actor.loop, takingFromOthers: false)).close()
                listener = nil
                do throws(MeshError) {
                    _ = try await port.open(actor.loop, takingFromOthers: false)
                    Issue.record("opened")
                } catch {
                    #expect(error.code == .adapterUnavailable)
                    for address in addresses where addresses.count > 1 {
                        #expect(error.message.contains("\(address): nobody listens there"), "\(error.message)")
                    }
                }
            }
        }
    }

    @Test func `an address that answers says more than one that no way leads to`() {
        func failure(_ host: String, _ kind: LoopError.Kind) -> (SocketAddress, LoopError) {
            (SocketAddress(ip: host, port: 9)!, LoopError(kind: kind, operation: "connect", detail: "\(kind)"))
        }
        let outage = HCIOutage(
            LoopStream.ConnectFailures(
                failures: [failure("::1", .networkUnreachable), failure("127.0.0.1", .connectionRefused)],
                isCancelled: false))
        let error = outage.error(.tcp(host: "roof", port: 9))
        #expect(
            error.message.hasPrefix(
                "the controller at tcp:roof:9 cannot be opened: [::1]:9: networkUnreachable, "
                    + "127.0.0.1:9: nobody listens there; "), "\(error.message)")
        #expect(error.message.contains("what serves it running"))
        let cancelled = LoopStream.ConnectFailures(failures: [failure("::1", .timedOut)], isCancelled: true)
        #expect(HCIOutage(cancelled).error(.tcp(host: "roof", port: 9)).code == .cancelled)
        let none = LoopStream.ConnectFailures(failures: [], isCancelled: false)
        #expect(HCIOutage(none).message(.tcp(host: "roof", port: 9)).contains("the host is not known"))
    }

    @Test(.timeLimit(.minutes(1))) func `a port where nobody answers is given up`() async throws {
        try await onLoop { actor in
            let silence = try Silence()
            var deadlines = HCIDeadlines()
            deadlines.opening = .milliseconds(50)
            let controllers = HCIControllers(loop: actor.loop, log: .none, deadlines: deadlines)
            let port = HCIPort.tcp(host: "127.0.0.1", port: silence.port)
            do throws(MeshError) {
                _ = try await controllers.controller(at: port, bonds: "").describe()
                Issue.record("opened")
            } catch {
                #expect(error.message.contains("nobody answered within 50ms"), "\(error.message)")
                #expect(error.message.contains("and the host up?"), "\(error.message)")
            }
            await controllers.close()
        }
    }
}

/// A port where a connection is neither made nor refused: Linux drops the SYN for which the accept queue has no room.
private final class Silence {
    let port: UInt16
    private let sockets: [Int32]

    init() throws {
        func tcp() -> Int32 {
            Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        }
        let sockets = [tcp(), tcp(), tcp()]
        self.sockets = sockets
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                var status = bind(sockets[0], address, length) | listen(sockets[0], 0)
                status |= getsockname(sockets[0], address, &length)
                // The queue of one is full with these.
                for filler in sockets.dropFirst() { _ = connect(filler, address, length) }
                return status
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(status == 0)
    }

    deinit {
        for socket in sockets { close(socket) }
    }
}
