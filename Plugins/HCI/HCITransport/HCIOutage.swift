// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Why a controller cannot be used.
enum HCIOutage: Sendable, Hashable {
    /// Its port cannot be opened.
    case unopened(LoopError)
    /// The port is open, and nothing that is asked is answered.
    case silent
    /// It answers, and is not fit for use.
    case unfit(ControllerSetupStateMachine.Failure)
    /// It could be used, and then its port closed.
    case lost
    /// It could be used, and then had to be reset.
    case reset(HCICommandFlowStateMachine<HCIController.CommandWaiter>.Cause)
}

/// For people.
extension HCIOutage {
    /// What is wrong with the controller at `port`.
    func message(_ port: HCIPort) -> String {
        let controller = "the controller at \(port)"
        return switch self {
        case .unopened(let error):
            switch error.kind {
            case .notFound: "\(controller) cannot be opened: there is no such thing"
            case .connectionRefused: "\(controller) cannot be opened: nobody listens there"
            case .permissionDenied: "\(controller) cannot be opened: this user may not"
            case .hostNotFound: "\(controller) cannot be opened: the host is not known"
            default: "\(controller) cannot be opened: \(error.detail)"
            }
        case .silent: "\(controller) does not answer"
        case .unfit(.refused(let opcode, let status)): "\(controller) refuses \(opcode): HCI \(status)"
        case .unfit(.meaninglessAnswer(let opcode)): "\(controller) answers \(opcode) without meaning"
        case .unfit(.noBuffers): "\(controller) has no buffers for Bluetooth LE"
        case .unfit(.interrupted), .lost, .reset(.opened): "\(controller) was lost"
        case .reset(.commandTimedOut(let opcode)): "\(controller) is reset: it left the command \(opcode) unanswered"
        case .reset(.hardwareError(let code)): "\(controller) is reset: it reported the hardware error \(code)"
        }
    }

    /// What to try.
    var advice: String {
        switch self {
        case .lost: "it is opened anew"
        case .reset: "it is used again as soon as it answers"
        case .unopened(let error):
            switch error.kind {
            case .permissionDenied: "let this user read and write it"
            case .hostNotFound, .hostUnreachable, .networkUnreachable, .timedOut:
                "is the option controller right, and the host up?"
            default: "is the option controller right, and what serves it running?"
            }
        case .silent: "does it speak H4, and does no other program use it?"
        case .unfit: "is it a controller for Bluetooth LE?"
        }
    }

    /// Both in one text, as errors have it.
    func error(_ port: HCIPort) -> MeshError {
        var code = MeshError.Code.adapterUnavailable
        var cause: LoopError?
        if case .unopened(let error) = self {
            cause = error
            if error.kind == .cancelled { code = .cancelled }
            if error.kind == .permissionDenied { code = .permissionDenied }
        }
        return MeshError(code, "\(message(port)); \(advice)", cause: cause)
    }
}
