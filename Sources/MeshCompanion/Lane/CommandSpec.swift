// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// What a client may do at most. Each role includes those before it.
public enum ClientRole: String, Sendable, Hashable, Comparable, CaseIterable, Codable {
    /// Reads.
    case observe
    /// Reads, and sends into the mesh.
    case chat
    /// Also changes the radio's settings.
    case admin
    /// Also what can lock others out or give the radio's identity away.
    case owner

    /// By how much a role allows.
    public static func < (left: ClientRole, right: ClientRole) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .observe: 0
        case .chat: 1
        case .admin: 2
        case .owner: 3
        }
    }
}

/// What is known of one command: its shortest form, who may send it and how the radio answers.
///
/// The firmware reads past the end of short frames into what the previous command left in its buffer (a bare 0x0F after
/// a GET_CONTACT_BY_KEY deletes that contact), so a frame shorter than this never reaches the radio.
public struct CommandSpec: Sendable, Hashable {
    /// The name used in logs and by `meshhost decode`.
    public let name: String
    /// The fewest bytes, code included.
    public let minimumLength: Int
    /// The least role that may send it.
    public let role: ClientRole
    let answer: Answer

    /// How the radio answers.
    enum Answer: Sendable, Hashable {
        /// One frame with one of these codes, or an error.
        case one([ReplyCode])
        /// One frame with this code whose bytes from 1 on are those of the command, so many of them.
        case matching(ReplyCode, bytes: Int)
        /// The contact list.
        case contacts
        /// SENT; or, for the four-byte form, the telemetry of the radio itself as a push.
        case telemetry
        /// OK, an error, or nothing: the radio goes away.
        case departure
    }

    private init(_ name: String, _ minimumLength: Int, _ role: ClientRole, _ answer: Answer) {
        self.name = name
        self.minimumLength = minimumLength
        self.role = role
        self.answer = answer
    }

    /// The facts about a command (reference: firmware v1.17.1, `MyMesh::handleCmdFrame`).
    public static func of(_ code: CommandCode) -> CommandSpec {
        switch code {
        case .appStart: CommandSpec("APP_START", 8, .observe, .one([.selfInfo]))
        case .sendTextMessage: CommandSpec("SEND_TXT_MSG", 14, .chat, .one([.sent]))
        case .sendChannelText: CommandSpec("SEND_CHANNEL_TXT_MSG", 8, .chat, .one([.ok]))
        case .getContacts: CommandSpec("GET_CONTACTS", 1, .observe, .contacts)
        case .getTime: CommandSpec("GET_DEVICE_TIME", 1, .observe, .one([.currentTime]))
        case .setTime: CommandSpec("SET_DEVICE_TIME", 5, .chat, .one([.ok]))
        case .sendSelfAdvert: CommandSpec("SEND_SELF_ADVERT", 1, .chat, .one([.ok]))
        case .setName: CommandSpec("SET_ADVERT_NAME", 2, .admin, .one([.ok]))
        case .addUpdateContact: CommandSpec("ADD_UPDATE_CONTACT", 136, .chat, .one([.ok]))
        case .syncNextMessage:
            CommandSpec(
                "SYNC_NEXT_MESSAGE", 1, .observe,
                .one([
                    .contactMessage, .channelMessage, .contactMessageV3, .channelMessageV3, .channelData,
                    .noMoreMessages,
                ]))
        case .setRadio: CommandSpec("SET_RADIO_PARAMS", 11, .admin, .one([.ok]))
        case .setTransmitPower: CommandSpec("SET_RADIO_TX_POWER", 2, .admin, .one([.ok]))
        case .resetPath: CommandSpec("RESET_PATH", 33, .chat, .one([.ok]))
        case .setLocation: CommandSpec("SET_ADVERT_LATLON", 9, .admin, .one([.ok]))
        case .removeContact: CommandSpec("REMOVE_CONTACT", 33, .admin, .one([.ok]))
        case .shareContact: CommandSpec("SHARE_CONTACT", 33, .chat, .one([.ok]))
        case .exportContact: CommandSpec("EXPORT_CONTACT", 1, .observe, .one([.exportedContact]))
        case .importContact: CommandSpec("IMPORT_CONTACT", 99, .chat, .one([.ok]))
        case .reboot: CommandSpec("REBOOT", 7, .owner, .departure)
        case .getBatteryAndStorage: CommandSpec("GET_BATT_AND_STORAGE", 1, .observe, .one([.batteryAndStorage]))
        case .setTuning: CommandSpec("SET_TUNING_PARAMS", 9, .admin, .one([.ok]))
        case .deviceQuery: CommandSpec("DEVICE_QUERY", 2, .observe, .one([.deviceInfo]))
        case .exportPrivateKey: CommandSpec("EXPORT_PRIVATE_KEY", 1, .owner, .one([.privateKey, .disabled]))
        case .importPrivateKey: CommandSpec("IMPORT_PRIVATE_KEY", 65, .owner, .one([.ok, .disabled]))
        case .sendRawData: CommandSpec("SEND_RAW_DATA", 6, .chat, .one([.ok]))
        case .sendLogin: CommandSpec("SEND_LOGIN", 33, .chat, .one([.sent]))
        case .sendStatusRequest: CommandSpec("SEND_STATUS_REQ", 33, .chat, .one([.sent]))
        case .hasConnection: CommandSpec("HAS_CONNECTION", 33, .observe, .one([.ok]))
        case .logout: CommandSpec("LOGOUT", 33, .chat, .one([.ok]))
        case .getContactByKey: CommandSpec("GET_CONTACT_BY_KEY", 33, .observe, .matching(.contact, bytes: 32))
        case .getChannel: CommandSpec("GET_CHANNEL", 2, .observe, .matching(.channelInfo, bytes: 1))
        case .setChannel: CommandSpec("SET_CHANNEL", 50, .admin, .one([.ok]))
        case .signStart: CommandSpec("SIGN_START", 1, .admin, .one([.signStart]))
        case .signData: CommandSpec("SIGN_DATA", 1, .admin, .one([.ok]))
        case .signFinish: CommandSpec("SIGN_FINISH", 1, .admin, .one([.signature]))
        case .sendTracePath: CommandSpec("SEND_TRACE_PATH", 11, .chat, .one([.sent]))
        case .setDevicePIN: CommandSpec("SET_DEVICE_PIN", 5, .owner, .one([.ok]))
        case .setOtherParameters: CommandSpec("SET_OTHER_PARAMS", 2, .admin, .one([.ok]))
        case .sendTelemetryRequest: CommandSpec("SEND_TELEMETRY_REQ", 4, .chat, .telemetry)
        case .getCustomVariables: CommandSpec("GET_CUSTOM_VARS", 1, .observe, .one([.customVariables]))
        case .setCustomVariable: CommandSpec("SET_CUSTOM_VAR", 4, .admin, .one([.ok]))
        case .getAdvertPath: CommandSpec("GET_ADVERT_PATH", 34, .observe, .one([.advertPath]))
        case .getTuning: CommandSpec("GET_TUNING_PARAMS", 1, .observe, .one([.tuning]))
        case .sendBinaryRequest: CommandSpec("SEND_BINARY_REQ", 34, .chat, .one([.sent]))
        case .factoryReset: CommandSpec("FACTORY_RESET", 6, .owner, .departure)
        case .sendPathDiscovery: CommandSpec("SEND_PATH_DISCOVERY_REQ", 34, .chat, .one([.sent]))
        case .setFloodScope: CommandSpec("SET_FLOOD_SCOPE", 2, .chat, .one([.ok]))
        case .sendControlData: CommandSpec("SEND_CONTROL_DATA", 2, .chat, .one([.ok]))
        case .getStatistics: CommandSpec("GET_STATS", 2, .observe, .matching(.statistics, bytes: 1))
        case .sendAnonymousRequest: CommandSpec("SEND_ANON_REQ", 34, .chat, .one([.sent]))
        case .setAutoAdd: CommandSpec("SET_AUTOADD_CONFIG", 2, .admin, .one([.ok]))
        case .getAutoAdd: CommandSpec("GET_AUTOADD_CONFIG", 1, .observe, .one([.autoAdd]))
        case .getAllowedRepeatFrequencies:
            CommandSpec("GET_ALLOWED_REPEAT_FREQ", 1, .observe, .one([.allowedRepeatFrequencies]))
        case .setPathHashMode: CommandSpec("SET_PATH_HASH_MODE", 3, .admin, .one([.ok]))
        case .sendChannelData: CommandSpec("SEND_CHANNEL_DATA", 6, .chat, .one([.ok]))
        case .setDefaultScope: CommandSpec("SET_DEFAULT_FLOOD_SCOPE", 1, .admin, .one([.ok]))
        case .getDefaultScope: CommandSpec("GET_DEFAULT_FLOOD_SCOPE", 1, .observe, .one([.defaultScope]))
        case .sendRawPacket: CommandSpec("SEND_RAW_PACKET", 3, .owner, .one([.ok]))
        case .runCLICommand: CommandSpec("RUN_CLI_COMMAND", 2, .owner, .one([.cliReply]))
        }
    }

    /// The replies to a command of the host's own.
    public static func expectation(for command: Data) -> ReplyExpectation {
        guard let code = command.first.flatMap(CommandCode.init) else { return .anyReply }
        return ReplyExpectation(to: command, of(code).answer)
    }

    /// Lengths between the shortest form and the full one that the firmware does not check.
    static func isLengthAllowed(_ code: CommandCode, _ length: Int) -> Bool {
        switch code {
        case .exportContact: length == 1 || length >= 33
        case .sendTelemetryRequest: length == 4 || length >= 36
        default: length >= of(code).minimumLength
        }
    }

    /// Words that the firmware wants to see before it does what cannot be undone.
    static func isBodyAllowed(_ code: CommandCode, _ frame: Data) -> Bool {
        switch code {
        case .reboot: frame.dropFirst().starts(with: "reboot".utf8)
        case .factoryReset: frame.dropFirst().starts(with: "reset".utf8)
        default: true
        }
    }
}
