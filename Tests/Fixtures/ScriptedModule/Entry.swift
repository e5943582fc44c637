// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import CTransportABI
internal import MeshModuleSDK

private let exported = ExportedModule(
    ScriptedFactory.descriptor, validate: ScriptedFactory.issues, identity: ScriptedFactory.device
) {
    loop, _ in ScriptedFactory(loop: loop)
}

/// The module `scripted`.
@c @implementation
public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
