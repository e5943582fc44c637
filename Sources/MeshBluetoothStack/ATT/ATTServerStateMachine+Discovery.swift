// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Requests that find attributes (Core Specification 5.4, Vol 3 Part F §3.4.3, §3.4.4).
extension ATTServerStateMachine {
    private func handles(_ range: ATTPacket.HandleRange) throws(Refusal) -> ClosedRange<UInt16> {
        guard range.first > 0, range.first <= range.last else { throw Refusal(.invalidHandle, range.first) }
        guard let handles = database.handles(range) else { throw Refusal(.attributeNotFound, range.first) }
        return handles
    }

    func findInformation(_ range: ATTPacket.HandleRange) throws(Refusal) -> ATTPacket {
        var found: [ATTPacket.TypedHandle] = []
        var isShort = true
        for handle in try handles(range) {
            guard let attribute = database[handle] else { break }
            // One answer has UUIDs of one length.
            if found.isEmpty { isShort = attribute.type.shortForm != nil }
            guard isShort == (attribute.type.shortForm != nil),
                2 + (found.count + 1) * (isShort ? 4 : 18) <= mtu
            else { break }
            found.append(ATTPacket.TypedHandle(handle, attribute.type))
        }
        return .findInformationResponse(found)
    }

    func findByTypeValue(
        _ range: ATTPacket.HandleRange, _ type: UInt16, _ value: [UInt8]
    ) throws(Refusal) -> ATTPacket {
        var found: [ATTPacket.HandleRange] = []
        for handle in try handles(range) where 1 + (found.count + 1) * 4 <= mtu {
            guard let attribute = database[handle], attribute.type == BluetoothUUID(UInt32(type)),
                attribute.value == value,
                attribute.type == .primaryService
            else { continue }
            found.append(ATTPacket.HandleRange(handle, attribute.groupEnd))
        }
        if found.isEmpty { throw Refusal(.attributeNotFound, range.first) }
        return .findByTypeValueResponse(found)
    }

    func readByType(_ range: ATTPacket.HandleRange, _ type: BluetoothUUID) throws(Refusal) -> ATTPacket {
        var entries: [ATTPacket.HandleValue] = []
        for handle in try handles(range) where database[handle]?.type == type {
            let value: [UInt8]
            do {
                value = Array(try read(handle).prefix(min(mtu - 4, 253)))
            } catch {
                // The first that cannot be read is an error, a later one the end of the answer (§3.4.4.1).
                if entries.isEmpty { throw error }
                break
            }
            // One answer has values of one length.
            guard entries.isEmpty || value.count == entries[0].value.count,
                2 + (entries.count + 1) * (2 + value.count) <= mtu
            else { break }
            entries.append(ATTPacket.HandleValue(handle, value))
        }
        if entries.isEmpty { throw Refusal(.attributeNotFound, range.first) }
        return .readByTypeResponse(entries)
    }

    func readByGroupType(_ range: ATTPacket.HandleRange, _ type: BluetoothUUID) throws(Refusal) -> ATTPacket {
        guard type == .primaryService || type == .secondaryService else {
            throw Refusal(.unsupportedGroupType, range.first)
        }
        var groups: [ATTPacket.GroupValue] = []
        for handle in try handles(range) {
            guard let attribute = database[handle], attribute.type == type else { continue }
            guard groups.isEmpty || attribute.value.count == groups[0].value.count,
                2 + (groups.count + 1) * (4 + attribute.value.count) <= mtu
            else { break }
            groups.append(ATTPacket.GroupValue(ATTPacket.HandleRange(handle, attribute.groupEnd), attribute.value))
        }
        if groups.isEmpty { throw Refusal(.attributeNotFound, range.first) }
        return .readByGroupTypeResponse(groups)
    }
}
