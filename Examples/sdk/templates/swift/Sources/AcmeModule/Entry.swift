// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Acme
public import CTransportABI
internal import MeshModuleSDK

private let exported = ExportedModule { loop, _ in AcmeTransportFactory(loop: loop) }

/// The one function that a module exports.
@c @implementation
public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
