// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

extension CompanionCommand: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        switch self {
        case .getTime, .syncNextMessage, .getBatteryAndStorage, .exportPrivateKey, .signStart, .signFinish,
            .getCustomVariables, .getTuning, .getAutoAdd, .getAllowedRepeatFrequencies, .getDefaultScope:
            break
        // The words that keep an accident from doing it (firmware `memcmp`).
        case .reboot: try visitor.constant("confirmation", "reboot")
        case .factoryReset: try visitor.constant("confirmation", "reset")
        case .appStart(var fields):
            try fields.visit(&visitor)
            self = .appStart(fields)
        case .sendTextMessage(var fields):
            try fields.visit(&visitor)
            self = .sendTextMessage(fields)
        case .sendChannelText(var fields):
            try fields.visit(&visitor)
            self = .sendChannelText(fields)
        case .addUpdateContact(var fields):
            try fields.visit(&visitor)
            self = .addUpdateContact(fields)
        case .setRadio(var fields):
            try fields.visit(&visitor)
            self = .setRadio(fields)
        case .setLocation(var fields):
            try fields.visit(&visitor)
            self = .setLocation(fields)
        case .setTuning(var fields):
            try fields.visit(&visitor)
            self = .setTuning(fields)
        case .sendRawData(var fields):
            try fields.visit(&visitor)
            self = .sendRawData(fields)
        case .sendLogin(var fields):
            try fields.visit(&visitor)
            self = .sendLogin(fields)
        case .setChannel(var fields):
            try fields.visit(&visitor)
            self = .setChannel(fields)
        case .sendTracePath(var fields):
            try fields.visit(&visitor)
            self = .sendTracePath(fields)
        case .setOtherParameters(var fields):
            try fields.visit(&visitor)
            self = .setOtherParameters(fields)
        case .setCustomVariable(var fields):
            try fields.visit(&visitor)
            self = .setCustomVariable(fields)
        case .sendBinaryRequest(var fields):
            try fields.visit(&visitor)
            self = .sendBinaryRequest(fields)
        case .setFloodScope(var fields):
            try fields.visit(&visitor)
            self = .setFloodScope(fields)
        case .sendAnonymousRequest(var fields):
            try fields.visit(&visitor)
            self = .sendAnonymousRequest(fields)
        case .setAutoAdd(var fields):
            try fields.visit(&visitor)
            self = .setAutoAdd(fields)
        case .sendChannelData(var fields):
            try fields.visit(&visitor)
            self = .sendChannelData(fields)
        case .sendRawPacket(var fields):
            try fields.visit(&visitor)
            self = .sendRawPacket(fields)
        case .resetPath(var key):
            try visitor.key(&key)
            self = .resetPath(key)
        case .removeContact(var key):
            try visitor.key(&key)
            self = .removeContact(key)
        case .shareContact(var key):
            try visitor.key(&key)
            self = .shareContact(key)
        case .sendStatusRequest(var key):
            try visitor.key(&key)
            self = .sendStatusRequest(key)
        case .hasConnection(var key):
            try visitor.key(&key)
            self = .hasConnection(key)
        case .logout(var key):
            try visitor.key(&key)
            self = .logout(key)
        case .getContactByKey(var key):
            try visitor.key(&key)
            self = .getContactByKey(key)
        case .exportContact(var key):
            try visitor.key(optional: &key)
            self = .exportContact(key)
        case .getAdvertPath(var key):
            try visitor.reserved("\0")
            try visitor.key(&key)
            self = .getAdvertPath(key)
        case .sendPathDiscovery(var key):
            // The firmware refuses another first byte.
            try visitor.constant("form", "\0")
            try visitor.key(&key)
            self = .sendPathDiscovery(key)
        case .sendTelemetryRequest(var key):
            try visitor.reserved("\0\0\0")
            try visitor.key(optional: &key)
            self = .sendTelemetryRequest(key)
        case .getContacts(var since):
            try visitor.integer("since", optional: &since)
            self = .getContacts(since: since)
        case .setTime(var time):
            try visitor.integer("time", &time)
            self = .setTime(time)
        case .sendSelfAdvert(var flood):
            if try visitor.begin("flood", isSet: flood) { try visitor.flag("flood", &flood) }
            self = .sendSelfAdvert(flood: flood)
        case .setName(var name):
            try visitor.text("node_name", &name, limit: 31, secret: false)
            if name.isEmpty { throw visitor.invalid("node_name") }
            self = .setName(name)
        case .setTransmitPower(var power):
            try visitor.integer("transmit_power_dbm", &power)
            self = .setTransmitPower(power)
        case .importContact(var packet):
            // `len > 2 + 32 + 64`, code included.
            try visitor.rest("packet", &packet, minimum: 98)
            self = .importContact(packet)
        case .deviceQuery(var version):
            try visitor.integer("version", &version)
            self = .deviceQuery(version: version)
        case .importPrivateKey(var key):
            try visitor.bytes("private_key", &key, count: 64, secret: true)
            self = .importPrivateKey(key)
        case .getChannel(var index):
            try visitor.integer("channel", &index)
            self = .getChannel(index: index)
        case .signData(var data):
            try visitor.rest("data", &data, minimum: 0)
            self = .signData(data)
        case .setDevicePIN(var pin):
            try visitor.integer("pin", &pin, secret: true)
            self = .setDevicePIN(pin)
        case .sendControlData(var data):
            try visitor.rest("data", &data, minimum: 1)
            if (data.first ?? 0) < 0x80 { throw visitor.invalid("data") }
            self = .sendControlData(data)
        case .getStatistics(var kind):
            try visitor.integer("stats_type", &kind)
            self = .getStatistics(kind: kind)
        case .setPathHashMode(var mode):
            // The firmware refuses another first byte.
            try visitor.constant("form", "\0")
            try visitor.integer("path_hash_mode", &mode)
            self = .setPathHashMode(mode)
        case .setDefaultScope(var scope):
            if try visitor.begin("scope_name", isSet: scope != nil) {
                var fields = scope ?? .empty
                try fields.visit(&visitor)
                scope = fields
            }
            self = .setDefaultScope(scope)
        case .runCLICommand(var text):
            try visitor.requiredText("text", &text)
            self = .runCLICommand(text)
        case .unknown(let code, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(code: code, bytes: bytes)
        }
    }
}
