// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension Duration {
    /// Whole milliseconds, rounded to zero; a duration that is too long for the number is the largest number.
    public var milliseconds: Int64 {
        let limit = Duration.seconds(Int64.max / 1_000)
        guard self < limit else { return .max }
        guard self > .zero - limit else { return .min }
        let (seconds, attoseconds) = components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
