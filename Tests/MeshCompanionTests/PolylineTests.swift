// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

/// The cases are those of ElectronicCats' CayenneLPP 2b36f51 (`test/catch2/LppPolylineTest.cpp`); their bytes follow from
/// its `writeHeader` and `writeDelta`.
struct PolylineTests {
    typealias Polyline = CayenneLPP.Polyline

    static let vectors: [(hex: String, line: Polyline, places: [[Double]])] = [
        // "Coordinates within precision"
        (
            "02f0" + "09e9" + "0004b0" + "fffaec" + "f1",
            Polyline(factorCode: 233, latitude: 1_200, longitude: -1_300, steps: [.init(latitude: 1, longitude: -1)]),
            [[12, -13], [12.01, -13.01]]
        ),
        // "Coordinates out of precision"
        (
            "02f0" + "09ea" + "fffda8" + "fffd76" + "ff",
            Polyline(factorCode: 234, latitude: -600, longitude: -650, steps: [.init(latitude: -1, longitude: -1)]),
            [[-12, -13], [-12.02, -13.02]]
        ),
        // "Coordinates added"
        (
            "02f0" + "0ae9" + "000578" + "001e78" + "4444",
            Polyline(
                factorCode: 233, latitude: 1_400, longitude: 7_800,
                steps: [.init(latitude: 4, longitude: 4), .init(latitude: 4, longitude: 4)]),
            [[14, 78], [14.04, 78.04], [14.08, 78.08]]
        ),
        // "Coordinates removed"
        (
            "02f0" + "08eb" + "000618" + "ffff10",
            Polyline(factorCode: 235, latitude: 1_560, longitude: -240), [[78, -12]]
        ),
    ]

    @Test(arguments: vectors)
    func `a line on the map`(hex: String, line: Polyline, places: [[Double]]) throws {
        let reading = CayenneLPP.Reading(channel: 2, polyline: line)
        #expect(CompanionFrame.hex(try CayenneLPP.encode([reading])) == hex)
        let bytes = try data(hex)
        #expect(try CayenneLPP.decode(bytes) == [reading])
        #expect(reading.values == places.flatMap { $0 })
        for length in 1..<bytes.count {
            #expect(throws: DecodeError.self) { try CayenneLPP.decode(bytes.prefix(length)) }
        }
        #expect(try CayenneLPP.readings(json: CayenneLPP.json(bytes)) == [reading])
    }

    @Test func `rows follow a line, as its length says`() throws {
        // "Decode polyline from message", with a row more.
        let bytes = try data("0187020304" + "02f009e301fbd101d4c111" + "016700ff")
        let rows = try CayenneLPP.decode(bytes)
        #expect(rows.map(\.kind) == [.colour, .polyline, .temperature])
        #expect(rows[1].values == [13.0001, 12.0001, 13.0002, 12.0002])
        #expect(try CayenneLPP.encode(rows) == bytes)
        #expect(CayenneLPP.json(bytes).arrayValue?[1]["type"] == "polyline")
        #expect(CayenneLPP.json(bytes).arrayValue?[1]["unit"] == "°")
        #expect(
            CayenneLPP.json(bytes).arrayValue?[1]["value"] == [
                "factor_code": 227,
                "places": [
                    ["latitude": .double(13.0001), "longitude": .double(12.0001)],
                    ["latitude": .double(13.0002), "longitude": .double(12.0002)],
                ],
            ])
    }

    @Test func `factors`() {
        let factors = [1: 1, 199: 199, 227: 1, 228: 2, 229: 5, 230: 10, 239: 10_000]
        for code in 0...255 {
            let line = Polyline(factorCode: UInt8(code), latitude: 1, longitude: 1)
            if let factor = factors[code] { #expect(line.factor == Int64(factor)) }
            #expect((line.factor == nil) == (code == 0 || (200...226).contains(code) || code > 239))
            #expect(line.places.isEmpty == (line.factor == nil))
        }
    }

    @Test func `what is no line is an error that says where`() throws {
        #expect(throws: DecodeError(.invalidField("length"), offset: 2)) {
            try CayenneLPP.decode(try data("01f007e30000000000"))
        }
        #expect(throws: DecodeError(.invalidField("factor"), offset: 3)) {
            try CayenneLPP.decode(try data("01f008f0000000000000"))
        }
        #expect(throws: DecodeError(.truncated(missing: 246), offset: 10)) {
            try CayenneLPP.decode(try data("01f0ffe300000000000011"))
        }
    }

    @Test func `what no row can hold is refused`() {
        func error(_ line: Polyline) -> FieldError? {
            do throws(FieldError) {
                _ = try CayenneLPP.encode([CayenneLPP.Reading(channel: 1, polyline: line)])
                return nil
            } catch {
                return error
            }
        }
        var line = Polyline(factorCode: 227, latitude: 0, longitude: 0)
        line.steps = Array(repeating: .init(latitude: 7, longitude: -8), count: 247)
        #expect(error(line) == nil)
        line.steps.append(.init(latitude: 0, longitude: 0))
        #expect(error(line) == FieldError("places", .tooLong(limit: 247)))
        line.steps = [.init(latitude: 8, longitude: 0)]
        #expect(error(line) == FieldError("step", .outOfRange(-8...7)))
        line.steps = [.init(latitude: 0, longitude: -9)]
        #expect(error(line) == FieldError("step", .outOfRange(-8...7)))
        line.steps = []
        line.latitude = 1 << 23
        #expect(error(line) == FieldError("place", .outOfRange(-(1 << 23)...(1 << 23) - 1)))
        line.latitude = -(1 << 23)
        line.longitude = (1 << 23) - 1
        #expect(error(line) == nil)
        line.factorCode = 0
        #expect(error(line) == FieldError("factor", .invalid))
    }

    @Test func `a line has no minimum`() throws {
        let request = BinaryRequest.minMaxAverage(startSecondsAgo: 1, endSecondsAgo: 0)
        #expect(throws: DecodeError(.unknownCode(240), offset: 5)) {
            try BinaryAnswer(decoding: try data("80009265" + "01f008e3000000000000"), to: request)
        }
    }
}
