// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// How a radio modulates, and how long a packet of it is on the air.
struct LoRaModulation: Sendable, Equatable {
    /// 5 to 12.
    var spreadingFactor: Int
    var bandwidthHertz: Int
    /// 5 to 8: that many bits for four.
    var codingRate: Int
    var preambleSymbols: Int

    /// The preamble is that of the firmware if none is given: 16 symbols, 32 up to SF 8 (src/helpers/radiolib/
    /// RadioLibWrappers.h, `preambleLengthForSF`).
    init(spreadingFactor: Int, bandwidthHertz: Int, codingRate: Int, preambleSymbols: Int? = nil) {
        self.spreadingFactor = spreadingFactor
        self.bandwidthHertz = bandwidthHertz
        self.codingRate = codingRate
        self.preambleSymbols = preambleSymbols ?? (spreadingFactor <= 8 ? 32 : 16)
    }

    /// What a SELF_INFO says (companion-protocol §1.6); nil if it is too short, or says what no radio does.
    init?(selfInfo frame: Data) {
        guard frame.first == ReplyCode.selfInfo.rawValue, let bandwidth = frame.field32(at: 52),
            let factor = frame.field8(at: 56), let rate = frame.field8(at: 57), (5...12).contains(factor),
            (5...8).contains(rate), bandwidth > 0
        else { return nil }
        self.init(spreadingFactor: Int(factor), bandwidthHertz: Int(bandwidth), codingRate: Int(rate))
    }

    /// How long a packet of `length` bytes is on the air: explicit header, with CRC, and with low data rate
    /// optimisation from 16 ms a symbol on (SX1261/2 data sheet §6.1.4, as RadioLib's `SX126x::getTimeOnAir`, which the
    /// firmware estimates by).
    func timeOnAir(_ length: Int) -> Duration {
        // In units of a symbol's length in ns and quarters of symbols, as those are whole numbers.
        let symbol = (1_000_000_000 << spreadingFactor) / bandwidthHertz
        let isShort = spreadingFactor <= 6
        let quartersOfSync = isShort ? 25 : 17
        let bitsPerSymbol = symbol >= 16_000_000 ? spreadingFactor - 2 : spreadingFactor
        let bits = 8 * length + 16 - 4 * spreadingFactor + (isShort ? 0 : 8) + 20
        let groups = (max(bits, 0) + 4 * bitsPerSymbol - 1) / (4 * bitsPerSymbol)
        let quarters = (preambleSymbols + 8) * 4 + quartersOfSync + groups * codingRate * 4
        return .nanoseconds(symbol * quarters / 4)
    }
}
