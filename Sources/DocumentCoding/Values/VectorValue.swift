// An embedding as Firestore stores it.

public import Foundation

/// A vector of doubles, stored as the sentinel map `{"__type__": "__vector__", "value": [...]}`.
public final class VectorValue: NSObject, NSCopying, Codable, @unchecked Sendable {
    // Unchecked because `NSObject` is not Sendable; the stored property is a constant.

    /// The elements; the server accepts 1 to 2,048 of them.
    public let array: [Double]

    /// Creates a vector of the given elements.
    public init(_ array: [Double]) {
        self.array = array
    }

    /// Elements by bit pattern would tell 0 from -0; IEEE equality is what the SDK has.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? VectorValue else { return false }
        return array == other.array
    }

    public override var hash: Int { array.hashValue }

    public override var description: String { "<VectorValue: \(array)>" }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Codable, for coders other than Firestore's

    private enum CodingKeys: String, CodingKey {
        case array
    }

    /// Reads the map `{array}`.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(try container.decode([Double].self, forKey: .array))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(array, forKey: .array)
    }
}
