// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

/// Every key of the configuration. Only the options of modules are declared elsewhere: in their descriptors.
public enum ConfigSchema {
    /// All sections in the order of the reference.
    public static let sections: [SectionSpec] = [
        Root.section, Daemon.section, Journal.section, Link.section, Backoff.section, Module.section, Device.section,
        Companion.section, Share.section, Token.section,
    ]

    enum Root {
        static let configVersion = ConfigKey<Int>(
            "config_version", type: "1", fallback: 1, defaultText: "1",
            help: "The version of this format."
        ) { node throws(Complaint) in
            switch node.value {
            case .integer(1), .unparsed("1"): return 1
            case .integer, .unparsed:
                throw Complaint(
                    .versionUnsupported, "this meshhost reads \"config_version\" 1 only",
                    hint: "install a meshhost that knows the other version, or write config_version = 1")
            default: throw .wrongType("config_version", takes: "a whole number", node, hint: "write config_version = 1")
            }
        }
        static let section = SectionSpec(
            "", help: "The top of the file.",
            keys: [
                configVersion.spec,
                .table("daemon", help: Daemon.section.help),
                .table("journal", help: Journal.section.help),
                .table("defaults", help: "What devices inherit."),
                .table("module", help: "Where modules are and how they run."),
                .table("device", help: "The devices.", isList: true),
                .table("share", help: "Local endpoints through which clients use a device.", isList: true),
            ])
        /// The only key of `[defaults]`.
        static let defaultsKeys: [KeySpec] = [.table("link", help: Link.section.help)]
    }

    enum Daemon {
        static let logLevel = ConfigKey.logLevel(
            "log_level", default: .info, help: "The least grave log records that are written.")
        static let stateDir = ConfigKey.path(
            "state_dir", default: "/var/lib/meshhost", restart: true,
            help: "The folder for what must survive a restart.")
        static let controlSocket = ConfigKey.path(
            "control_socket", default: "/run/meshhost/control.sock", restart: true,
            help: "The Unix socket that the command line talks to.", rule: .socketPath)
        static let modulePath = ConfigKey.paths(
            "module_path", restart: true,
            help: "Folders that are searched for modules, in this order. Empty: the built-in search path.")
        static let section = SectionSpec(
            "[daemon]", help: "The daemon itself.",
            keys: [logLevel.spec, stateDir.spec, controlSocket.spec, modulePath.spec])
    }

    enum Journal {
        static let maxMessages = ConfigKey.int(
            "max_messages", 100...10_000_000, default: 100_000, restart: true,
            help: "How many messages are kept for each device; the oldest go first.")
        static let maxAge = ConfigKey.duration(
            "max_age", .hours(1)...(.days(3_650)), default: .days(30), restart: true,
            help: "How long a message is kept.")
        static let sync = ConfigKey<JournalSync>.choice(
            "sync", default: .full, restart: true,
            help: "When a message counts as kept: once it is on the disk, or once the system has it.")
        static let section = SectionSpec(
            "[journal]", help: "The messages that are kept for clients.",
            keys: [maxMessages.spec, maxAge.spec, sync.spec])
    }

    enum Link {
        static let connectTimeout = ConfigKey.duration(
            "connect_timeout", .milliseconds(10)...(.hours(1)), default: .seconds(10),
            help: "How long one attempt to connect may take.")
        static let maxRetries = ConfigKey.int(
            "max_retries", 0...1_000_000, default: 0,
            help: "How many attempts in a row may fail before the host gives up; 0 means never.")
        static let stableAfter = ConfigKey.duration(
            "stable_after", .zero...(.hours(24)), default: .seconds(30),
            help: "How long a link must have been up for the next loss to start again with the shortest wait.")
        static let contentionBackoff = ConfigKey.duration(
            "contention_backoff", .zero...(.hours(24)), default: .seconds(300),
            help: "How long to wait while another host takes the device away again and again.")
        static let section = SectionSpec(
            "[defaults.link]",
            help: "How links are made and kept. Every device inherits it; the same keys in link of a device win.",
            keys: [
                connectTimeout.spec, .table("backoff", help: Backoff.section.help), maxRetries.spec, stableAfter.spec,
                contentionBackoff.spec,
            ])
    }

    enum Backoff {
        static let first = ConfigKey.duration(
            "first", .milliseconds(1)...(.hours(24)), default: .milliseconds(250),
            help: "The longest wait before the second attempt; it doubles from attempt to attempt.")
        static let max = ConfigKey.duration(
            "max", .milliseconds(1)...(.hours(24)), default: .seconds(30), help: "The longest wait of all.")
        static let section = SectionSpec(
            "backoff of [defaults.link]",
            help: "The waits between attempts to connect: random, up to a bound that grows.",
            keys: [first.spec, max.spec])
    }

    enum Module {
        static let path = ConfigKey.text(
            "path", type: "absolute path",
            help: "The module's shared library.", rule: .absolutePath)
        static let command = ConfigKey.words(
            "command",
            help: "The program that is the module, and its arguments, where it is no library.")
        static let isolation = ConfigKey<ModuleIsolation?>.optionalChoice(
            "isolation", ModuleIsolation.self,
            help:
                "Where a library runs: in processes of its own, or in the daemon's with all its rights, as modules do that come with meshhost."
        )
        static let memory = ConfigKey.int(
            "memory_mib", 0...1_048_576, default: 1_024,
            help: "How much address space a process of the module may have, in MiB; 0 means no limit.")
        static let sha256 = ConfigKey.text(
            "sha256", type: "64 hexadecimal digits",
            help:
                "The digest of the only file that may be the module, its library or its program; `meshhost modules verify` prints it.",
            rule: .sha256)
        static let section = SectionSpec(
            "[module.NAME]", help: "Where a module is and how it runs.",
            keys: [path.spec, command.spec, isolation.spec, memory.spec, sha256.spec])
    }

    enum Device {
        static let name = ConfigKey.text(
            "name", type: "a-z, 0-9, _ and -, at most 32", required: true,
            help: "The stable name of the device in commands, logs and topics.", rule: .name)
        static let module = ConfigKey.text(
            "module", type: "module name", required: true,
            help: "The module that makes the link, such as tcp.", rule: .moduleName)
        static let optional = ConfigKey.bool(
            "optional", default: false,
            help: "Whether the host starts without the device when its module is not available.")
        static let autoconnect = ConfigKey.bool(
            "autoconnect", default: true,
            help: "Whether the link is wanted as long as nobody said otherwise with connect or disconnect.")
        static let proto = ConfigKey<DeviceProtocol>.choice(
            "protocol", default: .companion,
            help: "What the host speaks with the device: the MeshCore companion protocol, or nothing.")
        static let adapter = ConfigKey.text(
            "adapter", type: "text",
            help:
                "The local hardware that the link goes through, such as hci0, for modules with an option adapter.",
            rule: .notEmpty)
        static let section = SectionSpec(
            "[[device]]",
            help: "One device. The options of its module stand here too, or below options.",
            keys: [
                name.spec, module.spec, optional.spec, autoconnect.spec, proto.spec, adapter.spec,
                .table("companion", help: Companion.section.help), .table("link", help: Link.section.help),
                .table("options", help: "The module's options, where one is called like a key of this section."),
            ])
        /// The keys that are not options of a module.
        static let keyNames = Set(section.keys.map(\.name))
    }

    enum Companion {
        static let sendWait = ConfigKey.duration(
            "send_wait", .zero...(.hours(1)), default: .seconds(4),
            help:
                "How long what a client sends may wait while the radio is away, unless it was disconnected on purpose; 0s refuses it at once."
        )
        static let setClock = ConfigKey.bool(
            "set_clock", default: true, help: "Whether the radio's clock is set when it is behind the host's.")
        static let backlog = ConfigKey.int(
            "backlog", 0...100_000, default: 16,
            help: "How many of the newest messages a client gets that was never here before.")
        static let probeAfter = ConfigKey.duration(
            "probe_after", .seconds(1)...(.hours(1)), default: .seconds(30),
            help: "How long nothing may come from the radio before it is asked whether it is still there.")
        static let section = SectionSpec(
            "companion of [[device]]", help: "How the host plays the radio for its clients.",
            keys: [sendWait.spec, setClock.spec, backlog.spec, probeAfter.spec])
    }

    enum Share {
        static let name = ConfigKey.text(
            "name", type: "a-z, 0-9, _ and -, at most 32",
            help:
                "The name of the share, by which later layers change it, and by which clients find their place in the "
                + "messages again: without one a share that listens elsewhere is another.",
            rule: .name)
        static let type = ConfigKey.requiredChoice(
            "type", ShareKind.self, help: "What clients speak: the companion protocol over TCP or a Unix socket.")
        static let device = ConfigKey.text(
            "device", type: "device name", required: true, help: "The device that clients use.", rule: .notEmpty)
        static let listen = ConfigKey.textOrList(
            "listen", type: "\"host:port\", a list of them, or an absolute path", help: "Where clients connect to.")
        static let role = ConfigKey<ShareRole>.choice(
            "role", default: .chat, help: "The most a client may do; where there are tokens, each has its own.")
        static let insecure = ConfigKey.bool(
            "insecure", default: false,
            help: "Whether clients on the network may connect without tokens or without TLS.")
        static let tlsCertificate = ConfigKey.text(
            "tls_certificate", type: "absolute path",
            help: "The certificate that clients are shown, and those that vouch for it: PEM, the server's own first.",
            rule: .absolutePath)
        static let tlsKey = ConfigKey.text(
            "tls_key", type: "absolute path", help: "The private key of the certificate: PEM, without a passphrase.",
            rule: .absolutePath)
        static let maxClients = ConfigKey.int(
            "max_clients", 1...1000, default: 16, help: "How many clients may be connected at once.")
        static let queueFrames = ConfigKey.int(
            "queue_frames", 1...65_536, default: 256, help: "How many frames may wait for one client.")
        static let queueBytes = ConfigKey.int(
            "queue_bytes", 1024...16_777_216, default: 65_536, help: "How many bytes may wait for one client.")
        static let stuckTimeout = ConfigKey.duration(
            "stuck_timeout", .milliseconds(100)...(.hours(24)), default: .seconds(30),
            help: "How long a client may take nothing before it is disconnected.")
        static let rxLog = ConfigKey.bool(
            "rx_log", default: false,
            help: "Whether clients get a log of every packet that the radio hears (push 0x88).")
        static let echo = ConfigKey.bool(
            "echo", default: false,
            help: "Whether clients see what others send to channels, as messages from the radio itself.")
        static let airtimePercent = ConfigKey.int(
            "airtime_percent", 0...100, default: 10,
            help: "How much of the time the sends of all clients may be on the air; 0 for no limit.")
        static let airtimeBurst = ConfigKey.duration(
            "airtime_burst", .seconds(1)...(.hours(1)), default: .seconds(60),
            help: "How much time on the air may be used at once after a pause.")
        static let section = SectionSpec(
            "[[share]]", help: "A local endpoint through which clients use a device.",
            keys: [
                name.spec, type.spec, device.spec, listen.spec, role.spec, insecure.spec, tlsCertificate.spec,
                tlsKey.spec, .table("token", help: Token.section.help, isList: true), maxClients.spec,
                queueFrames.spec, queueBytes.spec, stuckTimeout.spec, rxLog.spec, echo.spec, airtimePercent.spec,
                airtimeBurst.spec,
            ])
    }

    enum Token {
        static let name = ConfigKey.text(
            "name", type: "a-z, 0-9, _ and -, at most 32", required: true,
            help: "Whose token it is: in lists, in events, and for the messages that a client has not read yet.",
            rule: .name)
        static let role = ConfigKey<ShareRole>.choice("role", default: .chat, help: "The most its clients may do.")
        /// Read as the secret options of modules are.
        static let secret = KeySpec(
            name: "secret", typeText: "reference to a secret", defaultText: nil, isRequired: true, needsRestart: false,
            help: "What only its clients and the host know, 16 characters or more.")
        static let section = SectionSpec(
            "[[share.token]]", help: "Who may use the share: only clients that prove to have one of its tokens.",
            keys: [name.spec, role.spec, secret])
    }
}

extension KeySpec {
    /// A key that holds further keys.
    static func table(_ name: String, help: String, isList: Bool = false) -> KeySpec {
        KeySpec(
            name: name, typeText: isList ? "list of tables" : "table", defaultText: nil, isRequired: false,
            needsRestart: false, help: help)
    }
}

extension Duration {
    fileprivate static func hours(_ count: Int64) -> Duration { .seconds(count * 3_600) }
    fileprivate static func days(_ count: Int64) -> Duration { .hours(count * 24) }
}
