// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshWire

@testable import MeshBlueZTransport

/// bluetoothd as far as a link needs it, on a bus of the test's own: one adapter, and one radio with the serial service. What it
/// answers can be changed call by call; what it was asked is kept.
actor FakeBlueZ {
    /// How one call is answered.
    enum Answer: Sendable {
        case error(String, String = "")
        case silence
        /// To `Device1.Connect`: the link comes up, and ends at once.
        case aborted
    }

    static let adapter = "/org/bluez/hci0"
    static let device = "/org/bluez/hci0/dev_C0_11_22_33_44_55"
    static let service = device + "/service000e"
    static let receive = service + "/char000f"
    static let transmit = service + "/char0011"
    static let address = "C0:11:22:33:44:55"

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let bus: DBusTestBus
    private var connection: DBusConnection?
    private var exports: [DBusExportToken] = []
    private var tree: [String: [String: [String: DBusValue]]] = [:]
    private var answers: [String: [Answer]] = [:]
    /// Such as `Device1.Connect`, in the order of arrival; calls of properties with the property's name.
    private(set) var calls: [String] = []
    private var waiters: [(member: String, continuation: CheckedContinuation<DBusMethodCall, Never>)] = []
    private var unwaited: [(member: String, call: DBusMethodCall)] = []
    /// Who registered an agent, and where.
    private var agent: (client: String, path: String)?
    /// What the agent answered to the last `RequestPasskey`.
    private(set) var passkey: UInt32?
    /// Whether objects and `ServicesResolved` follow a connection by themselves.
    var resolvesServices = true
    private var tellsOfLinks = true

    init(_ bus: DBusTestBus) {
        self.bus = bus
        loop = bus.loop
    }

    // MARK: Life

    /// Takes the name, with the adapter on and, if asked for, the radio known.
    func start(knowsDevice: Bool = true) async throws {
        let connection = try await bus.connect()
        self.connection = connection
        tree = [
            Self.adapter: [
                BlueZNames.adapter: ["Address": .string("00:AA:BB:CC:DD:00"), "Powered": .bool(true)]
            ]
        ]
        if knowsDevice { tree[Self.device] = Self.deviceInterfaces }
        agent = nil
        try await export("/", BlueZNames.objectManager)
        try await export("/org/bluez", BlueZNames.agentManager)
        try await export(Self.adapter, BlueZNames.adapter)
        try await export(Self.adapter, BlueZNames.properties)
        try await export(Self.device, BlueZNames.device)
        try await export(Self.device, BlueZNames.properties)
        for path in [Self.receive, Self.transmit] {
            try await export(path, BlueZNames.characteristic)
            try await export(path, BlueZNames.properties)
        }
        _ = try await connection.call(
            DBusCall(
                "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
                member: "RequestName", [.string("org.bluez"), .uint32(0)]))
    }

    /// As when it is killed: no signal of its own.
    func stop() async {
        exports = []
        await connection?.close()
        connection = nil
    }

    private static var deviceInterfaces: [String: [String: DBusValue]] {
        [
            BlueZNames.device: [
                "Address": .string(address), "AddressType": .string("random"), "Name": .string("Roof"),
                "Connected": .bool(false), "ServicesResolved": .bool(false), "Paired": .bool(false),
                "Bonded": .bool(false), "RSSI": .int16(-60),
                "UUIDs": .array(element: "s", [.string(GATTSerialProfile.nordicUART.service.description)]),
            ]
        ]
    }

    private func export(_ path: String, _ interface: String) async throws {
        guard let connection else { return }
        exports.append(
            try await connection.export(path: path, interface: interface) { call in
                self.assumeIsolated { $0.received(call) }
            })
    }

    // MARK: Scripting

    /// The next calls of `member`, such as `Device1.Connect`, are answered so; then as ever.
    func answer(_ member: String, _ new: Answer...) {
        answer(member, new)
    }

    func answer(_ member: String, _ new: [Answer]) {
        answers[member, default: []] += new
    }

    func setResolvesServices(_ flag: Bool) {
        resolvesServices = flag
    }

    /// Whether it tells that a device is connected, or knows it only.
    func setTellsOfLinks(_ flag: Bool) {
        tellsOfLinks = flag
    }

    /// Waits for the next call of `member` that nobody has waited for.
    func call(of member: String) async -> DBusMethodCall {
        if let index = unwaited.firstIndex(where: { $0.member == member }) { return unwaited.remove(at: index).call }
        return await withCheckedContinuation { waiters.append((member, $0)) }
    }

    /// Calls of `member` so far are nobody's business any more.
    func forget(_ member: String) {
        unwaited.removeAll { $0.member == member }
    }

    /// Changes properties and tells.
    func set(_ path: String, _ interface: String, _ properties: [String: DBusValue]) {
        tree[path]?[interface]?.merge(properties) { $1 }
        emit(
            path, BlueZNames.properties, "PropertiesChanged",
            [
                .string(interface), .options(properties), .array(element: "s", []),
            ])
    }

    /// Changes properties and says nothing.
    func setUntold(_ path: String, _ interface: String, _ properties: [String: DBusValue]) {
        tree[path]?[interface]?.merge(properties) { $1 }
    }

    func notify(_ bytes: [UInt8]) {
        set(Self.transmit, BlueZNames.characteristic, ["Value": .bytes(bytes)])
    }

    /// The radio is heard for the first time.
    func hear() {
        add(Self.device, Self.deviceInterfaces)
    }

    func add(_ path: String, _ interfaces: [String: [String: DBusValue]]) {
        tree[path] = interfaces
        emit("/", BlueZNames.objectManager, "InterfacesAdded", [.objectPath(path), Self.value(interfaces)])
    }

    func remove(_ path: String) {
        remove(path, tree.keys.sorted().reversed())
    }

    /// The device first, and what lies below it after it.
    func removeFromAbove(_ path: String) {
        remove(path, tree.keys.sorted())
    }

    private func remove(_ path: String, _ paths: [String]) {
        for below in paths where below.hasPrefix(path) {
            let interfaces = tree.removeValue(forKey: below) ?? [:]
            emit(
                "/", BlueZNames.objectManager, "InterfacesRemoved",
                [
                    .objectPath(below), .array(element: "s", interfaces.keys.map { .string($0) }),
                ])
        }
    }

    func addServices() {
        let uart = GATTSerialProfile.nordicUART
        add(
            Self.service,
            [
                BlueZNames.gattService: [
                    "UUID": .string(uart.service.description), "Device": .objectPath(Self.device),
                    "Primary": .bool(true),
                ]
            ])
        for (path, uuid, flags) in [
            (Self.receive, uart.receive, ["write", "write-without-response"]),
            (Self.transmit, uart.transmit, ["notify"]),
        ] {
            add(
                path,
                [
                    BlueZNames.characteristic: [
                        "UUID": .string(uuid.description), "Service": .objectPath(Self.service), "MTU": .uint16(185),
                        "Flags": .array(element: "s", flags.map { .string($0) }),
                    ]
                ])
        }
    }

    /// bluetoothd drops the agent.
    func releaseAgent() async throws {
        guard let agent, let connection else { return }
        self.agent = nil
        _ = try await connection.call(
            DBusCall(agent.client, path: agent.path, interface: BlueZNames.agent, member: "Release"))
    }

    func loseLink(_ reason: String? = nil) {
        if let reason {
            emit(Self.device, BlueZNames.device, "Disconnected", [.string("org.bluez.Reason.\(reason)"), .string("")])
        }
        set(Self.device, BlueZNames.device, ["ServicesResolved": .bool(false), "Connected": .bool(false)])
    }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue]) {
        guard let connection else { return }
        try? connection.assumeIsolated { try $0.emit(path: path, interface: interface, member: member, arguments) }
    }

    private static func value(_ interfaces: [String: [String: DBusValue]]) -> DBusValue {
        var entries: [DBusValue: DBusValue] = [:]
        for (interface, properties) in interfaces { entries[.string(interface)] = .options(properties) }
        return .dictionary(key: "s", value: "a{sv}", entries)
    }

    // MARK: Answering

    private func received(_ call: DBusMethodCall) {
        let short = call.interface.split(separator: ".").last.map(String.init) ?? ""
        var name = short + "." + call.member
        if call.interface == BlueZNames.properties, call.arguments.count > 1 {
            name += " \(call.arguments[1].text ?? "")"
        }
        calls.append(name)
        if let index = waiters.firstIndex(where: { $0.member == name }) {
            waiters.remove(at: index).continuation.resume(returning: call)
        } else {
            unwaited.append((name, call))
        }
        if let scripted = answers[name], let first = scripted.first {
            answers[name] = Array(scripted.dropFirst())
            switch first {
            case .error(let name, let text): call.fail(DBusError(name, text))
            case .silence: break
            case .aborted:
                set(Self.device, BlueZNames.device, ["Connected": .bool(true)])
                set(Self.device, BlueZNames.device, ["Connected": .bool(false)])
                call.fail(DBusError("org.bluez.Error.Failed", "le-connection-abort-by-local"))
            }
            return
        }
        perform(name, call)
    }

    private func perform(_ name: String, _ call: DBusMethodCall) {
        switch name {
        case "ObjectManager.GetManagedObjects":
            var entries: [DBusValue: DBusValue] = [:]
            for (path, interfaces) in tree { entries[.objectPath(path)] = Self.value(interfaces) }
            return call.reply([.dictionary(key: "o", value: "a{sa{sv}}", entries)])
        case "AgentManager1.RegisterAgent": agent = (call.sender, call.arguments.first?.text ?? "")
        case "Properties.Set Powered":
            set(Self.adapter, BlueZNames.adapter, ["Powered": call.arguments[2].plain])
        case "Properties.Get MTU":
            guard let mtu = tree[call.path]?[BlueZNames.characteristic]?["MTU"] else {
                return call.fail(DBusError("org.freedesktop.DBus.Error.InvalidArgs", "No such property 'MTU'"))
            }
            return call.reply([.variant(mtu)])
        case "Properties.Get Connected":
            return call.reply([.variant(tree[call.path]?[BlueZNames.device]?["Connected"] ?? .bool(false))])
        case "Device1.Connect": connect()
        case "Device1.Disconnect":
            set(Self.device, BlueZNames.device, ["ServicesResolved": .bool(false), "Connected": .bool(false)])
        case "Device1.Pair":
            let task = Task(executorPreference: loop.taskExecutor) { await self.pair(call) }
            pairing = task
            return
        case "Adapter1.RemoveDevice": remove(Self.device)
        default: break
        }
        call.reply()
    }

    private var pairing: Task<Void, Never>?

    private func connect() {
        if tellsOfLinks {
            set(Self.device, BlueZNames.device, ["Connected": .bool(true)])
        } else {
            tree[Self.device]?[BlueZNames.device]?["Connected"] = .bool(true)
        }
        guard resolvesServices else { return }
        if tree[Self.transmit] == nil { addServices() }
        set(Self.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
    }

    /// Asks the agent and takes any passkey.
    private func pair(_ call: DBusMethodCall) async {
        guard let agent, let connection, agent.client == call.sender else {
            return call.fail(DBusError("org.bluez.Error.AuthenticationFailed", "Authentication Failed"))
        }
        do throws(DBusError) {
            let reply = try await connection.call(
                DBusCall(
                    agent.client, path: agent.path, interface: BlueZNames.agent, member: "RequestPasskey",
                    [.objectPath(Self.device)]))
            passkey = reply.first?.number.map { UInt32($0) }
            set(Self.device, BlueZNames.device, ["Paired": .bool(true), "Bonded": .bool(true)])
            call.reply()
        } catch {
            call.fail(DBusError("org.bluez.Error.AuthenticationFailed", "Authentication Failed"))
        }
    }

    /// What a stranger on the bus gets who asks the agent.
    func refusal(ofStranger stranger: DBusConnection) async -> String? {
        guard let agent else { return nil }
        return await stranger.failure(
            of: DBusCall(
                agent.client, path: agent.path, interface: BlueZNames.agent, member: "RequestPasskey",
                [.objectPath(Self.device)]))
    }
}
