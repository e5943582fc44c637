// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshDBus
internal import MeshLoop

/// The connection to the bus, as much of it as is used here: tests play bluetoothd behind it.
///
/// Handlers run on the loop, in the order of what arrived.
protocol BlueZBus: Sendable {
    func call(_ call: DBusCall, timeout: Duration) async throws(DBusError) -> [DBusValue]

    /// Until the returned object is dropped.
    func subscribe(
        _ match: DBusMatch, _ handler: @escaping @Sendable (DBusSignal) -> Void
    ) async throws(DBusError) -> AnyObject

    /// Until the returned object is dropped.
    func serve(
        path: String, interface: String, _ handler: @escaping @Sendable (DBusMethodCall) -> Void
    ) async throws(DBusError) -> AnyObject

    /// `handler` is told once, that the bus has ended the connection.
    func setEndHandler(_ handler: @escaping @Sendable () -> Void) async

    func close() async
}
