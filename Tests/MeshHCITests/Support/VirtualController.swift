// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshLoop

/// A controller that speaks H4 on a Unix socket, with radios behind it: the other end of the driver under test, in the same
/// process and on the same loop. Whatever it is told it answers at once, so a conversation depends on nothing but the
/// two sides. What it sends is numbered, and a fault can be put on any number.
///
/// It stands for a dongle: ``unplug()`` takes the socket away, ``plugIn()`` brings it back with everything forgotten.
actor VirtualController {
    struct Settings: Sendable {
        var bufferLength: UInt16 = 251
        var bufferCount: UInt8 = 8
        /// The longest piece of a frame to the host.
        var pieceLength = 251
        var isEnhanced = false
        var credits = Credits.atOnce
    }

    /// When the host gets its buffers back.
    enum Credits: Sendable, Hashable {
        case atOnce
        /// So many together, of all links.
        case together(Int)
        /// When ``complete(_:)`` is called.
        case whenTold
    }

    /// What happens to one packet on its way to the host.
    enum Fault: Sendable, Hashable, CaseIterable {
        /// The link is lost, and the packet with it.
        case linkLostBefore
        case linkLostAfter
        /// The line is closed; the controller is there again at once, and has forgotten everything.
        case death
        case withheld
        /// A failure takes the place of the success.
        case failure
    }

    struct Link {
        let handle: ConnectionHandle
        let peer: VirtualPeripheral
        /// The host's packets that it has not been given back.
        var outstanding = 0
        var key: [UInt8] = []
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let path: String
    static let address = DeviceAddress(0x00AA_BBCC_DD00, .public)

    var settings: Settings
    private var listener: LoopListener?
    private var stream: LoopStream?
    private var decoder = H4Decoder(.init(accepted: [.command, .acl]))
    private var output: [UInt8] = []
    var peers: [VirtualPeripheral] = []
    var links: [Link] = []
    var nextHandle: UInt16 = 0x40
    var isScanning = false
    /// Whom a link is being made with.
    var initiating: DeviceAddress?
    /// What the host calls itself on the air: the address of the controller, or the one that it was given.
    var hostAddress = address
    var randomAddress = DeviceAddress(0, .random)
    var unreported = 0
    // What a test looks at.
    /// Everything that was sent, or would have been.
    private(set) var sent: [ControllerPacket] = []
    /// The opcodes of all commands, in their order.
    var commands: [HCIOpcode] = []
    /// The supervision timeouts that were asked for, in units of 10 ms.
    var supervisionTimeouts: [UInt16] = []
    /// Packets that came while all buffers were full.
    var overruns = 0
    /// Of the host's data packets, the links they came on.
    var arrivals: [ConnectionHandle] = []
    /// How often a host opened the line.
    private(set) var openings = 0
    // What a test orders.
    private var fault: (index: Int, kind: Fault)?
    /// Commands that are not answered.
    var ignored: Set<HCIOpcode> = []
    /// Statuses that commands are refused with.
    var refusals: [HCIOpcode: HCIStatus] = [:]
    /// The end of a cancelled attempt is not told.
    var holdsCancellations = false
    /// The end of a link is not told: the radio is out of range, and its supervision timeout runs.
    var holdsEnds = false
    /// Cancel comes too late: the radio is connected to in that moment.
    var cancelsTooLate = false
    /// The line is closed after so many bytes.
    private var bytesUntilDeath: Int?
    /// So many frames of radios are sent, then none.
    var framesUntilSilence: Int?
    var isSilent = false
    /// Loses the link that a data packet came on, when it is 0.
    var packetsUntilLoss: Int?

    init(_ loop: EventLoop, path: String, _ settings: Settings = Settings()) {
        self.loop = loop
        self.path = path
        self.settings = settings
    }

    // MARK: The plug

    func plugIn() throws {
        guard listener == nil else { return }
        listener = try LoopListener(loop, on: SocketAddress(unixPath: path)) { stream in
            nonisolated(unsafe) let stream = stream
            self.assumeIsolated { $0.opened(stream) }
        }
    }

    func unplug() {
        listener = nil
        die()
    }

    private func opened(_ stream: LoopStream) {
        // One host at a time, as a UART has.
        die()
        self.stream = stream
        openings += 1
        stream.startReading({ self.received($0) }, onEnd: { _ in self.die() })
    }

    func die() {
        stream?.close()
        stream = nil
        output = []
        decoder.restart()
        forgetEverything()
    }

    // MARK: What a test sees

    var linkCount: Int { links.count }
    /// Frames that came to radios.
    var frameCount: Int { peers.reduce(0) { $0 + $1.written.count } }
    func frames(to address: DeviceAddress) -> [[UInt8]]? { peer(address)?.written }

    // MARK: Orders of a test

    func setFault(_ kind: Fault, at index: Int) { fault = (index, kind) }
    /// What was ordered has not come to pass.
    var isFaultPending: Bool { fault != nil || bytesUntilDeath != nil }
    func setBytesUntilDeath(_ count: Int?) { bytesUntilDeath = count }
    func disarm() {
        fault = nil
        bytesUntilDeath = nil
    }
    func configure(_ change: @Sendable (isolated VirtualController) -> Void) {
        change(self)
        flush()
    }

    func add(_ settings: VirtualPeripheral.Settings) { peers.append(VirtualPeripheral(settings)) }

    func sendHardwareError(_ code: UInt8 = 0x42) {
        send(.hardwareError(code))
        flush()
    }

    /// Bytes of no packet, or of one that the machines would never send.
    func sendBytes(_ bytes: [UInt8]) {
        output += bytes
        flush()
    }

    // MARK: Sending

    /// Sends it, or does what the fault on its number says. False: the host was told of a failure, and what the packet is
    /// about does not happen.
    @discardableResult
    func send(_ packet: ControllerPacket) -> Bool {
        guard stream != nil else { return true }
        let index = sent.count
        sent.append(packet)
        guard let fault, fault.index == index else {
            put(packet)
            return true
        }
        self.fault = nil
        switch fault.kind {
        case .linkLostBefore:
            if packet.isConnectionComplete { return stayAway() }
            loseLinks(.connectionTimeout)
            if !packet.isOfLink { put(packet) }
        case .linkLostAfter:
            put(packet)
            loseLinks(.connectionTimeout)
        case .death: die()
        case .withheld: break
        case .failure:
            guard let failing = packet.failing(.unspecified) else {
                put(packet)
                break
            }
            put(failing)
            return false
        }
        return true
    }

    /// The radio that was about to be connected to is not there any more: the controller goes on looking for it.
    private func stayAway() -> Bool {
        guard let link = links.popLast() else { return true }
        link.peer.linkEnded()
        link.peer.isAdvertising = false
        initiating = link.peer.settings.address
        return true
    }

    private func put(_ packet: ControllerPacket) {
        output.append(packet.kind.rawValue)
        output += packet.bytes
    }

    func flush() {
        guard let stream, !output.isEmpty else { return }
        var bytes = output[...]
        output = []
        if let left = bytesUntilDeath {
            bytes = bytes.prefix(left)
            bytesUntilDeath = left - bytes.count
        }
        Array(bytes).withUnsafeBytes { stream.write($0) }
        if bytesUntilDeath == 0 {
            bytesUntilDeath = nil
            die()
        }
    }

    // MARK: Receiving

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var packets: [(kind: HCIPacketKind, bytes: [UInt8])] = []
        _ = decoder.bytesReceived(bytes.bytes) { kind, packet in
            packets.append((kind, packet.withUnsafeBytes { Array($0) }))
        }
        for packet in packets where stream != nil {
            if packet.kind == .command, let command = try? HCICommand.decode(packet.bytes.span.bytes) {
                take(command)
            } else if let data = try? ACLPacket.decode(packet.bytes.span.bytes) {
                take(data)
            }
        }
        flush()
    }
}
