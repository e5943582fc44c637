// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// How long the packet is that a command makes the radio send, in bytes.
///
/// What may flood is taken to flood within a region: with transport codes, without a path. The path of a contact that
/// is reached directly is not counted, nor what others send on, nor acknowledgements and answers.
enum PacketEstimate {
    /// The most bytes of a name, which stands in front of a text to a channel.
    static let longestName = 31
    /// Header, path byte (firmware src/Packet.cpp, `Packet::writeTo`).
    private static let direct = 2
    /// The same with transport codes.
    private static let flood = 6
    /// `CIPHER_MAC_SIZE` and `CIPHER_BLOCK_SIZE`, firmware src/MeshCore.h.
    private static let mac = 2
    private static let block = 16
    /// A text with its author's name in front (`MAX_TEXT_LEN`).
    private static let longestText = 160
    /// Key, time, signature, and at most 32 bytes (`MAX_ADVERT_DATA_SIZE`).
    private static let advert = PublicKey.length + 4 + 64 + 32
    /// Time, kind, four reserved and four random bytes (`BaseChatMesh::sendRequest`).
    private static let plainRequest = 13

    /// Nil for a command that sends nothing. `nameLength`: of the radio's name, in bytes of UTF-8.
    static func length(of command: Data, nameLength: Int = longestName) -> Int? {
        guard let code = command.first.flatMap(CommandCode.init) else { return nil }
        let count = command.count
        switch code {
        case .sendTextMessage:
            // Time and attempt come before the text; an attempt beyond 3 after it.
            let late = (command.field8(at: 2) ?? 0) > 3 ? 2 : 0
            return flood + datagram(5 + max(count - 13, 0) + late)
        case .sendChannelText:
            return flood + groupDatagram(5 + min(nameLength + 2 + max(count - 7, 0), longestText))
        case .sendChannelData:
            let path = command.field8(at: 2).flatMap { PathByte(rawValue: $0).pathLength }
            // Type and length come before the data.
            return (path.map { direct + $0 } ?? flood) + groupDatagram(3 + max(count - 5 - (path ?? 0), 0))
        case .sendSelfAdvert:
            return (command.field8(at: 1) == 1 ? flood : direct) + advert
        case .shareContact:
            // With transport codes that mean "nowhere".
            return flood + advert
        case .sendLogin:
            // Time, for a room also the time of the last message, password.
            return flood + anonymousDatagram(8 + min(max(count - 33, 0), 15))
        case .sendAnonymousRequest:
            return flood + anonymousDatagram(4 + max(count - 33, 0))
        case .sendBinaryRequest:
            return flood + datagram(4 + max(count - 33, 0))
        case .sendStatusRequest, .sendPathDiscovery:
            return flood + datagram(plainRequest)
        case .sendTelemetryRequest:
            return count > 4 ? flood + datagram(plainRequest) : nil
        case .sendTracePath:
            // Tag, authentication, flags, hashes: as in the command. The path fills up on the way.
            return direct + count - 1
        case .sendRawData:
            // Path byte, path and payload are as in the command; the header stands for its code.
            return count
        case .sendControlData:
            return direct + count - 1
        case .sendRawPacket:
            return max(count - 2, 0)
        case .appStart, .getContacts, .getTime, .setTime, .setName, .addUpdateContact, .syncNextMessage, .setRadio,
            .setTransmitPower, .resetPath, .setLocation, .removeContact, .exportContact, .importContact, .reboot,
            .getBatteryAndStorage, .setTuning, .deviceQuery, .exportPrivateKey, .importPrivateKey, .hasConnection,
            .logout, .getContactByKey, .getChannel, .setChannel, .signStart, .signData, .signFinish, .setDevicePIN,
            .setOtherParameters, .getCustomVariables, .setCustomVariable, .getAdvertPath, .getTuning, .factoryReset,
            .setFloodScope, .getStatistics, .setAutoAdd, .getAutoAdd, .getAllowedRepeatFrequencies, .setPathHashMode,
            .setDefaultScope, .getDefaultScope, .runCLICommand:
            return nil
        }
    }

    /// Hashes of both nodes, MAC, encrypted text (`Mesh::createDatagram`).
    private static func datagram(_ plain: Int) -> Int { 2 + mac + encrypted(plain) }

    /// Hash of the channel, MAC, encrypted text (`Mesh::createGroupDatagram`).
    private static func groupDatagram(_ plain: Int) -> Int { 1 + mac + encrypted(plain) }

    /// Hash of the recipient, key of the sender, MAC, encrypted text (`Mesh::createAnonDatagram`).
    private static func anonymousDatagram(_ plain: Int) -> Int { 1 + PublicKey.length + mac + encrypted(plain) }

    private static func encrypted(_ plain: Int) -> Int { (plain + block - 1) / block * block }
}
