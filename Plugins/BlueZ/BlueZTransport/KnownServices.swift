// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshWire

/// What a device was found to have on a link that bluetoothd had looked through.
///
/// bluetoothd keeps the objects of a bonded device while there is no link, and looks at each connection whether they still hold.
/// Nothing has to wait for that: what is asked of a characteristic meanwhile goes to the device behind bluetoothd's own
/// questions, on the one attribute channel that there is. So a link to a device that looks as it did last time is used at once,
/// and ended where bluetoothd finds that it has changed.
struct KnownServices: Sendable, Hashable {
    /// What makes an object another one.
    private struct Part: Sendable, Hashable {
        let path: String
        let uuid: BluetoothUUID
        let properties: GATTCharacteristic.Properties
    }

    private let parts: [Part]
    /// The longest write to each characteristic that was asked, by its path.
    var writeLengths: [String: Int] = [:]

    init(of device: String, in objects: BlueZObjects) {
        var parts: [Part] = []
        for service in objects.services(of: device) {
            parts.append(Part(path: service.path, uuid: service.uuid, properties: []))
            for characteristic in objects.characteristics(of: service.path) {
                parts.append(
                    Part(
                        path: characteristic.path, uuid: characteristic.uuid, properties: characteristic.properties))
            }
        }
        self.parts = parts
    }

    /// Whether the device has the same now.
    func hold(of device: String, in objects: BlueZObjects) -> Bool {
        parts == KnownServices(of: device, in: objects).parts
    }
}
