// A place on the globe as Firestore stores it.

public import Foundation

/// A pair of latitude and longitude in degrees (WGS 84).
///
/// A latitude outside -90...90, a longitude outside -180...180 or a value that is not finite is a programming error.
public final class GeoPoint: NSObject, NSCopying, Codable, @unchecked Sendable {
    // Unchecked because `NSObject` is not Sendable; the stored properties are constants.

    /// Degrees north of the equator, -90...90.
    public let latitude: Double
    /// Degrees east of the prime meridian, -180...180.
    public let longitude: Double

    /// Creates a point; coordinates out of range are a programming error.
    public init(latitude: Double, longitude: Double) {
        guard (-90.0...90.0).contains(latitude) else {
            programmingError("GeoPoint requires a latitude value in the range of [-90, 90], but was \(latitude)")
        }
        guard (-180.0...180.0).contains(longitude) else {
            programmingError("GeoPoint requires a longitude value in the range of [-180, 180], but was \(longitude)")
        }
        self.latitude = latitude
        self.longitude = longitude
    }

    /// A point read from somewhere that is not trusted, or `nil` if it is out of range.
    convenience init?(checkedLatitude latitude: Double, longitude: Double) {
        guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude) else { return nil }
        self.init(latitude: latitude, longitude: longitude)
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? GeoPoint else { return false }
        return latitude == other.latitude && longitude == other.longitude
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(latitude)
        hasher.combine(longitude)
        return hasher.finalize()
    }

    public override var description: String { "<GeoPoint: (\(latitude), \(longitude))>" }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Codable, for coders other than Firestore's

    private enum CodingKeys: String, CodingKey {
        case latitude, longitude
    }

    /// Reads the map `{latitude, longitude}`; a value out of range is `DecodingError.dataCorrupted`.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let latitude = try container.decode(Double.self, forKey: .latitude)
        let longitude = try container.decode(Double.self, forKey: .longitude)
        guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "GeoPoint out of range."))
        }
        self.init(latitude: latitude, longitude: longitude)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(latitude, forKey: .latitude)
        try container.encode(longitude, forKey: .longitude)
    }
}
