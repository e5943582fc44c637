// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension CayenneLPP {
    /// A line on the map: a place, and steps from there, each a byte of two numbers of four bits (ElectronicCats
    /// CayenneLPP 2b36f51, `CayenneLPPPolyline.cpp`). The one kind of row that says its own length. All numbers count in units
    /// of 0.0001° times the factor.
    public struct Polyline: Sendable, Hashable {
        /// From one place of the line to the next, both numbers -8 to 7.
        public struct Step: Sendable, Hashable {
            public var latitude: Int8
            public var longitude: Int8

            public init(latitude: Int8, longitude: Int8) {
                self.latitude = latitude
                self.longitude = longitude
            }
        }

        /// What stands for the factor: itself up to 199, or a code of 227 to 239.
        public var factorCode: UInt8
        /// Of the first place; a number of 24 bits.
        public var latitude: Int32
        /// Of the first place; a number of 24 bits.
        public var longitude: Int32
        /// At most 247.
        public var steps: [Step]

        public init(factorCode: UInt8, latitude: Int32, longitude: Int32, steps: [Step] = []) {
            self.factorCode = factorCode
            self.latitude = latitude
            self.longitude = longitude
            self.steps = steps
        }

        /// How many times 0.0001° a unit is; nil for a code without a meaning.
        public var factor: Int64? {
            let codes: [Int64] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
            return switch factorCode {
            case 1...199: Int64(factorCode)
            case 227...239: codes[Int(factorCode) - 227]
            default: nil
            }
        }

        /// The places in degrees; none if the factor has no meaning.
        public var places: [(latitude: Double, longitude: Double)] {
            guard let factor else { return [] }
            var (latitude, longitude) = (Int64(self.latitude), Int64(self.longitude))
            var places = [(Double(latitude * factor) / 10_000, Double(longitude * factor) / 10_000)]
            for step in steps {
                latitude += Int64(step.latitude)
                longitude += Int64(step.longitude)
                places.append((Double(latitude * factor) / 10_000, Double(longitude * factor) / 10_000))
            }
            return places
        }

        /// Which numbers the first place may have.
        static let placeRange: ClosedRange<Int64> = -(1 << 23)...(1 << 23) - 1
        /// Which numbers a step may have.
        static let stepRange: ClosedRange<Int64> = -8...7
        /// Length, factor and the first place.
        static let headLength = 8

        /// Reads what follows the type.
        init(_ reader: inout ByteReader) throws(DecodeError) {
            let start = reader.offset
            let length = Int(try reader.read(UInt8.self))
            if length < Self.headLength { throw DecodeError(.invalidField("length"), offset: start) }
            factorCode = try reader.read(UInt8.self)
            latitude = 0
            longitude = 0
            steps = []
            if factor == nil { throw DecodeError(.invalidField("factor"), offset: start + 1) }
            let component = Component("value", 3, 1, isSigned: true)
            let numbers = try readNumbers([component, component], &reader)
            latitude = Int32(numbers[0])
            longitude = Int32(numbers[1])
            steps = try reader.readBuffer(length - Self.headLength).map { byte in
                // Four bits with a sign: the shift to the right keeps it.
                Step(
                    latitude: Int8(bitPattern: byte << 4) >> 4, longitude: Int8(bitPattern: byte) >> 4)
            }
        }

        /// Writes what follows the type.
        func write(_ writer: inout ByteWriter) throws(FieldError) {
            if factor == nil { throw FieldError("factor", .invalid) }
            guard let length = UInt8(exactly: Self.headLength + steps.count) else {
                throw FieldError("places", .tooLong(limit: 255 - Self.headLength))
            }
            writer.write(length)
            writer.write(factorCode)
            for number in [latitude, longitude] {
                if !Self.placeRange.contains(Int64(number)) { throw FieldError("place", .outOfRange(Self.placeRange)) }
                for shift in [16, 8, 0] { writer.write(UInt8(truncatingIfNeeded: number >> shift)) }
            }
            for step in steps {
                for number in [step.latitude, step.longitude] where !Self.stepRange.contains(Int64(number)) {
                    throw FieldError("step", .outOfRange(Self.stepRange))
                }
                writer.write(
                    UInt8(bitPattern: step.longitude) << 4 | UInt8(bitPattern: step.latitude) & 0xF)
            }
        }
    }
}
