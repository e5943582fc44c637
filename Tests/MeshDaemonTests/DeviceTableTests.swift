// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshDaemon

/// What `meshhost devices` shows of a device's link.
struct DeviceTableTests {
    private func device(
        _ state: DeviceState, _ phase: LinkPhase = .idle, why: String? = nil, last: String? = "no answer"
    ) -> JSONValue {
        [
            "state": .string(state.rawValue), "phase": .string(phase.rawValue), "disabled": .null,
            "last_error": last.map { ["code": "link.timeout", "message": .string($0)] } ?? .null,
            "waiting": why.map { ["why": .string($0), "text": "waiting"] } ?? .null,
        ]
    }

    @Test(arguments: [
        (LinkPhase.connecting, "connecting"), (.idle, "connecting"),
        (.discoveringServices, "connecting: discoveringServices"),
        (.subscribingToNotifications, "connecting: subscribingToNotifications"),
    ])
    func `an attempt shows its phase`(_ phase: LinkPhase, _ shown: String) {
        #expect(DaemonQuestion.state(of: device(.connecting, phase)) == shown)
    }

    @Test func `a link that is up has no phase to show`() {
        #expect(DaemonQuestion.state(of: device(.ready, .connected)) == "ready")
        #expect(DaemonQuestion.note(on: device(.ready, .connected)).isEmpty)
    }

    @Test func `the reason stands beside the wait`() {
        #expect(DaemonQuestion.note(on: device(.disconnected, why: "backoff")) == "waiting")
        #expect(DaemonQuestion.note(on: device(.disconnected, why: "adapter")) == "waiting: no answer")
        #expect(DaemonQuestion.note(on: device(.disconnected, why: "adapter", last: nil)) == "waiting")
        #expect(DaemonQuestion.note(on: device(.connecting, .connecting)) == "last: no answer")
        #expect(DaemonQuestion.note(on: ["disabled": "no module"]) == "no module")
    }
}
