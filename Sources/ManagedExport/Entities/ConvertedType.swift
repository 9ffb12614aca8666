/// Types of Datastore that Firestore lacks. An entity that has them becomes a document with the nearest types.
package enum ConvertedType: Int, CaseIterable, Sendable {
    case category
    case link
    case title
    case content
    case summary
    case author
    case email
    case instantMessaging
    case phoneNumber
    case postalAddress
    case rating
    case byteString
    case blobKey
    case user
    case embeddedKey

    /// The type of a meaning; nil if Firestore has it.
    init?(meaning: Int) {
        switch meaning {
        case 1: self = .category
        case 2: self = .link
        case 3: self = .title
        case 4: self = .content
        case 5: self = .summary
        case 6: self = .author
        case 8: self = .email
        case 10: self = .instantMessaging
        case 11: self = .phoneNumber
        case 12: self = .postalAddress
        case 13: self = .rating
        case Meaning.byteString: self = .byteString
        case Meaning.blobKey: self = .blobKey
        default: return nil
        }
    }

    /// What becomes of it, for example "ratings became integers".
    package var conversion: String {
        switch self {
        case .category: "categories became strings"
        case .link: "links became strings"
        case .title: "titles became strings"
        case .content: "contents became strings"
        case .summary: "summaries became strings"
        case .author: "authors became strings"
        case .email: "email addresses became strings"
        case .instantMessaging: "instant messaging handles became strings"
        case .phoneNumber: "phone numbers became strings"
        case .postalAddress: "postal addresses became strings"
        case .rating: "ratings became integers"
        case .byteString: "byte strings became bytes"
        case .blobKey: "blob keys became strings"
        case .user: "users became strings with their email addresses"
        case .embeddedKey: "embedded entities became maps without their keys"
        }
    }
}

/// How many values of each type were converted, and references that keep another database.
package struct ConversionCounts: Sendable, Equatable {
    private var counts = [Int](repeating: 0, count: ConvertedType.allCases.count)
    /// References to documents of another database than that of the import.
    package internal(set) var foreignReferences = 0

    package init() {}

    package subscript(type: ConvertedType) -> Int { counts[type.rawValue] }

    mutating func add(_ type: ConvertedType) { counts[type.rawValue] += 1 }

    /// Adds the counts of another part.
    package mutating func add(_ other: ConversionCounts) {
        for index in counts.indices { counts[index] += other.counts[index] }
        foreignReferences += other.foreignReferences
    }
}
