// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which of the kernel's messages are news. It repeats itself: an IPv6 address is told again with each router advertisement,
/// a wireless interface with each scan.
struct NetworkState {
    private struct Address: Hashable {
        var interface: UInt32
        var address: [UInt8]
    }

    /// More than a host has; beyond it everything is forgotten and may be news once more.
    private static let limit = 4_096

    private var addresses: Set<Address> = []
    private var running: Set<UInt32> = []

    /// How much is remembered.
    var count: Int { addresses.count + running.count }

    /// Whether connections may work now that did not before.
    mutating func take(_ change: NetworkChange) -> Bool {
        if count >= Self.limit { self = NetworkState() }
        switch change {
        case .addressPresent(let interface, let address):
            return addresses.insert(Address(interface: interface, address: address)).inserted
        case .addressGone(let interface, let address):
            addresses.remove(Address(interface: interface, address: address))
            return false
        case .interface(let index, isRunning: true):
            return running.insert(index).inserted
        case .interface(let index, isRunning: false):
            running.remove(index)
            return false
        case .interfaceGone(let index):
            running.remove(index)
            addresses = addresses.filter { $0.interface != index }
            return false
        case .lost: return true
        }
    }
}
