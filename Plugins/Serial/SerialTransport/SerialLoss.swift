// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshStream

/// Why a port was closed without being asked to.
enum SerialLoss: Equatable {
    /// The device went away.
    case unplugged
    /// The port hung up soon after it was opened, though its device is there.
    case hungUp
    /// The device takes no bytes.
    case writeStalled

    /// A port that hangs up this soon and is still there is broken rather than unplugged.
    private static let flapWindow = Duration.seconds(10)

    /// `isPresent`: the device is still there.
    init(_ loss: StreamLinkStateMachine.Loss, isPresent: Bool) {
        switch loss {
        case .ended(let age): self = isPresent && age < Self.flapWindow ? .hungUp : .unplugged
        case .writeStalled: self = .writeStalled
        }
    }
}
