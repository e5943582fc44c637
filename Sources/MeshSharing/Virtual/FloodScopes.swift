// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// The radio's one flood scope against the one of each client.
///
/// SET_FLOOD_SCOPE holds in the radio's memory for whatever it floods from then on. So a client's goes to the radio
/// only right before a command of that client that may flood, as one item of the lane, if the radio has another. A
/// client that never said gets the radio's default, which it also has after a start.
///
/// What the radio floods by itself, such as acknowledgements, has the scope of whoever sent last
/// (`MyMesh::sendFloodScoped`).
struct FloodScopes: Sendable {
    /// What a client wants.
    enum Wanted: Sendable, Equatable {
        /// It never said.
        case unset
        /// Its last SET_FLOOD_SCOPE.
        case frame(Data)
    }

    /// `36 00` (hexadecimal): as the radio's default scope says.
    static let standard = Data([CommandCode.setFloodScope.rawValue, 0])
    /// `36 01`: everywhere; since protocol version 12.
    static let unscoped = Data([CommandCode.setFloodScope.rawValue, 1])
    /// Code, form, key.
    private static let keyedLength = 18

    /// What the radio was told last on this link.
    private var current: Data?
    /// The radio's firmware is older than version 8: it knows no scopes.
    private var isUnsupported = false
    /// The radio's firmware is older than version 12.
    private var isUnscopedUnsupported = false

    // MARK: Answers

    /// Whether a client's SET_FLOOD_SCOPE can be done, as far as is known: if so it is answered with OK at once, else
    /// with `01 01` as the firmware would.
    func accepts(_ frame: Data) -> Bool {
        switch Self.meaning(of: frame) {
        case nil: false
        case Self.unscoped: !isUnsupported && !isUnscopedUnsupported
        default: !isUnsupported
        }
    }

    /// The command to send before one that ``concerns(_:)``; nil if the radio has that scope, or knows none.
    func lead(for wanted: Wanted) -> Data? {
        let frame =
            switch wanted {
            case .unset: Self.standard
            case .frame(let frame): Self.meaning(of: frame) ?? Self.standard
            }
        return accepts(frame) && frame != current ? frame : nil
    }

    // MARK: Facts

    /// The radio accepted this SET_FLOOD_SCOPE.
    mutating func scopeSet(_ frame: Data) {
        current = Self.meaning(of: frame)
    }

    /// The radio does not know this SET_FLOOD_SCOPE (`01 01`). It keeps the scope that it has.
    mutating func refused(_ frame: Data) {
        if Self.meaning(of: frame) == Self.unscoped {
            isUnscopedUnsupported = true
        } else {
            isUnsupported = true
        }
    }

    /// Whether the radio took a SET_FLOOD_SCOPE is not known, or somebody else may have sent one: an OK that nobody
    /// here asked for.
    mutating func doubt() {
        current = nil
    }

    /// The link is gone: the radio may start again meanwhile, with its default or with another firmware.
    mutating func linkLost() {
        self = FloodScopes()
    }

    // MARK: Commands

    /// Whether the radio may flood what this command sends, and by the scope that was set (`MyMesh::handleCmdFrame`).
    ///
    /// A text or a request floods if the way to its recipient is not known. An advert floods on demand; newer firmware
    /// then takes its default scope, and for that the lead does no harm. Traces, raw data, control data and shared
    /// contacts never flood, and a raw packet is sent as it is. A command that is not known may do anything.
    static func concerns(_ command: Data) -> Bool {
        guard let first = command.first else { return false }
        guard let code = CommandCode(rawValue: first) else { return true }
        switch code {
        case .sendTextMessage, .sendChannelText, .sendLogin, .sendStatusRequest, .sendBinaryRequest,
            .sendAnonymousRequest, .sendPathDiscovery:
            return true
        case .sendSelfAdvert:
            return command.field8(at: 1) == 1
        case .sendTelemetryRequest:
            // Four bytes ask the radio itself.
            return command.count > 4
        case .sendChannelData:
            return command.field8(at: 2) == PathByte.none.rawValue
        case .appStart, .getContacts, .getTime, .setTime, .setName, .addUpdateContact, .syncNextMessage, .setRadio,
            .setTransmitPower, .resetPath, .setLocation, .removeContact, .shareContact, .exportContact, .importContact,
            .reboot, .getBatteryAndStorage, .setTuning, .deviceQuery, .exportPrivateKey, .importPrivateKey,
            .sendRawData, .hasConnection, .logout, .getContactByKey, .getChannel, .setChannel, .signStart, .signData,
            .signFinish, .sendTracePath, .setDevicePIN, .setOtherParameters, .getCustomVariables, .setCustomVariable,
            .getAdvertPath, .getTuning, .factoryReset, .setFloodScope, .sendControlData, .getStatistics, .setAutoAdd,
            .getAutoAdd, .getAllowedRepeatFrequencies, .setPathHashMode, .setDefaultScope, .getDefaultScope,
            .sendRawPacket, .runCLICommand:
            return false
        }
    }

    /// The shortest frame that means the same to the radio: a key that is not whole, or zero, is none. Nil for a form
    /// that no firmware knows.
    private static func meaning(of frame: Data) -> Data? {
        guard frame.first == CommandCode.setFloodScope.rawValue else { return nil }
        switch frame.field8(at: 1) {
        case 0:
            let keyed = frame.prefix(keyedLength)
            return keyed.count == keyedLength && keyed.dropFirst(2).contains { $0 != 0 } ? Data(keyed) : standard
        case 1: return unscoped
        default: return nil
        }
    }
}
