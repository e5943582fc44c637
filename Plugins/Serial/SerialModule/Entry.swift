// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import CTransportABI
internal import MeshModuleSDK
internal import MeshSerialTransport

private let exported = ExportedModule { loop, _ in SerialTransportFactory(loop: loop) }

/// The module `serial`.
@c @implementation
public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
