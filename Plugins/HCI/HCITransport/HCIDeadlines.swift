// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack

/// How long a controller and its links may take. Left alone, as the machines have it; tests wait less.
struct HCIDeadlines: Sendable {
    /// Between two attempts to open the line.
    var reopening = ReopeningPolicy.first...ReopeningPolicy.longest
    /// Until a port is open. The kernel's own limit for a host that is not there is minutes.
    var opening = Duration.seconds(10)
    /// Between two attempts to store the keys.
    var storing = Duration.seconds(1) ... .seconds(300)
    var commands = HCICommandFlowStateMachine<HCIController.CommandWaiter>.Configuration()
    var creation = ConnectStateMachine.Configuration()
    var client = ATTClientStateMachine<HCILink.AttributeWaiter>.Configuration()
    var procedures = LinkProcedureStateMachine.Configuration()
    /// Between two packets of a pairing (Core Specification 5.4, Vol 3 Part H §3.4).
    var pairing = Duration.seconds(30)

    init() {
        // The deadline of an attempt is the caller's, who cancels.
        creation.timeout = .seconds(600)
    }
}
