// Violations that were there when their rule came. A number may only fall; when it is 0 its line goes.

enum Ratchet {
    static let longLines: [String: Int] = [
        "Sources/DocumentCoding": 6,
        "Sources/DocumentJSON": 1,
        "Sources/DocumentStore": 5,
        "Sources/FirebaseFirestore": 1,
        "Sources/FirestoreSchema": 1,
        "Sources/Gateway": 15,
        "Sources/KeyValueStore": 43,
        "Sources/Service": 8,
        "Sources/Transport": 33,
        "Tests/AtomicityTests": 3,
        "Tests/DocumentCodingTests": 3,
        "Tests/DocumentJSONTests": 2,
        "Tests/DocumentStoreTests": 9,
        "Tests/FirestoreSchemaTests": 2,
        "Tests/HearthTests": 15,
        "Tests/KeyValueStoreTests": 3,
        "Tests/LoadTests": 1,
        "Tests/OfficialClientTests": 3,
        "Tests/TestSupport": 1,
        "Tests/TransportTests": 5,
        "Tests/UserCodeSwift6Tests": 1,
        "Tools/demonstration": 1,
        "Tools/hearth": 10,
    ]

    static let discardableResults: [String: Int] = [
        "Tests/DocumentStoreTests": 2,
        "Tests/GatewayTests": 5,
        "Tests/LoadTests": 1,
        "Tests/TestSupport": 1,
        "Tests/TransportTests": 3,
    ]

    static let pagePhrases: [String: Int] = [:]

    static let commentPhrases: [String: Int] = [:]
}
