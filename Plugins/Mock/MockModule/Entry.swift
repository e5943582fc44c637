// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import CTransportABI
internal import MeshMockTransport
internal import MeshModuleSDK

private let exported = ExportedModule { loop, _ in MockTransportFactory(loop: loop) }

/// The module `mock`.
@c @implementation
public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
