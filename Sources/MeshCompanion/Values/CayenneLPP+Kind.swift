// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension CayenneLPP {
    /// What a row tells.
    public struct Kind: RawRepresentable, Sendable, Hashable {
        public static let digitalInput = Kind(rawValue: 0)
        public static let digitalOutput = Kind(rawValue: 1)
        public static let analogInput = Kind(rawValue: 2)
        public static let analogOutput = Kind(rawValue: 3)
        public static let genericSensor = Kind(rawValue: 100)
        public static let illuminance = Kind(rawValue: 101)
        public static let presence = Kind(rawValue: 102)
        public static let temperature = Kind(rawValue: 103)
        public static let humidity = Kind(rawValue: 104)
        public static let accelerometer = Kind(rawValue: 113)
        public static let barometer = Kind(rawValue: 115)
        public static let voltage = Kind(rawValue: 116)
        public static let current = Kind(rawValue: 117)
        public static let frequency = Kind(rawValue: 118)
        public static let percentage = Kind(rawValue: 120)
        public static let altitude = Kind(rawValue: 121)
        public static let load = Kind(rawValue: 122)
        public static let concentration = Kind(rawValue: 125)
        public static let power = Kind(rawValue: 128)
        public static let distance = Kind(rawValue: 130)
        public static let energy = Kind(rawValue: 131)
        public static let direction = Kind(rawValue: 132)
        public static let unixTime = Kind(rawValue: 133)
        public static let gyrometer = Kind(rawValue: 134)
        public static let colour = Kind(rawValue: 135)
        public static let gps = Kind(rawValue: 136)
        public static let `switch` = Kind(rawValue: 142)
        /// See ``CayenneLPP/Polyline``. Firmware v1.17.1 cannot pass over one (`skipData`), so radios send none.
        public static let polyline = Kind(rawValue: 240)

        /// The kinds whose rows are numbers: all but ``polyline``.
        public static let known: [Kind] = [
            .digitalInput, .digitalOutput, .analogInput, .analogOutput, .genericSensor, .illuminance, .presence,
            .temperature, .humidity, .accelerometer, .barometer, .voltage, .current, .frequency, .percentage, .altitude,
            .load, .concentration, .power, .distance, .energy, .direction, .unixTime, .gyrometer, .colour, .gps,
            .switch,
        ]

        public var rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }
    }

    /// One of the numbers of a row.
    public struct Component: Sendable, Hashable {
        /// `value`, or what it is among several.
        public let name: String
        /// How many bytes it has, 1 to 4.
        public let size: Int
        /// By how much the value is multiplied.
        public let scale: Double
        /// Which numbers its bytes hold.
        public let range: ClosedRange<Int64>

        init(_ name: String, _ size: Int, _ scale: Double, isSigned: Bool) {
            self.name = name
            self.size = size
            self.scale = scale
            let count = Int64(1) << (size * 8)
            range = isSigned ? -count / 2...count / 2 - 1 : 0...count - 1
        }
    }
}

extension CayenneLPP.Kind {
    /// The kind with this name; nil if there is none.
    init?(named name: String) {
        guard let kind = (Self.known + [.polyline]).first(where: { $0.name == name }) else { return nil }
        self = kind
    }

    /// The name, as meshcore_py has it (`lpp_json_encoder.py`); `unknown` without a layout.
    public var name: String { layout.name }

    /// The unit of the values; empty where they have none.
    public var unit: String { layout.unit }

    /// The numbers of a row; empty for a kind without a layout, and for ``polyline``.
    public var components: [CayenneLPP.Component] { layout.components }

    /// The numbers of a row of minimum, maximum and average, where the sensor firmware has its own sizes, scales and signs
    /// (examples/simple_sensor/SensorMesh.cpp: `getDataSize`, `getMultiplier`, `isSigned`): humidity in two bytes of
    /// tenths, currents without a sign, loads in one byte. meshcore_py 2.3.17 reads these as in ``components``.
    public var rangeComponents: [CayenneLPP.Component] {
        switch self {
        case .humidity: [CayenneLPP.Component("value", 2, 10, isSigned: false)]
        case .current: [CayenneLPP.Component("value", 2, 1_000, isSigned: false)]
        case .load: [CayenneLPP.Component("value", 1, 1, isSigned: false)]
        default: components
        }
    }

    /// Sizes, scales and signs: firmware src/helpers/sensors/LPPDataHelpers.h; 122 from pycayennelpp 2.4.0
    /// (`lpp_type.py`). Currents are signed, as the firmware's reader has it: a battery that is charged shows a negative
    /// one. Its comment and pycayennelpp have them unsigned.
    private var layout: (name: String, unit: String, components: [CayenneLPP.Component]) {
        func one(
            _ name: String, _ unit: String, _ size: Int, _ scale: Double = 1, signed: Bool = false
        ) -> (String, String, [CayenneLPP.Component]) {
            (name, unit, [CayenneLPP.Component("value", size, scale, isSigned: signed)])
        }
        func axes(
            _ name: String, _ unit: String, _ names: [String], _ size: Int, _ scale: Double, signed: Bool
        ) -> (String, String, [CayenneLPP.Component]) {
            (name, unit, names.map { CayenneLPP.Component($0, size, scale, isSigned: signed) })
        }
        switch self {
        case .digitalInput: return one("digital input", "", 1)
        case .digitalOutput: return one("digital output", "", 1)
        case .analogInput: return one("analog input", "", 2, 100, signed: true)
        case .analogOutput: return one("analog output", "", 2, 100, signed: true)
        case .genericSensor: return one("generic sensor", "", 4)
        case .illuminance: return one("illuminance", "lx", 2)
        case .presence: return one("presence", "", 1)
        case .temperature: return one("temperature", "°C", 2, 10, signed: true)
        case .humidity: return one("humidity", "%", 1, 2)
        case .accelerometer: return axes("accelerometer", "g", ["x", "y", "z"], 2, 1_000, signed: true)
        case .barometer: return one("barometer", "hPa", 2, 10)
        case .voltage: return one("voltage", "V", 2, 100)
        case .current: return one("current", "A", 2, 1_000, signed: true)
        case .frequency: return one("frequency", "Hz", 4)
        case .percentage: return one("percentage", "%", 1)
        case .altitude: return one("altitude", "m", 2, signed: true)
        case .load: return one("load", "kg", 3, 1_000, signed: true)
        case .concentration: return one("concentration", "ppm", 2)
        case .power: return one("power", "W", 2)
        case .distance: return one("distance", "m", 4, 1_000)
        case .energy: return one("energy", "kWh", 4, 1_000)
        case .direction: return one("direction", "°", 2)
        case .unixTime: return one("time", "s", 4)
        case .gyrometer: return axes("gyrometer", "°/s", ["x", "y", "z"], 2, 100, signed: true)
        case .colour: return axes("colour", "", ["red", "green", "blue"], 1, 1, signed: false)
        case .gps:
            return (
                "gps", "°, m",
                [
                    CayenneLPP.Component("latitude", 3, 10_000, isSigned: true),
                    CayenneLPP.Component("longitude", 3, 10_000, isSigned: true),
                    CayenneLPP.Component("altitude", 3, 100, isSigned: true),
                ]
            )
        case .switch: return one("switch", "", 1)
        case .polyline: return ("polyline", "°", [])
        default: return ("unknown", "", [])
        }
    }
}
