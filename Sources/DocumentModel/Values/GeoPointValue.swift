// A place on Earth as Firestore stores it.

/// Degrees of latitude and longitude, the `google.type.LatLng` of the wire.
@usableFromInline package struct GeoPointValue: Sendable, Equatable {
    /// -90 ... 90 when valid.
    @usableFromInline package var latitude: Double
    /// -180 ... 180 when valid.
    @usableFromInline package var longitude: Double

    @inlinable
    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }

    /// Whether both coordinates are finite and in range.
    @inlinable
    package var isValid: Bool {
        // NaN fails every comparison.
        latitude >= -90 && latitude <= 90 && longitude >= -180 && longitude <= 180
    }
}
