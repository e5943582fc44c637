// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

func fuzzer(_ name: String, _ products: String...) -> Target {
    .executableTarget(
        name: name, dependencies: ["FuzzDriver"] + products.map { .product(name: $0, package: "meshhost") })
}

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "meshhost", path: "../..")],
    targets: [
        .target(name: "CFuzzer"),
        .target(name: "FuzzDriver", dependencies: ["CFuzzer"]),
        fuzzer("FrameDecoderFuzzer", "MeshWire"),
        fuzzer("AdvertisingFuzzer", "MeshWire"),
        fuzzer("ModuleMessageFuzzer", "MeshWire"),
        fuzzer("CompanionFuzzer", "MeshCompanion"),
        fuzzer("PacketFuzzer", "MeshCompanion"),
        fuzzer("LPPFuzzer", "MeshCompanion"),
        fuzzer("DBusFuzzer", "MeshDBus", "CDBus"),
        fuzzer("HCIFuzzer", "MeshBluetoothStack", "MeshWire"),
        fuzzer("ACLFuzzer", "MeshBluetoothStack", "MeshWire"),
        fuzzer("ATTClientFuzzer", "MeshBluetoothStack", "MeshWire"),
        fuzzer("ATTServerFuzzer", "MeshBluetoothStack", "MeshWire"),
        fuzzer("SMPFuzzer", "MeshBluetoothStack", "MeshCrypto", "MeshWire"),
    ],
    swiftLanguageModes: [.v6]
)
