// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CBluetooth
internal import Glibc
internal import MeshBluetoothStack
internal import MeshTransportAPI

/// What the kernel tells of an adapter of this machine to whoever asks: it is not taken, opened or reset for that.
struct AdapterFacts: Sendable, Hashable {
    /// Nil for an adapter that has none of its own.
    var publicAddress: DeviceAddress?
    /// Somebody has switched it on.
    var isUp: Bool

    /// No adapter has this number, so binding to it fails with what comes first: the lack of a capability, or of the adapter.
    private static let nowhere = UInt16.max - 1

    /// Looks at an adapter, and whether this process may take it. Blocks, but for no time to speak of.
    static func ask(_ index: UInt16) throws(AdapterFailure) -> AdapterFacts {
        let descriptor = try AdapterChannel.socket()
        defer { close(descriptor) }
        let facts = try AdapterFacts(of: index, through: descriptor)
        do throws(AdapterFailure) {
            try AdapterChannel.bind(descriptor, nowhere)
        } catch  where error.number == EPERM {
            throw error
        } catch {
            // There is no such adapter, and so none was taken.
        }
        return facts
    }

    init(publicAddress: DeviceAddress?, isUp: Bool) {
        self.publicAddress = publicAddress
        self.isUp = isUp
    }

    init(of index: UInt16, through descriptor: Int32) throws(AdapterFailure) {
        var facts = hci_dev_info()
        facts.dev_id = index
        if ioctl(descriptor, mh_hci_device_information, &facts) < 0 { throw AdapterFailure(.look, errno) }
        let address = withUnsafeBytes(of: facts.bdaddr) { $0.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        publicAddress = address == 0 ? nil : DeviceAddress(address, .public)
        isUp = facts.flags >> UInt32(HCI_UP) & 1 != 0
    }

    /// For people who ask whether the daemon will be able to use it.
    func finding(_ adapter: HCIPort) -> Finding {
        let address = publicAddress.map { ", address \($0)" } ?? ""
        guard isUp else { return Finding(.ok, "\(adapter)", "is there\(address), and nobody uses it") }
        return Finding(
            .note, "\(adapter)",
            "is there\(address), and switched on: it is taken from bluetoothd, or whoever else uses it, when a device connects"
        )
    }
}
