/// The published limits of Firestore.
///
/// Limits that an operator may choose belong to the server. Source: "Usage and limits" in the documentation of
/// Firestore.
package enum Limits {
    /// Bytes of one request message.
    package static let requestBytes = 10 * 1024 * 1024
    /// Size of a document by the published formula, name included.
    package static let documentBytes = 1_048_576
    /// Bytes of a collection or document id.
    package static let idBytes = 1500
    /// Bytes of a full document name.
    package static let documentNameBytes = 6 * 1024
    /// Collections on the way to a document, its own included.
    package static let collectionDepth = 100
    package static let fieldNameBytes = 1500
    /// Bytes of a field path in its quoted form.
    package static let fieldPathBytes = 1500
    /// Segments of a field path in a query or a mask.
    package static let fieldPathElements = 20
    /// Levels of maps and arrays in a field's value; each map and each array is one.
    package static let nestingDepth = 20
    /// Bytes of one string or bytes value.
    package static let stringOrBytesValueBytes = 1_048_487
    package static let vectorDimension = 2048
    /// Field transforms of one document in one commit.
    package static let transformsPerDocument = 500
    /// Disjunctions of a query in disjunctive normal form.
    package static let disjunctions = 30
    package static let notInValues = 10
    package static let inequalityFields = 10
    package static let filtersAndOrders = 100
    package static let aggregationsPerQuery = 5
    package static let findNearestResults = 1000

    /// The first second a timestamp may name: 0001-01-01T00:00:00Z.
    package static let earliestSecond: Int64 = -62_135_596_800
    /// The last second a timestamp may name: 9999-12-31T23:59:59Z.
    package static let latestSecond: Int64 = 253_402_300_799
}
