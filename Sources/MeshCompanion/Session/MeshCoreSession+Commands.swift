// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// What the radio is asked about itself, and told to do.
extension MeshCoreSession {
    // MARK: Who and what it is

    /// Asks who the radio is and how it is set (APP_START). ``selfInfo`` keeps the answer.
    public func refreshSelfInfo() async throws(MeshError) -> SelfInfo {
        let info = try await ask(.appStart(AppStart(appName: settings.appName))) {
            if case .selfInfo(let info) = $0 { info } else { nil }
        }
        take(info)
        emit(.radio(info))
        return info
    }

    /// Asks for the board and its firmware (DEVICE_QUERY). ``deviceInfo`` keeps the answer.
    ///
    /// The Bluetooth PIN is in it: only for the radio's owner. Throws `radio.unsupported` for very old firmware.
    public func refreshDeviceInfo() async throws(MeshError) -> DeviceInfo {
        let info = try await ask(.deviceQuery(version: settings.protocolVersion)) {
            if case .deviceInfo(let info) = $0 { info } else { nil }
        }
        deviceInfo = info
        return info
    }

    /// The radio's clock, seconds since 1970.
    public func time() async throws(MeshError) -> UInt32 {
        try await ask(.getTime) { if case .currentTime(let time) = $0 { time } else { nil } }
    }

    /// Sets the radio's clock, seconds since 1970. Throws `radio.illegal-argument` for a time before the radio's: its
    /// clock only goes forward.
    public func setTime(_ time: UInt32) async throws(MeshError) {
        try await confirm(.setTime(time))
    }

    /// The battery's voltage, and how full the file system is.
    public func batteryAndStorage() async throws(MeshError) -> BatteryAndStorage {
        try await ask(.getBatteryAndStorage) { if case .batteryAndStorage(let value) = $0 { value } else { nil } }
    }

    /// Battery, uptime, errors and queue length.
    public func coreStatistics() async throws(MeshError) -> Statistics.Core {
        try await ask(.getStatistics(kind: 0)) { if case .statistics(.core(let value)) = $0 { value } else { nil } }
    }

    /// Noise, last signal and airtime.
    public func radioStatistics() async throws(MeshError) -> Statistics.Radio {
        try await ask(.getStatistics(kind: 1)) { if case .statistics(.radio(let value)) = $0 { value } else { nil } }
    }

    /// Packets sent and received.
    public func packetStatistics() async throws(MeshError) -> Statistics.Packets {
        try await ask(.getStatistics(kind: 2)) { if case .statistics(.packets(let value)) = $0 { value } else { nil } }
    }

    /// What the radio's own sensors say. See ``telemetry(of:)`` for another node's, and for readings of unknown kinds.
    public func ownTelemetry() async throws(MeshError) -> [CayenneLPP.Reading] {
        let outcome = try await perform(.sendTelemetryRequest(nil))
        guard case .telemetryResponse(let response) = outcome.answer else {
            throw .unreadable(Data([CommandCode.sendTelemetryRequest.rawValue]))
        }
        return CayenneLPP.decodeStart(response.payload).readings
    }

    /// The settings of the board's sensors. A value that holds a comma cannot be told apart.
    public func customVariables() async throws(MeshError) -> [CustomVariable] {
        try await ask(.getCustomVariables) {
            if case .customVariables(let text) = $0 { CompanionReply.variables(text) } else { nil }
        }
    }

    /// The frequency ranges where the radio may pass packets on.
    public func allowedRepeatFrequencies() async throws(MeshError) -> [FrequencyRange] {
        try await ask(.getAllowedRepeatFrequencies) {
            if case .allowedRepeatFrequencies(let ranges) = $0 { ranges } else { nil }
        }
    }

    // MARK: What it does

    /// Sends an advert: to the neighbours, or with `flood` through the mesh.
    public func sendSelfAdvert(flood: Bool = false) async throws(MeshError) {
        try await confirm(.sendSelfAdvert(flood: flood))
    }

    /// Restarts the radio. Returns when it has gone or stayed silent, as it does; the link ends.
    public func reboot() async throws(MeshError) {
        _ = try await perform(.reboot)
    }

    /// Erases everything that the radio keeps, its identity too, and restarts it. The link ends.
    public func factoryReset() async throws(MeshError) {
        _ = try await perform(.factoryReset)
    }

    /// Runs a line of the radio's command line, and returns what it prints. Only firmware after protocol version 13;
    /// others throw `radio.unsupported`.
    public func runCLICommand(_ line: String) async throws(MeshError) -> String {
        try await ask(.runCLICommand(line)) { if case .cliReply(let text) = $0 { text } else { nil } }
    }

    // MARK: Its key

    /// The radio's private key, 64 bytes. Throws `radio.disabled` where the firmware was built without this.
    public func exportPrivateKey() async throws(MeshError) -> Data {
        try await ask(.exportPrivateKey) { if case .privateKey(let key) = $0 { key } else { nil } }
    }

    /// Gives the radio another private key, 64 bytes. Throws `radio.disabled` where the firmware was built without this,
    /// `radio.illegal-argument` for what is no key.
    public func importPrivateKey(_ key: Data) async throws(MeshError) {
        try await confirm(.importPrivateKey(key))
    }

    /// Signs with the radio's key; the signature has 64 bytes.
    ///
    /// The radio has one buffer for this, so the lane is held from the start to the signature. Throws `argument.invalid`
    /// for nothing, and for more than 8,192 bytes (`MAX_SIGN_DATA_LEN`, firmware v1.17.1).
    public func sign(_ data: Data) async throws(MeshError) -> Data {
        guard (1...8_192).contains(data.count) else {
            throw MeshError(.invalidArgument, "1 to 8192 bytes can be signed, not \(data.count)")
        }
        var lead = [try encode(.signStart)]
        // 120: what meshcore_py 2.3.17 sends at once; every link carries it.
        for start in stride(from: 0, to: data.count, by: 120) {
            lead.append(try encode(.signData(Data(data.dropFirst(start).prefix(120)))))
        }
        let finish = try encode(.signFinish)
        guard let reply = try await ask(finish, after: lead).replies.last,
            case .signature(let signature) = try decode(reply, to: finish)
        else { throw .unreadable(finish) }
        return signature
    }
}
