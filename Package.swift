// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
import PackageDescription

/// What every Swift target is compiled with. Warnings are errors in our own code.
let common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .treatAllWarnings(as: .error),
]

func swiftTarget(_ name: String, _ dependencies: [Target.Dependency] = [], path: String? = nil) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: common)
}

/// A target whose only file exports the module ABI. The linker keeps everything else of it hidden, so that two modules,
/// each with its own copy of the Swift targets, do not see each other's symbols.
func moduleTarget(_ name: String, _ dependencies: [Target.Dependency] = [], path: String) -> Target {
    .target(
        name: name, dependencies: dependencies + ["MeshModuleSDK", "CTransportABI"], path: path, swiftSettings: common,
        linkerSettings: [
            .unsafeFlags(["-Xlinker", "--version-script=\(Context.packageDirectory)/Plugins/module-exports.map"])
        ])
}

func tests(
    _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource]? = nil
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, path: "Tests/\(name)", exclude: exclude, resources: resources,
        swiftSettings: common)
}

let package = Package(
    name: "meshhost",
    products: [
        .executable(name: "meshhost", targets: ["meshhost"]),
        .library(name: "MeshTransportAPI", targets: ["MeshTransportAPI"]),
        .library(name: "MeshLoop", targets: ["MeshLoop"]),
        .library(name: "MeshWire", targets: ["MeshWire"]),
        .library(name: "MeshCrypto", targets: ["MeshCrypto"]),
        .library(name: "MeshBluetoothStack", targets: ["MeshBluetoothStack"]),
        .library(name: "MeshCompanion", targets: ["MeshCompanion"]),
        .library(name: "MeshRuntime", targets: ["MeshRuntime"]),
        .library(name: "MeshJournal", targets: ["MeshJournal"]),
        .library(name: "MeshModuleSDK", targets: ["MeshModuleSDK"]),
        .library(name: "MeshTransportTesting", targets: ["MeshTransportTesting"]),
        .library(name: "MeshStream", targets: ["MeshStream"]),
        .library(name: "MeshModuleTesting", targets: ["MeshModuleTesting"]),
        .library(name: "MeshTCPTransport", targets: ["MeshTCPTransport"]),
        .library(name: "MeshSerialTransport", targets: ["MeshSerialTransport"]),
        .library(name: "MeshMockTransport", targets: ["MeshMockTransport"]),
        .library(name: "MeshBLE", targets: ["MeshBLE"]),
        .library(name: "MeshDBus", targets: ["MeshDBus"]),
        // For the fuzzer alone, which compares with libdbus.
        .library(name: "CDBus", targets: ["CDBus"]),
        .library(name: "MeshBlueZTransport", targets: ["MeshBlueZTransport"]),
        .library(name: "MeshHCITransport", targets: ["MeshHCITransport"]),
        // Modules: what the daemon loads when a config names them.
        .library(name: "meshhost-tcp", type: .dynamic, targets: ["TCPModule"]),
        .library(name: "meshhost-serial", type: .dynamic, targets: ["SerialModule"]),
        .library(name: "meshhost-mock", type: .dynamic, targets: ["MockModule"]),
        .library(name: "meshhost-bluez", type: .dynamic, targets: ["BlueZModule"]),
        .library(name: "meshhost-hci", type: .dynamic, targets: ["HCIModule"]),
        // Modules that only the tests load.
        .library(name: "fixture-rude", type: .dynamic, targets: ["RudeModule"]),
        .library(name: "fixture-faulty", type: .dynamic, targets: ["FaultyModule"]),
        .library(name: "fixture-other-major", type: .dynamic, targets: ["OtherMajorModule"]),
        .library(name: "fixture-scripted", type: .dynamic, targets: ["ScriptedModule"]),
        .library(name: "fixture-first-minor", type: .dynamic, targets: ["FirstMinorModule"]),
        .library(name: "fixture-later-minor", type: .dynamic, targets: ["LaterMinorModule"]),
    ],
    targets: [
        // C
        .systemLibrary(name: "CLibUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
        // Definitions alone: there is nothing to link.
        .systemLibrary(name: "CBluetooth", providers: [.apt(["libbluetooth-dev"])]),
        // OpenSSL is loaded when it is first needed, not linked, so there is no pkgConfig (Sources/COpenSSL/shim.h).
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
        .target(name: "CProcess", cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
        .target(name: "CSerialLine", cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
        .target(name: "CTransportABI", cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
        .target(
            name: "CToml", cxxSettings: [.define("TOML_EXCEPTIONS", to: "0"), .define("TOML_HEADER_ONLY", to: "1")]),
        // pure
        swiftTarget("MeshWire"),
        swiftTarget("MeshCrypto", ["COpenSSL"]),
        swiftTarget("MeshBluetoothStack", ["MeshWire", "MeshCrypto"]),
        swiftTarget("MeshCompanion", ["MeshWire", "MeshCrypto", "MeshTransportAPI"]),
        // contracts
        swiftTarget("MeshTransportAPI"),
        // runtime
        swiftTarget("MeshLoop", ["CLibUV", "CSerialLine"]),
        swiftTarget("MeshStream", ["MeshTransportAPI", "MeshLoop", "MeshWire"]),
        swiftTarget("MeshDBus", ["CDBus", "MeshLoop"]),
        swiftTarget("MeshBLE", ["MeshTransportAPI", "MeshLoop", "MeshWire"]),
        swiftTarget("MeshRuntime", ["MeshTransportAPI", "MeshLoop"]),
        swiftTarget("MeshJournal", ["CSQLite", "MeshTransportAPI", "MeshLoop"]),
        swiftTarget(
            "MeshModuleHost", ["CTransportABI", "CProcess", "MeshTransportAPI", "MeshLoop", "MeshWire", "MeshCrypto"]),
        swiftTarget("MeshModuleSDK", ["CTransportABI", "MeshTransportAPI", "MeshLoop"]),
        swiftTarget("MeshTransportTesting", ["MeshTransportAPI"]),
        swiftTarget(
            "MeshModuleTesting",
            ["CTransportABI", "MeshTransportAPI", "MeshLoop", "MeshModuleHost", "MeshTransportTesting"]),
        // host
        swiftTarget("MeshConfig", ["CToml", "MeshTransportAPI"]),
        swiftTarget(
            "MeshSharing",
            [
                "MeshWire", "MeshCrypto", "MeshCompanion", "MeshTransportAPI", "MeshLoop", "MeshRuntime", "MeshJournal",
            ]),
        swiftTarget(
            "MeshDaemon",
            [
                "MeshWire", "MeshCrypto", "MeshCompanion", "MeshTransportAPI", "MeshLoop", "MeshRuntime", "MeshJournal",
                "MeshModuleHost", "MeshModuleTesting", "MeshConfig", "MeshSharing", "MeshBluetoothStack",
            ]),
        .executableTarget(name: "meshhost", dependencies: ["MeshDaemon"], swiftSettings: common),
        // modules
        swiftTarget(
            "MeshTCPTransport", ["MeshTransportAPI", "MeshLoop", "MeshStream"],
            path: "Plugins/TCP/TCPTransport"),
        moduleTarget("TCPModule", ["MeshTCPTransport"], path: "Plugins/TCP/TCPModule"),
        swiftTarget(
            "MeshSerialTransport", ["MeshTransportAPI", "MeshLoop", "MeshStream"],
            path: "Plugins/Serial/SerialTransport"),
        moduleTarget("SerialModule", ["MeshSerialTransport"], path: "Plugins/Serial/SerialModule"),
        swiftTarget(
            "MeshMockTransport", ["MeshTransportAPI", "MeshLoop", "MeshWire"],
            path: "Plugins/Mock/MockTransport"),
        moduleTarget("MockModule", ["MeshMockTransport"], path: "Plugins/Mock/MockModule"),
        swiftTarget(
            "MeshBlueZTransport", ["MeshTransportAPI", "MeshLoop", "MeshBLE", "MeshDBus", "MeshWire"],
            path: "Plugins/BlueZ/BlueZTransport"),
        moduleTarget("BlueZModule", ["MeshBlueZTransport"], path: "Plugins/BlueZ/BlueZModule"),
        swiftTarget(
            "MeshHCITransport",
            [
                "CBluetooth", "MeshTransportAPI", "MeshLoop", "MeshRuntime", "MeshBLE", "MeshBluetoothStack",
                "MeshCrypto",
                "MeshWire",
            ],
            path: "Plugins/HCI/HCITransport"),
        moduleTarget("HCIModule", ["MeshHCITransport"], path: "Plugins/HCI/HCIModule"),
        // examples: what is shown is compiled and tested here, with the rest
        swiftTarget(
            "Acme", ["MeshTransportAPI", "MeshLoop"],
            path: "Examples/sdk/templates/swift/Sources/Acme"),
        .executableTarget(
            name: "EmbeddedHost",
            dependencies: ["Acme", "MeshTransportAPI", "MeshLoop", "MeshRuntime", "MeshCompanion"],
            path: "Examples/EmbeddedHost/Sources", swiftSettings: common),
        // tests
        .target(
            name: "MeshTestSupport", dependencies: ["MeshLoop"], path: "Tests/MeshTestSupport", swiftSettings: common),
        tests("MeshWireTests", ["MeshWire", "MeshTestSupport"]),
        tests(
            "MeshBluetoothStackTests", ["MeshBluetoothStack", "MeshCrypto", "MeshWire", "MeshTestSupport"],
            exclude: ["Transcripts"]),
        tests("MeshCryptoTests", ["MeshCrypto", "MeshTestSupport"]),
        tests(
            "MeshCompanionTests", ["MeshCompanion", "MeshCrypto", "MeshWire", "MeshTransportAPI", "MeshTestSupport"]),
        tests(
            "MeshCoreSessionTests",
            ["MeshCompanion", "MeshMockTransport", "MeshTransportAPI", "MeshLoop", "MeshTestSupport"]),
        tests("MeshTransportAPITests", ["MeshTransportAPI"]),
        tests("MeshLoopTests", ["MeshLoop", "MeshTestSupport"]),
        tests("MeshRuntimeTests", ["MeshRuntime", "MeshTransportAPI", "MeshLoop", "MeshTestSupport"]),
        .target(
            name: "MeshDBusTestSupport", dependencies: ["MeshDBus", "MeshLoop", "MeshTestSupport"],
            path: "Tests/MeshDBusTestSupport", swiftSettings: common),
        tests(
            "MeshDBusTests",
            ["MeshDBus", "CDBus", "MeshLoop", "CLibUV", "MeshTestSupport", "MeshDBusTestSupport"]),
        tests(
            "MeshBLETests",
            ["MeshBLE", "MeshTransportAPI", "MeshLoop", "MeshWire", "MeshTransportTesting", "MeshTestSupport"]),
        tests(
            "MeshBlueZTests",
            [
                "MeshBlueZTransport", "MeshBLE", "MeshDBus", "MeshTransportAPI", "MeshLoop", "MeshWire",
                "MeshTestSupport", "MeshDBusTestSupport",
            ]),
        tests(
            "MeshHCITests",
            [
                "MeshHCITransport", "MeshBLE", "MeshBluetoothStack", "MeshTransportAPI", "MeshLoop", "MeshWire",
                "MeshCrypto", "MeshTestSupport",
            ]),
        tests(
            "MeshJournalTests",
            ["MeshJournal", "MeshTransportAPI", "MeshLoop", "MeshTestSupport", "JournalProgram"]),
        .executableTarget(
            name: "JournalProgram", dependencies: ["MeshJournal", "MeshTransportAPI", "MeshLoop"],
            path: "Tests/Fixtures/JournalProgram", swiftSettings: common),
        tests(
            "MeshModuleTests",
            [
                "MeshModuleHost", "MeshTransportAPI", "MeshLoop", "CTransportABI", "MeshTransportTesting",
                "MeshTestSupport",
            ]),
        tests(
            "MeshModuleTestingTests",
            [
                "MeshModuleTesting", "MeshModuleHost", "MeshTransportTesting", "MeshTransportAPI", "MeshLoop",
            ]),
        .target(name: "RudeModule", dependencies: ["CTransportABI"], path: "Tests/Fixtures/RudeModule"),
        .target(name: "FaultyModule", dependencies: ["CTransportABI"], path: "Tests/Fixtures/FaultyModule"),
        .target(name: "OtherMajorModule", path: "Tests/Fixtures/OtherMajorModule"),
        .target(
            name: "FirstMinorModule", path: "Tests/Fixtures/FirstMinorModule", cSettings: [.headerSearchPath("..")]),
        .target(
            name: "LaterMinorModule", dependencies: ["CTransportABI"], path: "Tests/Fixtures/LaterMinorModule",
            cSettings: [.headerSearchPath("..")]),
        moduleTarget(
            "ScriptedModule", ["MeshTransportAPI", "MeshLoop"], path: "Tests/Fixtures/ScriptedModule"),
        tests("MeshConfigTests", ["MeshConfig", "MeshTransportAPI", "MeshTestSupport"], exclude: ["Broken", "Valid"]),
        tests(
            "MeshSharingTests",
            [
                "MeshSharing", "MeshCompanion", "MeshCrypto", "MeshWire", "MeshRuntime", "MeshJournal",
                "MeshTransportAPI", "MeshLoop",
                "MeshMockTransport", "MeshTestSupport",
            ]),
        tests(
            "TransportConformanceTests",
            [
                "MeshTransportTesting", "MeshTransportAPI", "MeshLoop", "MeshStream", "MeshWire", "MeshTCPTransport",
                "MeshSerialTransport", "MeshMockTransport", "MeshModuleHost", "MeshTestSupport",
            ]),
        tests(
            "MeshDaemonTests",
            [
                "MeshDaemon", "MeshConfig", "MeshRuntime", "MeshModuleHost", "MeshWire", "MeshTransportAPI", "MeshLoop",
                "MeshTestSupport",
            ]),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11,
    cxxLanguageStandard: .cxx17
)
