// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion

/// One value or more of every command, reply and push, with all fields and in shorter forms.
enum CompanionSamples {
    static let key = PublicKey(Data(1...32))!
    static let prefix = KeyPrefix(Data([0x01, 0x23, 0x45, 0x67, 0x89, 0xAB]))!
    static let path = PacketPath(hashSize: 2, hashes: Data([1, 2, 3, 4]))!
    static let place = Coordinates(latitude: 47.794_14, longitude: -3.428_21)!
    static let snr = SignalToNoise(quarters: -9)
    static let secret = Data(0..<16)
    static let bytes = Data([0x81, 0x00, 0xFF, 0x3E, 0x07])

    static var contact: Contact {
        var field = Contact.emptyPath
        field.replaceSubrange(0..<4, with: path.hashes)
        return Contact(
            publicKey: key, type: .repeater, flags: 3, pathByte: path.byte, pathField: field, name: "Hügel",
            lastAdvert: 1_704_067_200, location: place, lastModified: 1_704_067_201)
    }

    static var update: ContactUpdate {
        ContactUpdate(publicKey: key, type: .chat, flags: 1, name: "Ann", lastAdvert: 5)
    }

    static var commands: [CompanionCommand] {
        var located = update
        located.location = place
        var dated = located
        dated.lastModified = 7
        return [
            .appStart(AppStart(appName: "MCore")),
            .sendTextMessage(OutgoingText(type: .plain, attempt: 1, timestamp: 9, recipient: prefix, text: "Hello")),
            .sendChannelText(OutgoingChannelText(channel: 2, timestamp: 9, text: "Hi")),
            .getContacts(since: nil), .getContacts(since: 77),
            .getTime, .setTime(1_704_067_200), .sendSelfAdvert(flood: false), .sendSelfAdvert(flood: true),
            .setName("TestNode"), .addUpdateContact(update), .addUpdateContact(located), .addUpdateContact(dated),
            .syncNextMessage,
            .setRadio(
                RadioParameters(
                    frequencyKilohertz: 869_525, bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 5)),
            .setRadio(
                RadioParameters(
                    frequencyKilohertz: 869_495, bandwidthHertz: 62_500, spreadingFactor: 8, codingRate: 8,
                    repeats: true)),
            .setTransmitPower(-5), .resetPath(key), .setLocation(LocationUpdate(location: place)),
            .setLocation(LocationUpdate(location: place, altitude: -12)), .removeContact(key), .shareContact(key),
            .exportContact(nil), .exportContact(key), .importContact(Data(repeating: 7, count: 98)), .reboot,
            .getBatteryAndStorage, .setTuning(Tuning(receiveDelayThousandths: 0, airtimeFactorThousandths: 1_000)),
            .deviceQuery(version: 3), .exportPrivateKey, .importPrivateKey(Data(0..<64)),
            .sendRawData(OutgoingRawData(path: path, payload: bytes)),
            .sendLogin(Login(publicKey: key, password: "secret")), .sendLogin(Login(publicKey: key, password: "")),
            .sendStatusRequest(key), .hasConnection(key), .logout(key), .getContactByKey(key), .getChannel(index: 3),
            .setChannel(Channel(index: 0, name: "General", secret: secret)), .signStart, .signData(bytes), .signFinish,
            .sendTracePath(TraceRequest(tag: 0xDEAD_BEEF, authCode: 1, flags: 1, path: Data([1, 2, 3, 4]))),
            .setDevicePIN(123_456), .setOtherParameters(OtherParameters(manualAdd: 1)),
            .setOtherParameters(OtherParameters(manualAdd: 1, telemetryModes: 0x15)),
            .setOtherParameters(
                OtherParameters(manualAdd: 0, telemetryModes: 0, locationPolicy: 1, multipleAcknowledgements: 2)),
            .sendTelemetryRequest(nil), .sendTelemetryRequest(key), .getCustomVariables,
            .setCustomVariable(CustomVariable(name: "gps", value: "1:2")), .getAdvertPath(key), .getTuning,
            .sendBinaryRequest(NodeRequest(publicKey: key, request: Data([5, 0, 0]))), .factoryReset,
            .sendPathDiscovery(key), .setFloodScope(.standard), .setFloodScope(.region(key: secret)),
            .setFloodScope(.unscoped), .sendControlData(bytes), .getStatistics(kind: 2),
            .sendAnonymousRequest(NodeRequest(publicKey: key, request: Data([1, 0]))),
            .setAutoAdd(AutoAdd(mask: 0x1F)), .setAutoAdd(AutoAdd(mask: 1, maximumHops: 4)), .getAutoAdd,
            .getAllowedRepeatFrequencies, .setPathHashMode(2),
            .sendChannelData(OutgoingChannelData(channel: 1, dataType: 0x0102, payload: bytes)),
            .sendChannelData(OutgoingChannelData(channel: 1, path: path, dataType: 1, payload: Data())),
            .setDefaultScope(nil), .setDefaultScope(DefaultScope(name: "region", key: secret)), .getDefaultScope,
            .sendRawPacket(OutgoingRawPacket(priority: 2, packet: bytes)), .runCLICommand("ver"),
            .unknown(code: 99, bytes: bytes),
        ]
    }

    static var replies: [CompanionReply] {
        let signed = ReceivedMessage(
            source: .contact(keyPrefix: [1, 2, 3, 4, 5, 6]), pathByte: 0x42, textType: 2, timestamp: 8,
            authorPrefix: [9, 8, 7, 6], text: "Hi")
        var signedV3 = signed
        signedV3.snrQuarters = 20
        return [
            .ok(value: nil), .ok(value: 5), .error(code: nil), .error(code: 2), .error(code: 200),
            .contactsStart(total: 350), .contact(contact), .endOfContacts(latestChange: 12),
            .selfInfo(
                SelfInfo(
                    type: .chat, transmitPower: -9, maximumTransmitPower: 22, publicKey: key, location: place,
                    multipleAcknowledgements: 1, locationPolicy: 1, telemetryModes: 0x2A, manualAdd: 1,
                    frequencyKilohertz: 869_525, bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 5, name: "x")
            ),
            .sent(SentReceipt(isFlood: true, tag: 0xEFBE_ADDE, timeoutMilliseconds: 5_000)),
            .message(signed), .message(signedV3),
            .message(ReceivedMessage(source: .channel(index: 1), pathByte: 0xFF, timestamp: 8, text: "Bob: Hi")),
            .message(
                ReceivedMessage(
                    source: .channel(index: 1), snrQuarters: -7, pathByte: 3, timestamp: 8, text: "Bob: Hi")),
            .currentTime(1_704_067_200), .noMoreMessages, .exportedContact(bytes),
            .batteryAndStorage(BatteryAndStorage(batteryMillivolts: 4_200)),
            .batteryAndStorage(
                BatteryAndStorage(batteryMillivolts: 1, storage: .init(usedKilobytes: 22, totalKilobytes: 100))),
            .deviceInfo(DeviceInfo(protocolVersion: 1)), .deviceInfo(deviceInfo),
            .privateKey(Data(0..<64)), .disabled, .channelInfo(Channel(index: 3, name: "Public", secret: secret)),
            .signStart(maximumLength: 8_192), .signature(Data(repeating: 0x5A, count: 64)),
            .customVariables("gps:1,x:a:b"), .customVariables("gps:1,mode:2"),
            .advertPath(AdvertPath(received: 3, path: path)),
            .tuning(Tuning(receiveDelayThousandths: 1, airtimeFactorThousandths: 2)),
            .statistics(.core(.init(batteryMillivolts: 1, uptimeSeconds: 2, errorFlags: 3, queueLength: 4))),
            .statistics(
                .radio(
                    .init(
                        noiseFloor: -118, lastRSSI: -85, lastSignalToNoise: snr, transmitSeconds: 1, receiveSeconds: 2))
            ),
            .statistics(.packets(packetCounters(errors: nil))), .statistics(.packets(packetCounters(errors: 7))),
            .statistics(.unknown(kind: 9, bytes: secret.suffix(10))), .autoAdd(AutoAdd(mask: 3)),
            .autoAdd(AutoAdd(mask: 3, maximumHops: 2)), .allowedRepeatFrequencies([]),
            .allowedRepeatFrequencies([
                FrequencyRange(lowestKilohertz: 433_000, highestKilohertz: 433_000),
                FrequencyRange(lowestKilohertz: 869_495, highestKilohertz: 869_495),
            ]),
            .channelData(
                ReceivedChannelData(signalToNoise: snr, channel: 1, pathByte: .none, dataType: 0x0102, data: bytes)),
            .defaultScope(nil), .defaultScope(DefaultScope(name: "region", key: secret)), .cliReply("v1.18"),
            .unknown(code: 0x7F, bytes: bytes),
        ]
    }

    static var pushes: [CompanionPush] {
        var short = status
        short.receiveAirtimeSeconds = nil
        short.receiveErrors = nil
        var middle = status
        middle.receiveErrors = nil
        return [
            .advert(key), .pathUpdated(key), .sendConfirmed(SendConfirmation(acknowledgement: 1)),
            .sendConfirmed(SendConfirmation(acknowledgement: 1, tripMilliseconds: 500)), .messageWaiting,
            .rawData(ReceivedRawData(signalToNoise: snr, rssi: -85, payload: bytes)),
            .loginSuccess(LoginSuccess(permissions: 0, server: prefix)),
            .loginSuccess(
                LoginSuccess(
                    permissions: 1, server: prefix, serverTime: 5, accessPermissions: 3, firmwareLevel: 2)),
            .loginFailed(prefix), .statusResponse(StatusResponse(node: prefix, status: short)),
            .statusResponse(StatusResponse(node: prefix, status: middle)),
            .statusResponse(StatusResponse(node: prefix, status: status)),
            .receivedPacketLog(ReceivedPacketLog(signalToNoise: snr, rssi: -85, packet: bytes)),
            .trace(
                TraceResult(
                    flags: 1, tag: 7, authCode: 8, hashes: Data([1, 2, 3, 4]), signalToNoise: [snr, snr],
                    finalSignalToNoise: snr)),
            .newAdvert(contact),
            .telemetryResponse(TelemetryResponse(node: prefix, payload: Data([1, 0x67, 0, 0xFF]))),
            .binaryResponse(BinaryResponse(tag: 3, payload: bytes)),
            .pathDiscovery(PathDiscovery(node: prefix, outward: path, inward: .zeroHops)),
            .controlData(ReceivedControlData(signalToNoise: snr, rssi: -1, pathByte: .zeroHops, payload: bytes)),
            .contactDeleted(key), .contactsFull, .unknown(code: 0xF0, bytes: bytes),
        ]
    }

    static var status: NodeStatus {
        var status = NodeStatus()
        status.batteryMillivolts = 4_200
        status.noiseFloor = -118
        status.lastRSSI = -85
        status.packetsReceived = 1_000
        status.lastSNRQuarters = -30
        status.floodDuplicates = 10
        status.receiveAirtimeSeconds = 7_200
        status.receiveErrors = 2
        return status
    }

    static var deviceInfo: DeviceInfo {
        DeviceInfo(
            protocolVersion: 13,
            details: .init(
                halfMaximumContacts: 175, maximumChannels: 40, pin: 123_456, build: "14 Aug 2026", model: "Board",
                firmware: "v1.17.1"),
            repeats: true, pathHashMode: 1)
    }

    private static func packetCounters(errors: UInt32?) -> Statistics.Packets {
        .init(
            received: 1, sent: 2, sentFlood: 3, sentDirect: 4, receivedFlood: 5, receivedDirect: 6,
            receiveErrors: errors)
    }
}
