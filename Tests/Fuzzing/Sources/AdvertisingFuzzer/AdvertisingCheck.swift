// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What must hold for any bytes that are said to be an advertisement: they are read as far as they make sense, what was
/// read is written as an advertisement that says the same, and no more is skipped than there is.
enum AdvertisingCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        let bytes = Array(input)
        let (data, skipped) = AdvertisingData.decode(bytes)
        precondition((0...bytes.count).contains(skipped), "more than there is")
        // What is written is the same: an advertisement that was read has nothing that would be cut, but that names are
        // repaired, which makes them longer.
        let written = data.encoded()
        let (again, garbage) = AdvertisingData.decode(written)
        precondition(garbage == 0, "garbage was written")
        precondition(again.flags == data.flags && again.transmitPower == data.transmitPower)
        precondition(Set(again.services) == Set(data.services) && again.services.count == data.services.count)
        precondition(again.manufacturerData == data.manufacturerData && again.serviceData == data.serviceData)
        precondition(again.others == data.others)
        // Of code points, not of characters: a name may be cut between a letter and a mark that belongs to it.
        let name = data.localName?.text.unicodeScalars
        precondition(again.localName.map { name?.starts(with: $0.text.unicodeScalars) ?? false } ?? true)
        precondition(again.encoded() == written, "written in another way")
        _ = DeviceKind(data)
    }
}
