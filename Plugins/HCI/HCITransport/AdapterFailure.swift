// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshTransportAPI

/// What the kernel refused while an adapter was taken: errno, translated once.
struct AdapterFailure: Error, Hashable, Sendable {
    enum Step: Hashable, Sendable {
        case openSocket
        case look
        case takeDown
        case bind
    }

    var step: Step
    var number: Int32
    /// The adapter had been switched on before.
    var wasUp = false

    init(_ step: Step, _ number: Int32) {
        self.step = step
        self.number = number
    }

    /// Another attempt may be better soon: somebody was faster, or the one before has not let go yet.
    var isPassing: Bool { step == .bind && number == EBUSY }

    /// For people: what is in the way, and what to do.
    func error(_ adapter: HCIPort) -> MeshError {
        switch (step, number) {
        case (.openSocket, EAFNOSUPPORT):
            MeshError(
                .adapterUnavailable,
                "there is no Bluetooth here for \(adapter): load the kernel module bluetooth; a systemd unit also has to allow "
                    + "it (RestrictAddressFamilies=AF_BLUETOOTH), and most containers do not have it")
        case (_, ENODEV):
            MeshError(
                .adapterUnavailable,
                "there is no adapter \(adapter); is the dongle plugged in? /sys/class/bluetooth lists what there is")
        case (_, EPERM), (_, EACCES):
            MeshError(
                .permissionDenied,
                "\(adapter) may not be taken: that needs the capability CAP_NET_ADMIN; a systemd unit gives it with "
                    + "AmbientCapabilities=CAP_NET_ADMIN and CapabilityBoundingSet=CAP_NET_ADMIN")
        case (.look, EBUSY):
            MeshError(
                .adapterUnavailable,
                "\(adapter) is switched on, so bluetoothd or another program uses it, and links over it would end; switch "
                    + "it off first: `bluetoothctl power off`")
        case (.takeDown, EBUSY), (.bind, EUSERS):
            MeshError(
                .adapterUnavailable,
                "another program has taken \(adapter) (an HCI user channel); end that program, or use another adapter")
        case (.bind, EBUSY):
            MeshError(
                .adapterUnavailable,
                "\(adapter) is switched on again each time it is taken, by bluetoothd or another program: "
                    + "`bluetoothctl power off` there, set AutoEnable=false in /etc/bluetooth/main.conf, or leave "
                    + "Bluetooth to this program: `systemctl mask --now bluetooth`")
        case (_, ERFKILL):
            MeshError(.adapterUnavailable, "\(adapter) is blocked by rfkill; `rfkill unblock bluetooth` lifts it")
        default:
            MeshError(
                .adapterUnavailable, "\(adapter) cannot be opened: \(step.words): \(String(cString: strerror(number)))")
        }
    }
}

extension AdapterFailure.Step {
    fileprivate var words: String {
        switch self {
        case .openSocket: "socket"
        case .look: "HCIGETDEVINFO"
        case .takeDown: "HCIDEVDOWN"
        case .bind: "bind"
        }
    }
}
