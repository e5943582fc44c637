// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

func fuzzer(_ name: String, _ product: String) -> Target {
    .executableTarget(name: name, dependencies: ["FuzzDriver", .product(name: product, package: "meshhost")])
}

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "meshhost", path: "../..")],
    targets: [
        .target(name: "CFuzzer"),
        .target(name: "FuzzDriver", dependencies: ["CFuzzer"]),
        fuzzer("FrameDecoderFuzzer", "MeshWire"),
        fuzzer("AdvertisingFuzzer", "MeshWire"),
        fuzzer("CompanionFuzzer", "MeshCompanion"),
        fuzzer("PacketFuzzer", "MeshCompanion"),
        fuzzer("LPPFuzzer", "MeshCompanion"),
    ],
    swiftLanguageModes: [.v6]
)
