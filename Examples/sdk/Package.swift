// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

// What transports of somebody's own are built with: installed as PREFIX/share/meshhost/sdk, with the sources of these targets
// beside it. A module has its own copy of them; only the C ABI is shared with the host.

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
]

func library(_ name: String) -> Product { .library(name: name, targets: [name]) }

func target(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
    name: "sdk",
    products: [
        library("MeshTransportAPI"), library("MeshLoop"), library("MeshModuleSDK"), library("MeshTransportTesting"),
    ],
    targets: [
        .systemLibrary(name: "CLibUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .target(name: "CTransportABI"),
        .target(name: "CSerialLine"),
        target("MeshTransportAPI"),
        target("MeshLoop", ["CLibUV", "CSerialLine"]),
        target("MeshModuleSDK", ["CTransportABI", "MeshTransportAPI", "MeshLoop"]),
        target("MeshTransportTesting", ["MeshTransportAPI"]),
    ],
    swiftLanguageModes: [.v6]
)
