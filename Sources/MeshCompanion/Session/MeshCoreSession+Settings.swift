// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// The radio's settings. It keeps all of them over a restart, but for the flood scope.
extension MeshCoreSession {
    /// Sets the node's name, 1 to 31 bytes.
    public func setName(_ name: String) async throws(MeshError) {
        try await confirm(.setName(name))
    }

    /// Sets where the node says it is. Throws `radio.illegal-argument` for a place that is not on earth.
    public func setLocation(_ location: Coordinates, altitude: Int32? = nil) async throws(MeshError) {
        try await confirm(.setLocation(LocationUpdate(location: location, altitude: altitude)))
    }

    /// Sets frequency, bandwidth, spreading factor and coding rate. Throws `radio.illegal-argument` for what the firmware
    /// does not accept.
    public func setRadio(_ parameters: RadioParameters) async throws(MeshError) {
        try await confirm(.setRadio(parameters))
    }

    /// Sets the transmit power, dBm. Throws `radio.illegal-argument` for what the board cannot do.
    public func setTransmitPower(_ power: Int8) async throws(MeshError) {
        try await confirm(.setTransmitPower(power))
    }

    /// How the radio times its packets.
    public func tuning() async throws(MeshError) -> Tuning {
        try await ask(.getTuning) { if case .tuning(let tuning) = $0 { tuning } else { nil } }
    }

    /// Sets how the radio times its packets.
    public func setTuning(_ tuning: Tuning) async throws(MeshError) {
        try await confirm(.setTuning(tuning))
    }

    /// Sets who becomes a contact by itself, who may ask for telemetry, and what adverts tell.
    public func setOtherParameters(_ parameters: OtherParameters) async throws(MeshError) {
        try await confirm(.setOtherParameters(parameters))
    }

    /// Whom the radio makes a contact by itself.
    public func autoAdd() async throws(MeshError) -> AutoAdd {
        try await ask(.getAutoAdd) { if case .autoAdd(let autoAdd) = $0 { autoAdd } else { nil } }
    }

    /// Sets whom the radio makes a contact by itself.
    public func setAutoAdd(_ autoAdd: AutoAdd) async throws(MeshError) {
        try await confirm(.setAutoAdd(autoAdd))
    }

    /// Sets how many bytes a hash has in the paths of floods that the radio begins, less one: 0 to 2.
    public func setPathHashMode(_ mode: UInt8) async throws(MeshError) {
        try await confirm(.setPathHashMode(mode))
    }

    /// Sets a setting of the board's sensors. Throws `radio.illegal-argument` for one that the board does not have.
    public func setCustomVariable(_ name: String, to value: String) async throws(MeshError) {
        try await confirm(.setCustomVariable(CustomVariable(name: name, value: value)))
    }

    /// Sets the Bluetooth PIN: 100000 to 999999, or 0 for the default.
    public func setDevicePIN(_ pin: UInt32) async throws(MeshError) {
        try await confirm(.setDevicePIN(pin))
    }

    /// Sets where floods go from now on, until the radio restarts.
    public func setFloodScope(_ scope: FloodScope) async throws(MeshError) {
        try await confirm(.setFloodScope(scope))
    }

    /// The region of all floods that say no other; nil if there is none.
    public func defaultScope() async throws(MeshError) -> DefaultScope? {
        let scope: DefaultScope?? = try await ask(.getDefaultScope) {
            if case .defaultScope(let scope) = $0 { .some(scope) } else { nil }
        }
        return scope ?? nil
    }

    /// Sets the region of all floods that say no other, or none.
    public func setDefaultScope(_ scope: DefaultScope?) async throws(MeshError) {
        try await confirm(.setDefaultScope(scope))
    }
}
