// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What `meshhost hci info` asks for.
extension HCITransportFactory: TransportDescribing {
    public func describe(_ adapter: String) async throws -> JSONValue {
        guard let port = HCIPort(adapter) else {
            throw MeshError(
                .invalidArgument, "\"\(adapter)\" is no controller; for example \(HCIPort.examples)")
        }
        return try await controllers.report(on: port).json
    }
}
