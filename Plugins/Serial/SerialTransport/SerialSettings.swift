// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
internal import MeshStream
public import MeshTransportAPI

/// Which serial port is meant.
public enum SerialChoice: Sendable, Hashable {
    case path(String)
    /// The first port of such a device.
    case usb(USBIdentity)
}

extension SerialChoice: CustomStringConvertible {
    /// For people.
    public var description: String {
        switch self {
        case .path(let path): path
        case .usb(let identity): "USB device \(identity)"
        }
    }
}

/// What a ``SerialTransport`` needs to know.
public struct SerialSettings: Sendable, Hashable {
    public var choice: SerialChoice
    public var baud: UInt32
    public var hardwareFlowControl: Bool
    /// How DTR and RTS are to be. Nil: what is known of the board, and the other way when that gets no answer.
    public var control: SerialControl?
    /// How long the board gets after the port was opened.
    public var bootDelay: Duration
    /// How long after the first frame there must be an answer, before the lines are tried the other way.
    public var answerTimeout: Duration
    /// How long written frames may wait without any of them going to the kernel.
    public var writeTimeout: Duration
    /// The largest payload of a frame, in bytes, both ways.
    public var maximumFrame: Int
    public var partialFrameTimeout: Duration
    /// Whether frames that fit no layout of companion radios are searched for others.
    public var checksLayout: Bool

    /// The defaults are those of ``options``.
    public init(
        choice: SerialChoice, baud: UInt32 = 115_200, hardwareFlowControl: Bool = false, control: SerialControl? = nil,
        bootDelay: Duration = .zero, answerTimeout: Duration = .seconds(2), writeTimeout: Duration = .seconds(5),
        maximumFrame: Int = 176, partialFrameTimeout: Duration = .seconds(2), checksLayout: Bool = true
    ) {
        self.choice = choice
        self.baud = baud
        self.hardwareFlowControl = hardwareFlowControl
        self.control = control
        self.bootDelay = bootDelay
        self.answerTimeout = answerTimeout
        self.writeTimeout = writeTimeout
        self.maximumFrame = maximumFrame
        self.partialFrameTimeout = partialFrameTimeout
        self.checksLayout = checksLayout
    }
}

extension SerialSettings {
    /// The values of the option `boot`; nil is `auto`.
    private static let boots: [(name: String, control: SerialControl?)] = [
        ("auto", nil), ("on", SerialControl(dtr: true, rts: true)), ("off", SerialControl(dtr: false, rts: false)),
        ("dtr", SerialControl(dtr: true, rts: false)), ("rts", SerialControl(dtr: false, rts: true)),
    ]

    /// The option table of the module. 115,200 baud, 8N1 and no flow control are the firmware's, 176 is its
    /// `MAX_FRAME_SIZE` (companion-protocol §1.1).
    public static let options: [OptionSpec] =
        [
            OptionSpec(
                "path", .string, default: "",
                help:
                    "The port: best its name in /dev/serial/by-id, which stays the same when it is plugged in elsewhere."
            ),
            OptionSpec(
                "usb", .string, default: "",
                help:
                    "In place of path: \"239a:8029\" as lsusb prints it, or \"239a:8029:SERIAL\" where there are several."
            ),
            OptionSpec(
                "baud", .int, default: "115200", help: "The speed; a board with a USB port of its own has none."),
            OptionSpec(
                "rtscts", .bool, default: "false", help: "Whether RTS and CTS hold back the sender; radios do without."),
            OptionSpec(
                "boot", .string, default: "auto",
                help:
                    "DTR and RTS: auto (what the board wants, else the other way), on, off, dtr or rts (only that one on)."
            ),
            OptionSpec(
                "boot_delay", .duration, default: "0s",
                help: "How long a board that restarts when its port is opened is given before it is spoken to."),
            OptionSpec(
                "answer_timeout", .duration, default: "2s",
                help:
                    "With boot = \"auto\": how long to wait for the first answer before DTR and RTS are tried the other way."
            ),
            OptionSpec(
                "write_timeout", .duration, default: "5s",
                help: "The link is given up when written frames wait this long without progress."),
        ] + CompanionStream.Configuration.options

    /// Reads validated options; with issues there are no settings.
    public static func read(_ options: OptionValues) -> (settings: SerialSettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        let choice = readChoice(options, &issues)
        let boot = boots.first { $0.name == options.string("boot") }
        if boot == nil {
            let names = boots.map { "\"\($0.name)\"" }.joined(separator: ", ")
            let written = options.string("boot")
            let nearest = NearestName.of(written, among: boots.map(\.name)).map { "did you mean \"\($0)\"?" }
            issues.append(
                OptionIssue(option: "boot", message: "boot \"\(written)\" is none of \(names)", hint: nearest))
        }
        // What the kernel's field holds, and no port comes near.
        let baud = options.int("baud")
        if !(50...20_000_000).contains(baud) {
            issues.append(
                OptionIssue(
                    option: "baud", message: "baud is \(baud), outside 50 to 20000000", hint: "radios use 115200"))
        }
        for name in ["answer_timeout", "write_timeout", "partial_frame_timeout"]
        where options.duration(name) <= .zero {
            issues.append(OptionIssue(option: name, message: "\(name) must be longer than 0", hint: "for example 5s"))
        }
        // A whole attempt has 10 s by default (link.connect_timeout).
        if !(.zero ... .seconds(8)).contains(options.duration("boot_delay")) {
            issues.append(
                OptionIssue(option: "boot_delay", message: "boot_delay must be from 0s to 8s", hint: "for example 2s"))
        }
        let maximumFrame = CompanionStream.Configuration.maximumFrame(options, &issues)
        guard let choice, let boot, issues.isEmpty else { return (nil, issues) }
        let settings = SerialSettings(
            choice: choice, baud: UInt32(clamping: baud), hardwareFlowControl: options.bool("rtscts"),
            control: boot.control, bootDelay: options.duration("boot_delay"),
            answerTimeout: options.duration("answer_timeout"), writeTimeout: options.duration("write_timeout"),
            maximumFrame: maximumFrame, partialFrameTimeout: options.duration("partial_frame_timeout"),
            checksLayout: options.bool("layout_check"))
        return (settings, [])
    }

    private static func readChoice(_ options: OptionValues, _ issues: inout [OptionIssue]) -> SerialChoice? {
        let path = options.string("path")
        let usb = options.string("usb")
        switch (path.isEmpty, usb.isEmpty) {
        case (true, true):
            issues.append(
                OptionIssue(
                    option: "path", message: "neither path nor usb says which port is meant",
                    hint: "meshhost scan --module serial shows what is there"))
        case (false, false):
            issues.append(
                OptionIssue(option: "usb", message: "path and usb both say which port is meant", hint: "leave one out"))
        case (false, true):
            if path.hasPrefix("/") { return .path(path) }
            issues.append(
                OptionIssue(
                    option: "path", message: "path \"\(path)\" does not begin with /", hint: "for example /dev/\(path)")
            )
        case (true, false):
            if let identity = USBIdentity(usb) { return .usb(identity) }
            issues.append(
                OptionIssue(
                    option: "usb", message: "usb \"\(usb)\" is not of the form VENDOR:PRODUCT or VENDOR:PRODUCT:SERIAL",
                    hint: "for example \"239a:8029\"; vendor and product are four hexadecimal digits"))
        }
        return nil
    }
}
