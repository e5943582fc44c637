// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A command's number: group in the upper six bits, command in the lower ten (Core Specification 5.4, Vol 4 Part E
/// §5.4.1).
public struct HCIOpcode: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    private init(_ rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// No command: an event with it only says how many commands may be sent.
    public static let none = HCIOpcode(0x0000)
    // Link control (§7.1)
    public static let disconnect = HCIOpcode(0x0406)
    public static let readRemoteVersion = HCIOpcode(0x041D)
    // Controller and baseband (§7.3)
    public static let setEventMask = HCIOpcode(0x0C01)
    public static let reset = HCIOpcode(0x0C03)
    public static let setEventMaskPage2 = HCIOpcode(0x0C63)
    public static let writeLEHostSupport = HCIOpcode(0x0C6D)
    // Information and status (§7.4, §7.5)
    public static let readLocalVersion = HCIOpcode(0x1001)
    public static let readSupportedCommands = HCIOpcode(0x1002)
    public static let readSupportedFeatures = HCIOpcode(0x1003)
    public static let readBufferSize = HCIOpcode(0x1005)
    public static let readAddress = HCIOpcode(0x1009)
    public static let readRSSI = HCIOpcode(0x1405)
    // LE controller (§7.8)
    public static let setLEEventMask = HCIOpcode(0x2001)
    public static let readLEBufferSize = HCIOpcode(0x2002)
    public static let readLEFeatures = HCIOpcode(0x2003)
    public static let setRandomAddress = HCIOpcode(0x2005)
    public static let setAdvertisingParameters = HCIOpcode(0x2006)
    public static let setAdvertisingData = HCIOpcode(0x2008)
    public static let setScanResponseData = HCIOpcode(0x2009)
    public static let setAdvertisingEnable = HCIOpcode(0x200A)
    public static let setScanParameters = HCIOpcode(0x200B)
    public static let setScanEnable = HCIOpcode(0x200C)
    public static let createConnection = HCIOpcode(0x200D)
    public static let createConnectionCancel = HCIOpcode(0x200E)
    public static let readAcceptListSize = HCIOpcode(0x200F)
    public static let updateConnection = HCIOpcode(0x2013)
    public static let readRemoteFeatures = HCIOpcode(0x2016)
    public static let enableEncryption = HCIOpcode(0x2019)
    public static let longTermKeyReply = HCIOpcode(0x201A)
    public static let longTermKeyNegativeReply = HCIOpcode(0x201B)
    public static let connectionParameterReply = HCIOpcode(0x2020)
    public static let connectionParameterNegativeReply = HCIOpcode(0x2021)
    public static let setDataLength = HCIOpcode(0x2022)
    public static let writeDefaultDataLength = HCIOpcode(0x2024)
    public static let addToResolvingList = HCIOpcode(0x2027)
    public static let clearResolvingList = HCIOpcode(0x2029)
    public static let readResolvingListSize = HCIOpcode(0x202A)
    public static let setAddressResolutionEnable = HCIOpcode(0x202D)
    public static let setPrivateAddressTimeout = HCIOpcode(0x202E)
    public static let readMaximumDataLength = HCIOpcode(0x202F)
    public static let setDefaultPHY = HCIOpcode(0x2031)
    public static let setPHY = HCIOpcode(0x2032)
    public static let setAdvertisingSetRandomAddress = HCIOpcode(0x2035)
    public static let setExtendedAdvertisingParameters = HCIOpcode(0x2036)
    public static let setExtendedAdvertisingData = HCIOpcode(0x2037)
    public static let setExtendedScanResponseData = HCIOpcode(0x2038)
    public static let setExtendedAdvertisingEnable = HCIOpcode(0x2039)
    public static let removeAdvertisingSet = HCIOpcode(0x203C)
    public static let setExtendedScanParameters = HCIOpcode(0x2041)
    public static let setExtendedScanEnable = HCIOpcode(0x2042)
    public static let extendedCreateConnection = HCIOpcode(0x2043)
    public static let setPrivacyMode = HCIOpcode(0x204E)
    public static let readLEBufferSizeV2 = HCIOpcode(0x2060)

    /// Where the answer to Read_Local_Supported_Commands has this command's bit (§6.27). Nil for those that every
    /// controller has to know, or that no bit was given.
    var supportedBit: (octet: Int, bit: Int)? {
        Self.supportedBits[self]
    }

    private static let supportedBits: [HCIOpcode: (octet: Int, bit: Int)] = [
        .disconnect: (0, 5), .readRemoteVersion: (2, 7), .setEventMask: (5, 6), .reset: (5, 7),
        .readLocalVersion: (14, 3), .readSupportedFeatures: (14, 5), .readBufferSize: (14, 7), .readAddress: (15, 1),
        .readRSSI: (15, 5), .setEventMaskPage2: (22, 2), .writeLEHostSupport: (24, 6),
        .setLEEventMask: (25, 0), .readLEBufferSize: (25, 1), .readLEFeatures: (25, 2), .setRandomAddress: (25, 4),
        .setAdvertisingParameters: (25, 5), .setAdvertisingData: (25, 7), .setScanResponseData: (26, 0),
        .setAdvertisingEnable: (26, 1), .setScanParameters: (26, 2), .setScanEnable: (26, 3),
        .createConnection: (26, 4), .createConnectionCancel: (26, 5), .readAcceptListSize: (26, 6),
        .updateConnection: (27, 2), .readRemoteFeatures: (27, 5), .enableEncryption: (28, 0),
        .longTermKeyReply: (28, 1), .longTermKeyNegativeReply: (28, 2), .connectionParameterReply: (33, 4),
        .connectionParameterNegativeReply: (33, 5), .setDataLength: (33, 6), .writeDefaultDataLength: (34, 0),
        .addToResolvingList: (34, 3), .clearResolvingList: (34, 5), .readResolvingListSize: (34, 6),
        .setAddressResolutionEnable: (35, 1), .setPrivateAddressTimeout: (35, 2), .readMaximumDataLength: (35, 3),
        .setDefaultPHY: (35, 5), .setPHY: (35, 6), .setAdvertisingSetRandomAddress: (36, 1),
        .setExtendedAdvertisingParameters: (36, 2), .setExtendedAdvertisingData: (36, 3),
        .setExtendedScanResponseData: (36, 4), .setExtendedAdvertisingEnable: (36, 5), .removeAdvertisingSet: (37, 0),
        .setExtendedScanParameters: (37, 5), .setExtendedScanEnable: (37, 6), .extendedCreateConnection: (37, 7),
        .setPrivacyMode: (39, 2), .readLEBufferSizeV2: (41, 5),
    ]
}

extension HCIOpcode: CustomStringConvertible {
    /// Such as `0x200d`.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return "0x" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
