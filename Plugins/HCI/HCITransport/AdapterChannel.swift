// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CBluetooth
internal import Glibc

/// An adapter of this machine that is ours alone: a user channel (HCI_CHANNEL_USER) of the kernel.
///
///     bluetoothd has it            ours                            bluetoothd has it
///     up or down ── take down ──▶ channel bound ── socket closed ──▶ down ── up again, if it was
///
/// While the channel is open, bluetoothd does not see the adapter. When this process ends in any way the kernel closes the
/// channel, and bluetoothd finds the adapter again.
struct AdapterChannel: Sendable {
    let index: UInt16
    /// Non-blocking; each read and each write is one packet with its H4 indicator.
    let descriptor: Int32
    /// It was switched on before, so it will be afterwards.
    let wasUp: Bool

    /// What the kernel keeps for us while the loop does something else. It drops what does not fit, and a credit that is
    /// lost never comes back.
    private static let receiveBuffer: Int32 = 1 << 20

    /// Takes an adapter. Blocks, for as long as the adapter takes to be switched off and to be opened.
    ///
    /// `wasUp` is what an earlier attempt found. An adapter that is up is somebody's: it is taken only if that was asked for.
    static func take(_ index: UInt16, fromOthers: Bool, wasUp: Bool = false) throws(AdapterFailure) -> AdapterChannel {
        let descriptor = try socket()
        var isUp = wasUp
        var hasChannel = false
        defer { if !hasChannel { close(descriptor) } }
        do throws(AdapterFailure) {
            if try AdapterFacts(of: index, through: descriptor).isUp {
                guard fromOthers else { throw AdapterFailure(.look, EBUSY) }
                try control(descriptor, .takeDown, mh_hci_device_down, index)
                isUp = true
            }
            try bind(descriptor, index)
        } catch {
            var error = error
            error.wasUp = isUp
            // Not if it is up again: somebody has done that already.
            if isUp, error.number != EBUSY { Self.switchOn(index) }
            throw error
        }
        hasChannel = true
        // Beyond what the administrator allows others; CAP_NET_ADMIN is needed for the channel anyway.
        var size = receiveBuffer
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, socklen_t(MemoryLayout<Int32>.size))
        return AdapterChannel(index: index, descriptor: descriptor, wasUp: isUp)
    }

    /// Gives the adapter back. Blocks, as ``take(_:fromOthers:wasUp:)``.
    func giveBack() {
        close(descriptor)
        if wasUp { Self.switchOn(index) }
    }

    // MARK: The kernel

    static func socket() throws(AdapterFailure) -> Int32 {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = Glibc.socket(AF_BLUETOOTH, type, Int32(BTPROTO_HCI))
        if descriptor < 0 { throw AdapterFailure(.openSocket, errno) }
        return descriptor
    }

    private static func control(
        _ descriptor: Int32, _ step: AdapterFailure.Step, _ request: UInt, _ index: UInt16
    ) throws(AdapterFailure) {
        if ioctl(descriptor, request, Int32(index)) < 0, errno != EALREADY { throw AdapterFailure(step, errno) }
    }

    static func bind(_ descriptor: Int32, _ index: UInt16) throws(AdapterFailure) {
        var address = sockaddr_hci(
            hci_family: sa_family_t(AF_BLUETOOTH), hci_dev: index, hci_channel: UInt16(HCI_CHANNEL_USER))
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_hci>.size))
            }
        }
        if status < 0 { throw AdapterFailure(.bind, errno) }
    }

    /// Best effort: it may have been pulled, and bluetoothd may be faster.
    private static func switchOn(_ index: UInt16) {
        guard let descriptor = try? socket() else { return }
        _ = ioctl(descriptor, mh_hci_device_up, Int32(index))
        close(descriptor)
    }
}
