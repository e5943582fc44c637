// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "meshhost", path: "../..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "FrameDecoderFuzzer", dependencies: ["CFuzzer", .product(name: "MeshWire", package: "meshhost")]),
    ],
    swiftLanguageModes: [.v6]
)
