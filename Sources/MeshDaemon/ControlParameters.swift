// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The `params` of a request. A parameter that is missing or null is nil; one of another type is an error that names it.
struct ControlParameters {
    private let members: [String: JSONValue]

    init(_ params: JSONValue) throws(MeshError) {
        switch params {
        case .null: members = [:]
        case .object(let members): self.members = members
        default: throw MeshError(.invalidArgument, "\"params\" takes an object")
        }
    }

    func text(_ name: String) throws(MeshError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.stringValue else { throw wrong(name, "a text") }
        return text
    }

    func texts(_ name: String) throws(MeshError) -> [String]? {
        guard let value = value(name) else { return nil }
        guard let elements = value.arrayValue else { throw wrong(name, "a list of texts") }
        var texts: [String] = []
        for element in elements {
            guard let text = element.stringValue else { throw wrong(name, "a list of texts") }
            texts.append(text)
        }
        return texts
    }

    func number(_ name: String, _ range: ClosedRange<Int64>) throws(MeshError) -> Int64? {
        guard let value = value(name) else { return nil }
        guard let number = value.intValue, range.contains(number) else {
            throw wrong(name, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func value(_ name: String) -> JSONValue? {
        guard let value = members[name], value != .null else { return Optional.none }
        return value
    }

    private func wrong(_ name: String, _ what: String) -> MeshError {
        MeshError(.invalidArgument, "the parameter \"\(name)\" takes \(what)")
    }
}
