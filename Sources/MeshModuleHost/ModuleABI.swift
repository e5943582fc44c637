// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI

/// The module ABI as this host knows it.
public enum ModuleABI {
    /// The version that modules are offered, `MAJOR.MINOR`, as `meshhost_transport.h` has it.
    public static var version: String { "\(MH_ABI_MAJOR).\(MH_ABI_MINOR)" }
}
