// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

/// Where the SDK was installed: `MESHHOST_SDK` for another prefix than the usual one.
let sdk = Context.environment["MESHHOST_SDK"] ?? "/usr/local/share/meshhost/sdk"

/// YOURS: what configs call the module; a-z, 0-9, _ and -. The same as in `descriptor`.
let name = "acme"

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "meshhost-\(name)",
    products: [
        // The module: what meshhost loads. The library may be linked by any other program.
        .library(name: "meshhost-\(name)", type: .dynamic, targets: ["AcmeModule"]),
        .library(name: "Acme", targets: ["Acme"]),
    ],
    dependencies: [.package(name: "sdk", path: sdk)],
    targets: [
        .target(
            name: "Acme",
            dependencies: [
                .product(name: "MeshTransportAPI", package: "sdk"), .product(name: "MeshLoop", package: "sdk"),
            ],
            swiftSettings: settings),
        .target(
            name: "AcmeModule",
            dependencies: ["Acme", .product(name: "MeshModuleSDK", package: "sdk")],
            swiftSettings: settings,
            // Shows the entry function and nothing else: two modules must not see each other's symbols.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--version-script=\(sdk)/module-exports.map"])]),
        .testTarget(
            name: "AcmeTests",
            dependencies: ["Acme", .product(name: "MeshTransportTesting", package: "sdk")],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
