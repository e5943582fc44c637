// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// The kinds of transport this host can make, by module name: built-in ones and those of loaded modules.
public struct TransportRegistry: Sendable {
    private var factories: [String: any TransportFactory] = [:]
    private var refusals: [String: MeshError] = [:]

    public init() {}

    /// The factories, sorted by name.
    public var all: [any TransportFactory] { factories.keys.sorted().compactMap { factories[$0] } }

    /// Modules that were asked for and not loaded, with the reason, sorted by name.
    public var refused: [(name: String, reason: MeshError)] {
        refusals.sorted { $0.key < $1.key }.map { (name: $0.key, reason: $0.value) }
    }

    /// Adds a kind of transport under its descriptor's name. Throws ``MeshError/Code-swift.struct/moduleRefused`` when the
    /// name is taken.
    public mutating func register(_ factory: some TransportFactory) throws(MeshError) {
        let descriptor = factory.descriptor
        if let other = factories[descriptor.name] {
            throw MeshError(
                .moduleRefused,
                "two modules are called \"\(descriptor.name)\": one by \(other.descriptor.vendor), one by "
                    + "\(descriptor.vendor); remove one of them")
        }
        factories[descriptor.name] = factory
        refusals[descriptor.name] = nil
    }

    /// Remembers why a module is not there, for those who ask for it later.
    public mutating func refuse(_ name: String, because reason: MeshError) {
        if factories[name] == nil { refusals[name] = reason }
    }

    /// The factory of that name. Throws the reason of its refusal, or an error that names the nearest one there is.
    public func factory(_ name: String) throws(MeshError) -> any TransportFactory {
        if let factory = factories[name] { return factory }
        if let reason = refusals[name] { throw reason }
        let known = factories.keys.sorted()
        let hint =
            if let nearest = NearestName.of(name, among: known) {
                "did you mean \"\(nearest)\"?"
            } else if known.isEmpty {
                "no modules are loaded"
            } else {
                "loaded: \(known.joined(separator: ", "))"
            }
        throw MeshError(.moduleRefused, "no module is called \"\(name)\"; \(hint)")
    }

    /// A transport of that kind, not connected yet.
    public func makeTransport(
        _ module: String, _ settings: TransportSettings
    ) throws(MeshError) -> any MeshTransport {
        do {
            return try factory(module).makeTransport(settings)
        } catch {
            throw error.adding(device: settings.device)
        }
    }
}
