// Violations that were there when their rule came. A number may only fall; when it is 0 its line goes.

enum Ratchet {
    static let longLines: [String: Int] = [
        "Sources/DocumentCoding": 5,
        "Sources/FirebaseFirestore": 1,
        "Sources/FirestoreSchema": 1,
        "Sources/Gateway": 2,
        "Sources/KeyValueStore": 10,
        "Sources/Transport": 1,
        "Tests/AtomicityTests": 1,
        "Tests/DocumentCodingTests": 2,
        "Tests/DocumentJSONTests": 2,
        "Tests/DocumentStoreTests": 5,
        "Tests/FirestoreSchemaTests": 1,
        "Tests/HearthTests": 15,
        "Tests/KeyValueStoreTests": 2,
        "Tests/OfficialClientTests": 2,
        "Tests/TransportTests": 1,
        "Tools/demonstration": 1,
        "Tools/hearth": 5,
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
