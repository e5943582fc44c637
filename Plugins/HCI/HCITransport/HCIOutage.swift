// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Why a controller cannot be used.
enum HCIOutage: Sendable, Hashable {
    /// Its port cannot be opened.
    case unopened(LoopError)
    /// None of the addresses that its host has can be connected to.
    case unreached([Unreached])
    /// The port is open, and nothing that is asked is answered.
    case silent
    /// It answers, and is not fit for use.
    case unfit(ControllerSetupStateMachine.Failure)
    /// It could be used, and then its port closed.
    case lost
    /// It could be used, and then had to be reset.
    case reset(HCICommandFlowStateMachine<HCIController.CommandWaiter>.Cause)

    /// An address of several.
    struct Unreached: Sendable, Hashable {
        var address: String
        var error: LoopError
    }

    init(_ failures: LoopStream.ConnectFailures) {
        let unreached = failures.failures.map { Unreached(address: $0.address.description, error: $0.error) }
        if failures.isCancelled {
            self = .unopened(LoopError(kind: .cancelled, operation: "connect", detail: "cancelled"))
        } else if unreached.count > 1 {
            self = .unreached(unreached)
        } else {
            self = .unopened(
                unreached.first?.error
                    ?? LoopError(kind: .hostNotFound, operation: "resolve", detail: "the host has no address"))
        }
    }

    /// What the port, or the most telling of its addresses, failed with: one that answered says more than one that no way leads
    /// to.
    private var openingError: LoopError? {
        switch self {
        case .unopened(let error): return error
        case .unreached(let addresses):
            let order: [LoopError.Kind] = [.connectionRefused, .connectionReset, .timedOut, .hostUnreachable]
            let errors = addresses.map(\.error)
            return order.lazy.compactMap { kind in errors.first { $0.kind == kind } }.first ?? errors.first
        case .silent, .unfit, .lost, .reset: return nil
        }
    }
}

/// For people.
extension HCIOutage {
    /// What is wrong with the controller at `port`.
    func message(_ port: HCIPort) -> String {
        let controller = "the controller at \(port)"
        return switch self {
        case .unopened(let error): "\(controller) cannot be opened: \(Self.words(error))"
        case .unreached(let addresses):
            "\(controller) cannot be opened: "
                + addresses.map { "\($0.address): \(Self.words($0.error))" }.joined(separator: ", ")
        case .silent: "\(controller) does not answer"
        case .unfit(.refused(let opcode, let status)): "\(controller) refuses \(opcode): HCI \(status)"
        case .unfit(.meaninglessAnswer(let opcode)): "\(controller) answers \(opcode) without meaning"
        case .unfit(.noBuffers): "\(controller) has no buffers for Bluetooth LE"
        case .unfit(.interrupted), .lost, .reset(.opened): "\(controller) was lost"
        case .reset(.commandTimedOut(let opcode)): "\(controller) is reset: it left the command \(opcode) unanswered"
        case .reset(.hardwareError(let code)): "\(controller) is reset: it reported the hardware error \(code)"
        }
    }

    private static func words(_ error: LoopError) -> String {
        switch error.kind {
        case .notFound: "there is no such thing"
        case .connectionRefused: "nobody listens there"
        case .permissionDenied: "this user may not"
        case .hostNotFound: "the host is not known"
        default: error.detail
        }
    }

    /// What to try.
    var advice: String {
        switch self {
        case .lost: "it is opened anew"
        case .reset: "it is used again as soon as it answers"
        case .unopened, .unreached:
            switch openingError?.kind {
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
        let cause = openingError
        if cause?.kind == .cancelled { code = .cancelled }
        if cause?.kind == .permissionDenied { code = .permissionDenied }
        return MeshError(code, "\(message(port)); \(advice)", cause: cause)
    }
}
