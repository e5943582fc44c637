// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshStream
import Testing

@testable import MeshSerialTransport
@testable import MeshTCPTransport

/// What the end of a stream means, for a socket and for a port.
struct StreamLossTests {
    private typealias Loss = StreamLinkStateMachine.Loss

    @Test func `a connection that the peer closes within ten seconds was taken by another host`() {
        let reset = LoopError(kind: .connectionReset, operation: "read", detail: "")
        for error in [nil, reset] {
            #expect(TCPLoss(.ended(after: .seconds(9)), error) == .closedByPeer(soonAfterConnect: true))
            #expect(TCPLoss(.ended(after: .seconds(10)), error) == .closedByPeer(soonAfterConnect: false))
        }
    }

    @Test func `a connection that the system gives up has failed, however old it is`() {
        let timedOut = LoopError(kind: .timedOut, operation: "read", detail: "")
        #expect(TCPLoss(.ended(after: .zero), timedOut) == .failed)
        #expect(TCPLoss(.ended(after: .seconds(10)), timedOut) == .failed)
        #expect(TCPLoss(.writeStalled, nil) == .writeStalled)
    }

    @Test(arguments: [
        (isPresent: false, after: 1, loss: SerialLoss.unplugged), (isPresent: true, after: 1, loss: .hungUp),
        (isPresent: true, after: 10, loss: .unplugged), (isPresent: false, after: 10, loss: .unplugged),
    ])
    func `a port that hangs up at once though it is there is broken, else it was unplugged`(
        isPresent: Bool, after: Int, loss: SerialLoss
    ) {
        #expect(SerialLoss(.ended(after: .seconds(after)), isPresent: isPresent) == loss)
        #expect(SerialLoss(.writeStalled, isPresent: isPresent) == .writeStalled)
    }
}
