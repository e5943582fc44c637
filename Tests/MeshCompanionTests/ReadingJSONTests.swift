// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

struct ReadingJSONTests {
    @Test(arguments: CayenneLPP.Kind.known)
    func `every kind survives its own JSON text`(kind: CayenneLPP.Kind) throws {
        for pick in [\ClosedRange<Int64>.lowerBound, \.upperBound] {
            let reading = CayenneLPP.Reading(
                channel: 255, kind: kind, raw: kind.components.map { $0.range[keyPath: pick] })
            let json = CayenneLPP.json(try CayenneLPP.encode([reading]))
            #expect(try CayenneLPP.readings(json: try JSONValue(parsing: json.serialized())) == [reading])
        }
    }

    // Computed with pycayennelpp 2.4.0: the rows of CayenneLPPTests.
    @Test func `readings written by hand`() throws {
        let json = try JSONValue(
            parsing: Data(
                """
                [{"channel": 1, "type": "temperature", "value": -10},
                 {"channel": 1, "type": "accelerometer", "value": {"x": -1, "y": 0, "z": 1}, "unit": "g"},
                 {"channel": 1, "type": "energy", "value": 1704067.2}]
                """.utf8))
        let bytes = try CayenneLPP.encode(try CayenneLPP.readings(json: json))
        #expect(CompanionFrame.hex(bytes) == "0167ff9c" + "0171fc18000003e8" + "018365920080")
        #expect(try CayenneLPP.readings(json: []) == [])
    }

    @Test func `JSON that is no reading says which field is to blame`() {
        func error(_ json: JSONValue) -> FieldError? {
            do throws(FieldError) {
                _ = try CayenneLPP.encode(try CayenneLPP.readings(json: json))
                return nil
            } catch {
                return error
            }
        }
        #expect(error(1) == FieldError("readings", .wrongType(expected: "an array")))
        #expect(error([1]) == FieldError("readings", .wrongType(expected: "an array of objects")))
        #expect(error([["type": "power", "value": 1]]) == FieldError("channel", .missing))
        #expect(error([["channel": 256, "type": "power", "value": 1]]) == FieldError("channel", .outOfRange(1...255)))
        #expect(error([["channel": 0, "type": "power", "value": 1]]) == FieldError("channel", .invalid))
        #expect(error([["channel": 1, "value": 1]]) == FieldError("type", .missing))
        #expect(error([["channel": 1, "type": "unknown", "value": 1]]) == FieldError("type", .invalid))
        #expect(error([["channel": 1, "type": "power"]]) == FieldError("value", .missing))
        #expect(error([["channel": 1, "type": "power", "values": 1]]) == FieldError("values", .unknown))
        #expect(
            error([["channel": 1, "type": "power", "value": "1"]])
                == FieldError("value", .wrongType(expected: "a number")))
        #expect(
            error([["channel": 1, "type": "power", "value": 65_536]]) == FieldError("value", .outOfRange(0...65_535)))
        #expect(error([["channel": 1, "type": "gps", "value": ["latitude": 1]]]) == FieldError("longitude", .missing))
        #expect(
            error([["channel": 1, "type": "colour", "value": ["red": 1, "green": 1, "blue": 1, "pink": 1]]])
                == FieldError("value", .unknown))
        #expect(error([["error": "2 bytes missing at offset 7"]]) == FieldError("error", .unknown))
    }

    @Test func `JSON that is no line says which field is to blame`() {
        func error(_ line: JSONValue) -> FieldError? {
            do throws(FieldError) {
                let readings = try CayenneLPP.readings(json: [["channel": 1, "type": "polyline", "value": line]])
                _ = try CayenneLPP.encode(readings)
                return nil
            } catch {
                return error
            }
        }
        let here: JSONValue = ["latitude": 1, "longitude": 2]
        #expect(error(["factor_code": 227, "places": [here]]) == nil)
        #expect(error(["places": [here]]) == FieldError("factor_code", .missing))
        #expect(error(["factor_code": 300, "places": [here]]) == FieldError("factor_code", .outOfRange(0...255)))
        #expect(error(["factor_code": 0, "places": [here]]) == FieldError("factor_code", .invalid))
        #expect(error(["factor_code": 227]) == FieldError("places", .missing))
        #expect(error(["factor_code": 227, "places": []]) == FieldError("places", .missing))
        #expect(error(["factor_code": 227, "places": [["latitude": 1]]]) == FieldError("longitude", .missing))
        #expect(
            error(["factor_code": 227, "places": [["latitude": 1_000, "longitude": 2]]])
                == FieldError("place", .outOfRange(-(1 << 23)...(1 << 23) - 1)))
        #expect(
            error(["factor_code": 227, "places": [["latitude": .double(1e9), "longitude": 2]]])
                == FieldError("latitude", .outOfRange(-(1 << 23)...(1 << 23) - 1)))
        #expect(
            error(["factor_code": 227, "places": [here, ["latitude": 1, "longitude": 3]]])
                == FieldError("places", .outOfRange(-8...7)))
    }
}
