// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension BLELinkStateMachine {
    /// What the driver has to do, in this order.
    enum Action {
        case enterPhase(LinkPhase)
        /// From now on ``bluetoothStateChanged(_:now:)`` is told, at once and at each change.
        case observeBluetooth
        case stopObservingBluetooth
        case tellBluetooth(BluetoothState, cameBack: Bool)
        case reportAdapter(available: Bool)
        /// Its end is told with the generation. `link`: the one it concerns.
        case start(BLEOperation, generation: UInt64, link: UInt64?)
        /// Its end is told nevertheless. May come twice.
        case cancelOperation(generation: UInt64)
        /// Nobody waits for the end of this one.
        case closeStrayLink(generation: UInt64)
        /// Puts the stream of frames in place and says that frames can be sent.
        case bringUp(BLELinkDescription)
        /// Says that the link ended, then ends the stream; nil: as requested.
        case endSession(BLELinkFailure?)
        case succeed(Waiter)
        case fail(Waiter, BLELinkFailure)
        /// There is a link, or somebody else waits for one.
        case refuseConnect(Waiter)
        case tellReconnected
        case tellAutoReconnecting(BLELinkFailure?)
        case tellDisconnected(BLELinkFailure?)
        case startWrite(Write, generation: UInt64)
        case succeedWrite(Write)
        case failWrite(Write, BLEWriteFailure)
        case warnPairedWithoutPasskey
        case tellBondIsReplaced
        case changeTarget(BLETarget)
    }

    /// See the diagram of the machine. Each transition is a function that gives the next state: a branch without one does not
    /// compile.
    enum State {
        case idle
        case attempting(Attempt)
        case connected(Session)
        case pausing(Pause)
        case disconnecting(Ending)
    }

    /// Who waits for a link.
    struct Caller {
        var id: UInt64
        var waiter: Waiter
    }

    /// Who waits for the end.
    struct Stop {
        var waiter: Waiter
        var newTarget: BLETarget?
    }

    struct RunningOperation {
        var kind: BLEOperation
        var generation: UInt64
    }

    struct Link {
        var generation: UInt64
        var isBonded: Bool
        var receive: GATTCharacteristic?
        var transmit: GATTCharacteristic?
    }

    struct Attempt {
        var caller: Caller?
        /// Made by the machine itself, to be repeated until somebody ends it.
        var isAutomatic: Bool
        /// Nil while it waits for Bluetooth.
        var operation: RunningOperation?
        var link: Link?
        /// What follows when the device is paired with.
        var afterPairing: BLEOperation?
        /// When the phase began, and when it is over.
        var since = Duration.zero
        var deadline = Duration.zero
        /// When all of it is over, whichever phases the time went to; set when it begins.
        var end: Duration?
        /// How often it began anew because of a bond.
        var rounds = 0

        init(caller: Caller?, isAutomatic: Bool) {
            self.caller = caller
            self.isAutomatic = isAutomatic
        }
    }

    struct Session {
        var link: Link
        var maximumWriteLength: Int
        var writes = BLEWriteQueue<Write>()
    }

    struct Pause {
        var until: Duration
    }

    /// What follows an end.
    enum Next {
        case rest
        /// The same attempt once more, with another bond.
        case again
        /// After a pause.
        case reconnect
    }

    enum Announcement {
        case disconnected(BLELinkFailure?)
        case autoReconnecting(BLELinkFailure)
    }

    struct Ending {
        var stops: [Stop] = []
        var announcement: Announcement?
        /// Of the attempt that ends, if it is one; its caller is failed when it is over.
        var attempt: Attempt?
        var failure: BLELinkFailure?
        var next = Next.rest
        /// What has to end first.
        var awaited: RunningOperation?
        /// The link that has to be closed after it.
        var link: UInt64?
        /// The link is gone, and the operation on it may tell why.
        var awaitsReason = false
        var deadline = Duration.zero
        /// Wants a link when this is over.
        var queued: Caller?

        var caller: Caller? {
            get { attempt?.caller }
            set { attempt?.caller = newValue }
        }

        /// Nothing follows, whatever was meant to.
        mutating func rest(_ failure: BLELinkFailure) {
            if next == .again { self.failure = failure }
            switch announcement {
            case .autoReconnecting(let failure): announcement = .disconnected(failure)
            case .disconnected: break
            case nil: if attempt?.isAutomatic == true { announcement = .disconnected(nil) }
            }
            next = .rest
            awaitsReason = false
        }
    }
}

/// A link that frames can be sent over.
struct BLELinkDescription: Sendable, Hashable {
    var generation: UInt64
    /// Where frames are written.
    var receive: GATTCharacteristic
    var maximumWriteLength: Int
}
