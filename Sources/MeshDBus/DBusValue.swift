// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A value as D-Bus carries it (D-Bus Specification, "Type System").
public indirect enum DBusValue: Sendable, Hashable {
    case byte(UInt8)
    case bool(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(String)
    case signature(String)
    /// An open descriptor. One in the results of a call belongs to the caller, who closes it
    /// (``Swift/Array/closeDescriptors()`` for what it does not want), and is -1 where the caller takes none. One in a signal or a method call is open while
    /// its handler runs, or as long as the method call lives: who keeps it makes a `dup` of it. One that is sent stays
    /// the sender's.
    case descriptor(Int32)
    /// An array of bytes (`ay`).
    case bytes([UInt8])
    /// An array of anything but bytes and dictionary entries; `element` is the signature of one.
    case array(element: String, [DBusValue])
    /// A dictionary; `key` and `value` are signatures.
    case dictionary(key: String, value: String, [DBusValue: DBusValue])
    case structure([DBusValue])
    case variant(DBusValue)
}
