// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The first byte of a frame from a client to the radio (firmware v1.17.1, `examples/companion_radio/MyMesh.cpp`).
public enum CommandCode: UInt8, Sendable, Hashable, CaseIterable {
    case appStart = 1
    case sendTextMessage = 2
    case sendChannelText = 3
    case getContacts = 4
    case getTime = 5
    case setTime = 6
    case sendSelfAdvert = 7
    case setName = 8
    case addUpdateContact = 9
    case syncNextMessage = 10
    case setRadio = 11
    case setTransmitPower = 12
    case resetPath = 13
    case setLocation = 14
    case removeContact = 15
    case shareContact = 16
    case exportContact = 17
    case importContact = 18
    case reboot = 19
    case getBatteryAndStorage = 20
    case setTuning = 21
    case deviceQuery = 22
    case exportPrivateKey = 23
    case importPrivateKey = 24
    case sendRawData = 25
    case sendLogin = 26
    case sendStatusRequest = 27
    case hasConnection = 28
    case logout = 29
    case getContactByKey = 30
    case getChannel = 31
    case setChannel = 32
    case signStart = 33
    case signData = 34
    case signFinish = 35
    case sendTracePath = 36
    case setDevicePIN = 37
    case setOtherParameters = 38
    case sendTelemetryRequest = 39
    case getCustomVariables = 40
    case setCustomVariable = 41
    case getAdvertPath = 42
    case getTuning = 43
    case sendBinaryRequest = 50
    case factoryReset = 51
    case sendPathDiscovery = 52
    case setFloodScope = 54
    case sendControlData = 55
    case getStatistics = 56
    case sendAnonymousRequest = 57
    case setAutoAdd = 58
    case getAutoAdd = 59
    case getAllowedRepeatFrequencies = 60
    case setPathHashMode = 61
    case sendChannelData = 62
    case setDefaultScope = 63
    case getDefaultScope = 64
    case sendRawPacket = 65
    case runCLICommand = 66
}

/// The first byte of a frame from the radio that answers a command; all are below 0x80.
public enum ReplyCode: UInt8, Sendable, Hashable, CaseIterable {
    case ok = 0x00
    case error = 0x01
    case contactsStart = 0x02
    case contact = 0x03
    case endOfContacts = 0x04
    case selfInfo = 0x05
    case sent = 0x06
    case contactMessage = 0x07
    case channelMessage = 0x08
    case currentTime = 0x09
    case noMoreMessages = 0x0A
    case exportedContact = 0x0B
    case batteryAndStorage = 0x0C
    case deviceInfo = 0x0D
    case privateKey = 0x0E
    case disabled = 0x0F
    case contactMessageV3 = 0x10
    case channelMessageV3 = 0x11
    case channelInfo = 0x12
    case signStart = 0x13
    case signature = 0x14
    case customVariables = 0x15
    case advertPath = 0x16
    case tuning = 0x17
    case statistics = 0x18
    case autoAdd = 0x19
    case allowedRepeatFrequencies = 0x1A
    case channelData = 0x1B
    case defaultScope = 0x1C
    case cliReply = 0x1D
}

/// The first byte of a frame that the radio sends unasked; all are 0x80 or more.
public enum PushCode: UInt8, Sendable, Hashable, CaseIterable {
    case advert = 0x80
    case pathUpdated = 0x81
    case sendConfirmed = 0x82
    case messageWaiting = 0x83
    case rawData = 0x84
    case loginSuccess = 0x85
    case loginFailed = 0x86
    case statusResponse = 0x87
    case receivedPacketLog = 0x88
    case trace = 0x89
    case newAdvert = 0x8A
    case telemetryResponse = 0x8B
    case binaryResponse = 0x8C
    case pathDiscovery = 0x8D
    case controlData = 0x8E
    case contactDeleted = 0x8F
    case contactsFull = 0x90

    /// Whether a frame with this first byte is a push.
    public static func isPush(_ firstByte: UInt8) -> Bool { firstByte >= 0x80 }
}

/// The second byte of an ``ReplyCode/error`` frame.
public enum CompanionErrorCode: UInt8, Sendable, Hashable, CaseIterable {
    case unsupported = 1
    case notFound = 2
    case tableFull = 3
    case badState = 4
    case fileError = 5
    case illegalArgument = 6
}
