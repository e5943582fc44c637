// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

extension CayenneLPP {
    /// An array of the rows, and in the place of what cannot be read `error` and the `bytes` from there on.
    public static func json(_ payload: Data) -> JSONValue {
        let (readings, end, error) = decodeRows(payload)
        var rows = readings.map(\.json)
        if let error {
            rows.append(["error": .string("\(error)"), "bytes": .string(HexText.text(payload.dropFirst(end)))])
        }
        return .array(rows)
    }

    /// Reads an array of rows as ``json(_:)`` writes them: `channel`, `type` and `value`; `unit` may be there.
    public static func readings(json: JSONValue) throws(FieldError) -> [Reading] {
        guard let rows = json.arrayValue else { throw FieldError("readings", .wrongType(expected: "an array")) }
        var readings: [Reading] = []
        for (index, row) in rows.enumerated() {
            do throws(FieldError) {
                readings.append(try Reading(json: row))
            } catch {
                throw error.inRow(index, of: "readings")
            }
        }
        return readings
    }

    static func row(_ channel: UInt8, _ kind: Kind, _ values: [String: JSONValue]) -> JSONValue {
        var members = values
        members["channel"] = .int(Int64(channel))
        members["type"] = .string(kind.name)
        if !kind.unit.isEmpty { members["unit"] = .string(kind.unit) }
        return .object(members)
    }

    /// One number, or an object of them by the components' names.
    static func value(_ components: [Component], _ raw: [Int64]) -> JSONValue {
        let values = zip(components, raw).map { component, number -> (String, JSONValue) in
            (component.name, component.scale == 1 ? .int(number) : .double(Double(number) / component.scale))
        }
        return values.count == 1 ? values[0].1 : .object(Dictionary(values, uniquingKeysWith: { $1 }))
    }
}

extension CayenneLPP.Reading {
    /// `channel`, `type`, `unit` if there is one, and `value`: a number, or an object of them by name.
    public var json: JSONValue {
        CayenneLPP.row(channel, kind, ["value": polyline?.json ?? CayenneLPP.value(kind.components, raw)])
    }

    fileprivate init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else {
            throw FieldError("readings", .wrongType(expected: "an array of objects"))
        }
        for name in members.keys.sorted() where !["channel", "type", "unit", "value"].contains(name) {
            throw FieldError(name, .unknown, advice: "there are: channel, type, value, unit")
        }
        guard let channel = members["channel"] else {
            throw FieldError("channel", .missing, advice: "write a whole number from 1 to 255")
        }
        guard let channel = channel.intValue.flatMap(UInt8.init(exactly:)) else {
            throw FieldError("channel", .outOfRange(1...255))
        }
        let names = (CayenneLPP.Kind.known + [.polyline]).map(\.name)
        let advice = "write one of \(names.joined(separator: ", "))"
        guard let type = members["type"] else { throw FieldError("type", .missing, advice: advice) }
        guard let type = type.stringValue else {
            throw FieldError("type", .wrongType(expected: "a string"), advice: advice)
        }
        guard let kind = CayenneLPP.Kind(named: type) else {
            throw FieldError("type", type, noneOf: names, else: advice)
        }
        guard let value = members["value"] else { throw FieldError("value", .missing, advice: kind.valueAdvice) }
        if kind == .polyline {
            self.init(channel: channel, polyline: try CayenneLPP.Polyline(json: value))
            return
        }
        if kind.components.count > 1, value.objectValue == nil {
            throw FieldError("value", .wrongType(expected: "an object"), advice: kind.valueAdvice)
        }
        var values: [Double] = []
        for component in kind.components {
            values.append(try number(component.name, kind.components.count == 1 ? value : value[component.name]))
        }
        if let names = value.objectValue?.keys, names.count > kind.components.count {
            throw FieldError("value", .unknown, advice: kind.valueAdvice)
        }
        guard let reading = Self(channel: channel, kind: kind, values: values) else {
            throw FieldError("value", .invalid, advice: kind.valueAdvice)
        }
        self = reading
    }
}

extension CayenneLPP.Kind {
    /// What to write for a value, for people.
    fileprivate var valueAdvice: String {
        if self == .polyline { return "write an object with factor_code and places" }
        let ranges = components.map { component in
            let (least, most) = (component.range.lowerBound, component.range.upperBound)
            let text =
                component.scale == 1
                ? "\(least) to \(most)" : "\(Double(least) / component.scale) to \(Double(most) / component.scale)"
            return components.count == 1 ? "a number from \(text)" : "\(component.name) (\(text))"
        }
        return components.count == 1 ? "write \(ranges[0])" : "write an object with \(ranges.joined(separator: ", "))"
    }
}

extension CayenneLPP.Polyline {
    /// The code of the factor, and the places in degrees.
    fileprivate var json: JSONValue {
        [
            "factor_code": .int(Int64(factorCode)),
            "places": .array(places.map { ["latitude": .double($0.latitude), "longitude": .double($0.longitude)] }),
        ]
    }

    fileprivate init(json: JSONValue) throws(FieldError) {
        guard let code = json["factor_code"]?.intValue.flatMap(UInt8.init(exactly:)) else {
            throw FieldError("factor_code", json["factor_code"] == nil ? .missing : .outOfRange(0...255))
        }
        self.init(factorCode: code, latitude: 0, longitude: 0)
        guard let factor else { throw FieldError("factor_code", .invalid) }
        guard let places = json["places"]?.arrayValue, !places.isEmpty else { throw FieldError("places", .missing) }
        func units(_ place: JSONValue, _ name: String) throws(FieldError) -> Int64 {
            let degrees = try number(name, place[name])
            guard let units = Int32(exactly: (degrees * 10_000 / Double(factor)).rounded()) else {
                throw FieldError(name, .outOfRange(Self.placeRange))
            }
            return Int64(units)
        }
        var last = (try units(places[0], "latitude"), try units(places[0], "longitude"))
        latitude = Int32(last.0)
        longitude = Int32(last.1)
        for place in places.dropFirst() {
            let next = (try units(place, "latitude"), try units(place, "longitude"))
            let (north, east) = (next.0 - last.0, next.1 - last.1)
            guard Self.stepRange.contains(north), Self.stepRange.contains(east) else {
                throw FieldError("places", .outOfRange(Self.stepRange))
            }
            steps.append(Step(latitude: Int8(north), longitude: Int8(east)))
            last = next
        }
    }
}

private func number(_ name: String, _ value: JSONValue?) throws(FieldError) -> Double {
    switch value {
    case .int(let number)?: return Double(number)
    case .double(let number)?: return number
    case nil: throw FieldError(name, .missing)
    default: throw FieldError(name, .wrongType(expected: "a number"))
    }
}
