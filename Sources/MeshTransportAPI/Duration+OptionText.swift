// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension Duration {
    /// Reads `250ms`, `10s`, `5m`, `1h` or `2d`: a whole number, or one with a decimal point, and a unit. Nil for
    /// anything else, for a negative value and for more than 10 years.
    public init?(optionText text: String) {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit: Double
        switch text.dropFirst(digits.count) {
        case "ms": unit = 0.001
        case "s": unit = 1
        case "m": unit = 60
        case "h": unit = 3_600
        case "d": unit = 86_400
        default: return nil
        }
        guard let first = digits.first, first.isNumber, digits.last?.isNumber == true, let number = Double(digits)
        else { return nil }
        let seconds = number * unit
        guard seconds <= 315_360_000 else { return nil }
        self = .nanoseconds(Int64((seconds * 1_000_000_000).rounded()))
    }

    /// The shortest text that ``init(optionText:)`` reads back as this value, in `ms` resolution.
    public var optionText: String {
        let milliseconds = components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
        for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] as [(String, Int64)]
        where milliseconds != 0 && milliseconds % length == 0 {
            return "\(milliseconds / length)\(unit)"
        }
        return "\(milliseconds)ms"
    }
}
