// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the command line asks for.
enum HostCommand: Equatable {
    case run
    case check
    case configShow
    case configSchema
    case modules
    /// Nil: all.
    case modulesReset(String?)
    /// Names or files; empty: all.
    case modulesVerify([String])
    case status
    case devices
    case device(name: String, DeviceVerb)
    case clients
    case listen(ListenOptions)
    case reload
    case scan(ScanOptions)
    case pair(PairOptions)
    case unpair(PairOptions)
    case doctor
    /// What a controller of the module `hci` is and can do.
    case controllerInfo(String)
    case bridge(BridgeOptions)
    case decode(DecodeSubject, hex: String, DecodeOptions)
    case decodeBluetooth(BluetoothSubject, hex: String, DecodeOptions)
    case decodeRecording(path: String, DecodeOptions)
    case encode(DecodeSubject, json: String)
    case moduleTest(ModuleTestOptions)
    case completion(CommandCompletion.Shell)
    case version
    /// Of the whole program, of a command, or of all that begin with a word.
    case help(CommandHelp.Topic)

    /// What the bytes are that `decode` gets and `encode` gives.
    enum DecodeSubject: String, Equatable, CaseIterable {
        /// A companion frame: bare, or for `decode` in its framing.
        case companion
        /// A packet as it goes over the air: what a received-packet log holds.
        case packet
        /// Cayenne LPP sensor readings: what telemetry holds.
        case lpp
    }

    /// What the bytes of Bluetooth are that `decode` gets.
    enum BluetoothSubject: String, Equatable, CaseIterable {
        /// Packets between host and controller, each with H4's indicator.
        case hci
        /// An attribute protocol packet.
        case att
        /// A Security Manager packet.
        case smp
    }

    /// What `decode` has to know beside the bytes.
    struct DecodeOptions: Equatable {
        /// Channels whose packets are decrypted, beside Public: `#NAME`, or `NAME=KEY` in hexadecimal.
        var channels: [String] = []
        /// The request, in hexadecimal, that a binary response answers.
        var request: String?
        /// Whether keys, PINs and passwords are shown.
        var showsSecrets = false
        /// Of a recording: a line of JSON for each packet.
        var isLines = false
    }

    /// What can be done to one device.
    enum DeviceVerb: Equatable {
        case status
        case connect
        case disconnect
        /// For so long; nil: until told otherwise.
        case release(for: Duration?)
        case reconnect
    }

    /// What `scan` looks for, and how it shows it.
    struct ScanOptions: Equatable {
        /// Nil: all that the config uses.
        var module: String?
        var time: Duration = .seconds(10)
        /// A line of JSON for each sighting.
        var isLines = false
    }

    /// What `pair` and `unpair` are told.
    struct PairOptions: Equatable {
        /// A configured device's name or address, or any address.
        var target: String
        var module: String?
        var adapter: String?
        /// As it stands there; `-` for standard input.
        var pin: String?
    }

    /// What `listen` shows.
    struct ListenOptions: Equatable {
        var device: String?
        var types: [String] = []
        var since: UInt64?
        var count: Int?
    }
}

/// What stands beside the command.
struct HostOptions: Equatable {
    var configFiles: [String] = []
    var assignments: [String] = []
    var controlSocket: String?
    var isJSON = false
    var isQuiet = false
}

/// A mistake on the command line: what is wrong and what to type.
struct UsageError: Error, Equatable {
    var message: String
    /// The words of the command whose help says more; nil: the help of the whole.
    var topic: String?
}
