// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

extension CompanionCommand {
    /// The first byte of the frame.
    public var code: UInt8 {
        if case .unknown(let code, _) = self { code } else { knownCode.rawValue }
    }

    private var knownCode: CommandCode {
        switch self {
        case .appStart: .appStart
        case .sendTextMessage: .sendTextMessage
        case .sendChannelText: .sendChannelText
        case .getContacts: .getContacts
        case .getTime: .getTime
        case .setTime: .setTime
        case .sendSelfAdvert: .sendSelfAdvert
        case .setName: .setName
        case .addUpdateContact: .addUpdateContact
        case .syncNextMessage: .syncNextMessage
        case .setRadio: .setRadio
        case .setTransmitPower: .setTransmitPower
        case .resetPath: .resetPath
        case .setLocation: .setLocation
        case .removeContact: .removeContact
        case .shareContact: .shareContact
        case .exportContact: .exportContact
        case .importContact: .importContact
        case .reboot: .reboot
        case .getBatteryAndStorage: .getBatteryAndStorage
        case .setTuning: .setTuning
        case .deviceQuery: .deviceQuery
        case .exportPrivateKey: .exportPrivateKey
        case .importPrivateKey: .importPrivateKey
        case .sendRawData: .sendRawData
        case .sendLogin: .sendLogin
        case .sendStatusRequest: .sendStatusRequest
        case .hasConnection: .hasConnection
        case .logout: .logout
        case .getContactByKey: .getContactByKey
        case .getChannel: .getChannel
        case .setChannel: .setChannel
        case .signStart: .signStart
        case .signData: .signData
        case .signFinish: .signFinish
        case .sendTracePath: .sendTracePath
        case .setDevicePIN: .setDevicePIN
        case .setOtherParameters: .setOtherParameters
        case .sendTelemetryRequest: .sendTelemetryRequest
        case .getCustomVariables: .getCustomVariables
        case .setCustomVariable: .setCustomVariable
        case .getAdvertPath: .getAdvertPath
        case .getTuning: .getTuning
        case .sendBinaryRequest: .sendBinaryRequest
        case .factoryReset: .factoryReset
        case .sendPathDiscovery: .sendPathDiscovery
        case .setFloodScope: .setFloodScope
        case .sendControlData: .sendControlData
        case .getStatistics: .getStatistics
        case .sendAnonymousRequest: .sendAnonymousRequest
        case .setAutoAdd: .setAutoAdd
        case .getAutoAdd: .getAutoAdd
        case .getAllowedRepeatFrequencies: .getAllowedRepeatFrequencies
        case .setPathHashMode: .setPathHashMode
        case .sendChannelData: .sendChannelData
        case .setDefaultScope: .setDefaultScope
        case .getDefaultScope: .getDefaultScope
        case .sendRawPacket: .sendRawPacket
        case .runCLICommand: .runCLICommand
        case .unknown: preconditionFailure("an unknown command has no known code")
        }
    }

    /// The command with nothing filled in yet.
    static func prototype(_ code: CommandCode) -> CompanionCommand {
        switch code {
        case .appStart: .appStart(.empty)
        case .sendTextMessage: .sendTextMessage(.empty)
        case .sendChannelText: .sendChannelText(.empty)
        case .getContacts: .getContacts(since: nil)
        case .getTime: .getTime
        case .setTime: .setTime(0)
        case .sendSelfAdvert: .sendSelfAdvert(flood: false)
        case .setName: .setName("")
        case .addUpdateContact: .addUpdateContact(.empty)
        case .syncNextMessage: .syncNextMessage
        case .setRadio: .setRadio(.empty)
        case .setTransmitPower: .setTransmitPower(0)
        case .resetPath: .resetPath(.zero)
        case .setLocation: .setLocation(.empty)
        case .removeContact: .removeContact(.zero)
        case .shareContact: .shareContact(.zero)
        case .exportContact: .exportContact(nil)
        case .importContact: .importContact(Data())
        case .reboot: .reboot
        case .getBatteryAndStorage: .getBatteryAndStorage
        case .setTuning: .setTuning(.empty)
        case .deviceQuery: .deviceQuery(version: 0)
        case .exportPrivateKey: .exportPrivateKey
        case .importPrivateKey: .importPrivateKey(Data())
        case .sendRawData: .sendRawData(.empty)
        case .sendLogin: .sendLogin(.empty)
        case .sendStatusRequest: .sendStatusRequest(.zero)
        case .hasConnection: .hasConnection(.zero)
        case .logout: .logout(.zero)
        case .getContactByKey: .getContactByKey(.zero)
        case .getChannel: .getChannel(index: 0)
        case .setChannel: .setChannel(.empty)
        case .signStart: .signStart
        case .signData: .signData(Data())
        case .signFinish: .signFinish
        case .sendTracePath: .sendTracePath(.empty)
        case .setDevicePIN: .setDevicePIN(0)
        case .setOtherParameters: .setOtherParameters(.empty)
        case .sendTelemetryRequest: .sendTelemetryRequest(nil)
        case .getCustomVariables: .getCustomVariables
        case .setCustomVariable: .setCustomVariable(.empty)
        case .getAdvertPath: .getAdvertPath(.zero)
        case .getTuning: .getTuning
        case .sendBinaryRequest: .sendBinaryRequest(.empty)
        case .factoryReset: .factoryReset
        case .sendPathDiscovery: .sendPathDiscovery(.zero)
        case .setFloodScope: .setFloodScope(.standard)
        case .sendControlData: .sendControlData(Data())
        case .getStatistics: .getStatistics(kind: 0)
        case .sendAnonymousRequest: .sendAnonymousRequest(.empty)
        case .setAutoAdd: .setAutoAdd(.empty)
        case .getAutoAdd: .getAutoAdd
        case .getAllowedRepeatFrequencies: .getAllowedRepeatFrequencies
        case .setPathHashMode: .setPathHashMode(0)
        case .sendChannelData: .sendChannelData(.empty)
        case .setDefaultScope: .setDefaultScope(nil)
        case .getDefaultScope: .getDefaultScope
        case .sendRawPacket: .sendRawPacket(.empty)
        case .runCLICommand: .runCLICommand("")
        }
    }
}
