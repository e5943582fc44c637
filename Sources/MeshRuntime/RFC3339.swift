// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Text forms of the wall clock, without a calendar library: the proleptic Gregorian calendar in UTC.
public enum RFC3339 {
    /// `2026-03-01T12:00:00.250Z`, milliseconds rounded down. Times before 1970 give 1970.
    public static func text(sinceEpoch time: Duration) -> String {
        let time = max(.zero, time)
        let (seconds, attoseconds) = time.components
        let milliseconds = Int(attoseconds / 1_000_000_000_000_000)
        let (year, month, day) = civil(day: Int(seconds / 86_400))
        let second = Int(seconds % 86_400)
        var text = ""
        text.reserveCapacity(24)
        append(year, 4, "-", &text)
        append(month, 2, "-", &text)
        append(day, 2, "T", &text)
        append(second / 3_600, 2, ":", &text)
        append(second / 60 % 60, 2, ":", &text)
        append(second % 60, 2, ".", &text)
        append(milliseconds, 3, "Z", &text)
        return text
    }

    /// Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`, for days since 1970-01-01.
    private static func civil(day: Int) -> (year: Int, month: Int, day: Int) {
        let z = day + 719_468
        let era = z / 146_097
        let dayOfEra = z % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    private static func append(_ number: Int, _ width: Int, _ end: Character, _ text: inout String) {
        let digits = String(number)
        for _ in 0..<max(0, width - digits.utf8.count) { text.append("0") }
        text += digits
        text.append(end)
    }
}
