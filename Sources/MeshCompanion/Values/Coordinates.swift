// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A place on earth as radios write it: millionths of a degree, signed (companion-protocol §1.8; the firmware's documents
/// read it as unsigned, its source does not).
public struct Coordinates: Sendable, Hashable {
    /// Millionths of a degree in one degree.
    static let scale = 1_000_000.0

    /// Millionths of a degree; north is positive.
    public var latitudeMicrodegrees: Int32
    /// Millionths of a degree; east is positive.
    public var longitudeMicrodegrees: Int32

    public init(latitudeMicrodegrees: Int32, longitudeMicrodegrees: Int32) {
        self.latitudeMicrodegrees = latitudeMicrodegrees
        self.longitudeMicrodegrees = longitudeMicrodegrees
    }

    /// The nearest place that can be written; nil beyond ±90° and ±180°.
    public init?(latitude: Double, longitude: Double) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude) else { return nil }
        latitudeMicrodegrees = Int32((latitude * Self.scale).rounded())
        longitudeMicrodegrees = Int32((longitude * Self.scale).rounded())
    }

    /// Degrees; north is positive.
    public var latitude: Double { Double(latitudeMicrodegrees) / Self.scale }
    /// Degrees; east is positive.
    public var longitude: Double { Double(longitudeMicrodegrees) / Self.scale }
    /// Where a radio is that does not know: 0, 0.
    public static let zero = Coordinates(latitudeMicrodegrees: 0, longitudeMicrodegrees: 0)
}
