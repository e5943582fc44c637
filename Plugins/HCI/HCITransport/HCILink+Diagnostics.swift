// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI

/// What the link runs with.
extension HCILink {
    var diagnostics: [String: JSONValue] {
        let parameters = machine.parameters
        var object: [String: JSONValue] = [
            "att_requests": .int(Int64(machine.attributeRequests)), "att_mtu": .int(Int64(machine.mtu)),
            "phy": .string(phyName), "interval_ms": .double(Double(parameters.interval) * 1.25),
            "latency": .int(Int64(parameters.latency)),
            "supervision_ms": .int(Int64(parameters.supervisionTimeout) * 10),
            "data_length": .int(Int64(machine.dataLength.octets)), "encrypted": .bool(machine.protection != .open),
            "authenticated": .bool(machine.protection == .authenticated), "cache_hit": .bool(cache.isHit),
            "parameter_refusals": .int(Int64(machine.parameterRefusals)),
        ]
        if let setUpRequests { object["setup_att_requests"] = .int(Int64(setUpRequests)) }
        let outstanding = controller.assumeIsolated { $0.outbound?.outstandingCount(handle) ?? 0 }
        object["acl_outstanding"] = .int(Int64(outstanding))
        return object
    }

    private var phyName: String {
        switch machine.transmitPHY {
        case 1: "1m"
        case 2: "2m"
        default: "coded"
        }
    }
}
