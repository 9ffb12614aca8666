public import Foundation

/// The name of a document in a database, whether or not the document exists.
///
/// References are equal if they name the same document of the same database object. The module FirebaseFirestore adds
/// methods that read and write. Thread-safe.
public final class DocumentReference: NSObject, NSCopying, Codable, @unchecked Sendable {
    // Unchecked because `NSObject` and `AnyObject` are not Sendable; the stored properties are constants, and the owner
    // is a `Firestore`, which locks.

    /// The resource name, `projects/P/databases/D/documents/COLLECTION/ID/...`.
    package let name: String
    /// The `Firestore` the reference was made by; `nil` for references outside a client (tests, tools).
    package let owner: AnyObject?
    /// Where the path below `documents/` starts in `name`.
    private let pathStart: String.Index

    /// Creates a reference from a resource name.
    ///
    /// - Returns: `nil` if the name is not of the form above with an even number of segments after `documents`, none of
    ///   them empty. Limits of sizes and reserved ids are the server's to check.
    package init?(name: String, owner: AnyObject?) {
        guard let start = DocumentReference.pathStart(in: name) else { return nil }
        self.name = name
        self.owner = owner
        pathStart = start
    }

    private static func pathStart(in name: String) -> String.Index? {
        let utf8 = name.utf8
        var start = utf8.startIndex
        // projects/P/databases/D/documents/ are five segments, of which three are fixed.
        for expected in ["projects", nil, "databases", nil, "documents"] {
            guard let slash = utf8[start...].firstIndex(of: UInt8(ascii: "/")), slash > start else { return nil }
            if let expected, name[start..<slash] != expected { return nil }
            start = utf8.index(after: slash)
        }
        var slashes = 0
        var previous = UInt8(ascii: "/")
        for byte in utf8[start...] {
            if byte == UInt8(ascii: "/") {
                guard previous != byte else { return nil }
                slashes += 1
            }
            previous = byte
        }
        return previous != UInt8(ascii: "/") && slashes % 2 == 1 ? start : nil
    }

    /// The path below the database's root: collection, id, and so on, joined by slashes.
    public var path: String { String(name[pathStart...]) }

    /// The last segment of the path.
    public var documentID: String {
        let utf8 = name.utf8
        let slash = utf8.lastIndex(of: UInt8(ascii: "/"))!  // a name without slashes has no reference
        return String(name[utf8.index(after: slash)...])
    }

    /// Whether the reference was made by an object.
    package func isOwned(by object: AnyObject) -> Bool { owner === object }

    /// `projects/P/databases/D`: the part of the name before `/documents/`.
    package var databaseName: Substring {
        name[..<name.utf8.index(pathStart, offsetBy: -"/documents/".utf8.count)]
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? DocumentReference else { return false }
        // By bytes: Swift's == of strings takes different spellings of a letter for one.
        return owner === other.owner && name.utf8.elementsEqual(other.name.utf8)
    }

    public override var hash: Int { name.hashValue }

    public override var description: String { "<DocumentReference: \(path)>" }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Codable, for coders other than Firestore's

    /// Only Firestore's decoder can make references, and does so before it gets here.
    ///
    /// - Throws: `FirestoreDecodingError.decodingIsNotSupported`, always.
    public init(from decoder: any Decoder) throws {
        throw FirestoreDecodingError.decodingIsNotSupported(
            "DocumentReference values can only be decoded with Firestore.Decoder")
    }

    /// Only Firestore's encoder can write references, and does so before it gets here.
    ///
    /// - Throws: `FirestoreEncodingError.encodingIsNotSupported`, always.
    public func encode(to encoder: any Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "DocumentReference values can only be encoded with Firestore.Encoder")
    }
}
