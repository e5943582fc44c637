// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which serial port is to be opened, and how.
public struct SerialLine: Sendable, Hashable {
    /// The device, or a link to it such as those in `/dev/serial/by-id`.
    public var path: String
    /// Any speed that the port can do, 8N1.
    public var baud: UInt32
    /// RTS and CTS hold back the sender (CRTSCTS). RTS is the driver's then.
    public var hardwareFlowControl: Bool
    /// Nil leaves the lines as Linux sets them at every open: both on.
    public var control: SerialControl?

    public init(path: String, baud: UInt32 = 115_200, hardwareFlowControl: Bool = false, control: SerialControl? = nil)
    {
        self.path = path
        self.baud = baud
        self.hardwareFlowControl = hardwareFlowControl
        self.control = control
    }
}

/// The two lines that a host sets. On means active, which is a low level at the pins of a UART.
public struct SerialControl: Sendable, Hashable {
    public var dtr: Bool
    public var rts: Bool

    public init(dtr: Bool, rts: Bool) {
        self.dtr = dtr
        self.rts = rts
    }
}
