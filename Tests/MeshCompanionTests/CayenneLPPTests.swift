// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

struct CayenneLPPTests {
    // Golden bytes: companion-protocol §3.4, E4 to E6 (MeshCore One v1.3.0).
    @Test func `E4 to E6: what other implementations measure`() throws {
        #expect(try CayenneLPP.decode(try data("016700ff")).first?.values == [25.5])
        let rows = try CayenneLPP.decode(try data("026882" + "0302014a" + "05732794"))
        #expect(rows.map(\.kind) == [.humidity, .analogInput, .barometer])
        #expect(rows.map(\.values) == [[65], [3.3], [1013.2]])
        #expect(rows.map(\.channel) == [2, 3, 5])
        let gps = try CayenneLPP.decode(try data("048805c395ed51fe0003e8"))
        #expect(gps.first?.values == [37.7749, -122.4194, 10])
    }

    // Computed with pycayennelpp 2.4.0: LppFrame().add_…().
    @Test(arguments: [
        ("0167ff9c", CayenneLPP.Kind.temperature, [-10.0]), ("01020000", .analogInput, [0]),
        ("0102fe0c", .analogInput, [-5]), ("0171fc18000003e8", .accelerometer, [-1, 0, 1]),
        ("018600640000ff9c", .gyrometer, [1, 0, -1]), ("0187ff0080", .colour, [255, 0, 128]),
        ("0179fff6", .altitude, [-10]), ("01820000c350", .distance, [50]), ("018365920080", .energy, [1_704_067.2]),
        ("018565920080", .unixTime, [1_704_067_200]), ("01741068", .voltage, [42]), ("017afffc18", .load, [-1]),
        ("0164ffffffff", .genericSensor, [4_294_967_295]),
    ])
    func `signs and scales`(hex: String, kind: CayenneLPP.Kind, values: [Double]) throws {
        let reading = try #require(CayenneLPP.Reading(channel: 1, kind: kind, values: values))
        #expect(CompanionFrame.hex(try CayenneLPP.encode([reading])) == hex)
        #expect(try CayenneLPP.decode(try data(hex)) == [reading])
        #expect(reading.values == values)
    }

    @Test func `a current may be negative`() throws {
        #expect(try CayenneLPP.decode(try data("0175fe0c")).first?.values == [-0.5])
    }

    @Test(arguments: CayenneLPP.Kind.known)
    func `every kind holds its extremes and nothing beyond`(kind: CayenneLPP.Kind) throws {
        for pick in [\ClosedRange<Int64>.lowerBound, \.upperBound] {
            let reading = CayenneLPP.Reading(
                channel: 255, kind: kind, raw: kind.components.map { $0.range[keyPath: pick] })
            let bytes = try CayenneLPP.encode([reading])
            #expect(try CayenneLPP.decode(bytes) == [reading])
            for length in 1..<bytes.count {
                #expect(throws: DecodeError.self) { try CayenneLPP.decode(bytes.prefix(length)) }
            }
        }
        let beyond = CayenneLPP.Reading(channel: 1, kind: kind, raw: kind.components.map { $0.range.upperBound + 1 })
        #expect(throws: FieldError.self) { try CayenneLPP.encode([beyond]) }
        #expect(kind.name != "unknown")
    }

    @Test func `channel 0 ends the rows`() throws {
        #expect(try CayenneLPP.decode(try data("016700ff00000000")).count == 1)
        #expect(try CayenneLPP.decode(Data()).isEmpty)
        let reading = CayenneLPP.Reading(channel: 0, kind: .temperature, raw: [1])
        #expect(throws: FieldError("channel", .invalid)) { try CayenneLPP.encode([reading]) }
    }

    @Test func `an unknown kind ends the rows with an error that says where`() throws {
        let payload = try data("016700ff" + "02f101")
        let error = DecodeError(.unknownCode(0xF1), offset: 5)
        #expect(throws: error) { try CayenneLPP.decode(payload) }
        #expect(CayenneLPP.decodeStart(payload).readings.map(\.kind) == [.temperature])
        #expect(CayenneLPP.decodeStart(payload).error == error)
        let json = CayenneLPP.json(payload)
        #expect(json.arrayValue?.count == 2)
        #expect(json.arrayValue?[0]["value"] == .double(25.5))
        #expect(json.arrayValue?[0]["unit"] == "°C")
        #expect(json.arrayValue?[1]["error"] == "unknown code 0xf1 at offset 5")
        #expect(json.arrayValue?[1]["bytes"] == "02f101")
    }

    @Test func `a value that cannot be written is refused`() {
        #expect(CayenneLPP.Reading(channel: 1, kind: .gps, values: [1, 2]) == nil)
        #expect(CayenneLPP.Reading(channel: 1, kind: .init(rawValue: 241), values: []) == nil)
        #expect(CayenneLPP.Reading(channel: 1, kind: .polyline, values: [1, 2]) == nil)
        let unknown = CayenneLPP.Reading(channel: 1, kind: .init(rawValue: 241), raw: [])
        #expect(throws: FieldError("type", .invalid)) { try CayenneLPP.encode([unknown]) }
        let line = CayenneLPP.Reading(channel: 1, kind: .polyline, raw: [1, 2])
        #expect(throws: FieldError("type", .invalid)) { try CayenneLPP.encode([line]) }
        #expect(CayenneLPP.Reading(channel: 1, kind: .temperature, values: [.nan]) == nil)
        #expect(CayenneLPP.Reading(channel: 1, kind: .temperature, values: [.infinity]) == nil)
    }
}
