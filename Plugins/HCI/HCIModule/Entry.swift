// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import CTransportABI
internal import MeshHCITransport
internal import MeshModuleSDK

private let exported = ExportedModule { loop, log in HCITransportFactory(loop: loop, log: log) }

/// The module `hci`.
@c @implementation
public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
