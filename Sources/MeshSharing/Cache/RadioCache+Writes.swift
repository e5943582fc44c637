// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

// What an accepted command changes (firmware v1.17.1, `MyMesh::handleCmdFrame`).
extension RadioCache {
    /// The radio did what the command says. What other clients shall be told.
    ///
    /// | command | consequence | pushed to the others |
    /// |---|---|---|
    /// | SET_ADVERT_NAME, SET_ADVERT_LATLON, SET_RADIO_TX_POWER, SET_OTHER_PARAMS | SELF_INFO stale | |
    /// | SET_RADIO_PARAMS | SELF_INFO and DEVICE_INFO stale: it may make the radio a repeater | |
    /// | SET_DEVICE_PIN, SET_PATH_HASH_MODE | DEVICE_INFO stale | |
    /// | SET_CUSTOM_VAR | CUSTOM_VARS and SELF_INFO stale: it may switch the GPS | |
    /// | SET_TUNING_PARAMS, SET_AUTOADD_CONFIG, SET_DEFAULT_FLOOD_SCOPE | their reply stale | |
    /// | SET_CHANNEL | that channel forgotten | |
    /// | SET_DEVICE_TIME | the clock is that | |
    /// | ADD_UPDATE_CONTACT | the row if the command tells all of it; contacts stale | 81 key; 80 key if new |
    /// | RESET_PATH | the row's path byte FF, its time unchanged | 81 key |
    /// | REMOVE_CONTACT | the row removed | 8F key |
    /// | IMPORT_CONTACT | contacts stale; the radio pushes what became of it | |
    /// | SEND_ANON_REQ | to an unknown key: contacts stale, for the radio keeps a contact for the answer | |
    /// | REBOOT, RUN_CLI_COMMAND, a command that is not known | everything stale | |
    /// | IMPORT_PRIVATE_KEY, FACTORY_RESET | everything forgotten | |
    mutating func wrote(_ command: Data, now: Duration) -> [Data] {
        guard let code = command.first.flatMap(CommandCode.init) else {
            doubtEverything()
            return []
        }
        switch code {
        case .setName, .setLocation, .setTransmitPower, .setOtherParameters:
            doubt(.selfInfo)
        case .setRadio:
            doubt(.selfInfo)
            doubt(.deviceInfo)
        case .setDevicePIN, .setPathHashMode:
            doubt(.deviceInfo)
        case .setCustomVariable:
            doubt(.customVariables)
            doubt(.selfInfo)
        case .setTuning:
            doubt(.tuning)
        case .setAutoAdd:
            doubt(.autoAdd)
        case .setDefaultScope:
            doubt(.defaultScope)
        case .setChannel:
            if let index = command.field8(at: 1) { replies[.channel(index)] = nil }
        case .setTime:
            if let time = command.field32(at: 1), clock.set(time, now: now) { contacts.clockJumped() }
        case .addUpdateContact, .resetPath, .removeContact, .sendAnonymousRequest:
            return Self.key(in: command, at: 1).map { wroteContact(code, $0, command) } ?? []
        case .importContact:
            // It is taken like an advert from the air, a moment later, and announced like one (`_pendingLoopback`).
            contacts.doubt()
        case .reboot, .runCLICommand:
            doubtEverything()
        case .importPrivateKey, .factoryReset:
            forgetEverything()
        case .appStart, .deviceQuery, .getContacts, .getTime, .syncNextMessage, .exportContact, .getBatteryAndStorage,
            .exportPrivateKey, .hasConnection, .getContactByKey, .getChannel, .getCustomVariables, .getAdvertPath,
            .getTuning, .getStatistics, .getAutoAdd, .getAllowedRepeatFrequencies, .getDefaultScope,
            .sendTextMessage, .sendChannelText, .sendSelfAdvert, .shareContact, .sendRawData, .sendLogin,
            .sendStatusRequest, .logout, .signStart, .signData, .signFinish, .sendTracePath, .sendTelemetryRequest,
            .sendBinaryRequest, .sendPathDiscovery, .setFloodScope, .sendControlData, .sendChannelData, .sendRawPacket:
            break
        }
        return []
    }

    private mutating func wroteContact(_ code: CommandCode, _ key: PublicKey, _ command: Data) -> [Data] {
        let isKnown = contacts[key] != nil
        switch code {
        case .addUpdateContact:
            // A time of the past that the command writes into the row would escape the next pass.
            if let row = ContactRow(written: command) { contacts.put(row) }
            contacts.changed(key)
            return [Self.push(isKnown ? .pathUpdated : .advert, key)]
        case .resetPath:
            contacts.pathReset(key)
            return [Self.push(.pathUpdated, key)]
        case .removeContact:
            contacts.removed(key)
            return [Self.push(.contactDeleted, key)]
        default:
            // SEND_ANON_REQ, since protocol version 13 (`addContact(anon)`).
            if !isKnown { contacts.changed(key) }
            return []
        }
    }

    /// A push that only names a contact.
    static func push(_ code: PushCode, _ key: PublicKey) -> Data {
        Data([code.rawValue]) + key.data
    }
}
