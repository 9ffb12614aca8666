// Violations that were there when their rule came. A number may only fall; when it is 0 its line goes.

enum Ratchet {
    static let longLines: [String: Int] = [
        "Sources/Basics": 12,
        "Sources/DocumentCoding": 64,
        "Sources/DocumentJSON": 17,
        "Sources/DocumentModel": 9,
        "Sources/DocumentStore": 214,
        "Sources/FirebaseCore": 1,
        "Sources/FirebaseFirestore": 9,
        "Sources/FirestoreMessages": 7,
        "Sources/FirestoreSchema": 6,
        "Sources/Gateway": 79,
        "Sources/KeyValueStore": 167,
        "Sources/Transport": 128,
        "Tests/AtomicityTests": 11,
        "Tests/BasicsTests": 3,
        "Tests/DocumentCodingTests": 34,
        "Tests/DocumentJSONTests": 17,
        "Tests/DocumentModelTests": 14,
        "Tests/DocumentStoreTests": 105,
        "Tests/FirebaseFirestoreTests": 8,
        "Tests/FirestoreMessagesTests": 3,
        "Tests/FirestoreSchemaTests": 36,
        "Tests/GatewayTests": 32,
        "Tests/HearthTests": 77,
        "Tests/KeyValueStoreTests": 28,
        "Tests/LoadTests": 19,
        "Tests/OfficialClientTests": 5,
        "Tests/TestSupport": 17,
        "Tests/TransportTests": 126,
        "Tests/UserCodeSwift5Tests": 1,
        "Tests/UserCodeSwift6Tests": 1,
        "Tools/demonstration": 6,
        "Tools/hearth": 59,
    ]

    static let suitesWithoutLimit: [String: Int] = [
        "Tests/AtomicityTests": 3,
        "Tests/DocumentCodingTests": 12,
        "Tests/DocumentModelTests": 14,
        "Tests/DocumentStoreTests": 30,
        "Tests/FirebaseFirestoreTests": 22,
        "Tests/FirestoreMessagesTests": 6,
        "Tests/FirestoreSchemaTests": 3,
        "Tests/GatewayTests": 15,
        "Tests/HearthTests": 12,
        "Tests/KeyValueStoreTests": 13,
        "Tests/LoadTests": 2,
        "Tests/OfficialClientTests": 1,
        "Tests/TransportTests": 24,
        "Tests/UserCodeSwift5Tests": 1,
        "Tests/UserCodeSwift6Tests": 1,
    ]

    static let discardableResults: [String: Int] = [
        "Tests/DocumentStoreTests": 2,
        "Tests/GatewayTests": 5,
        "Tests/LoadTests": 1,
        "Tests/TestSupport": 1,
        "Tests/TransportTests": 3,
    ]

    static let pagePhrases: [String: Int] = [
        "docs/queries.md": 3,
    ]

    static let commentPhrases: [String: Int] = [
        "Sources/DocumentJSON": 1,
        "Sources/DocumentModel": 2,
        "Sources/DocumentStore": 160,
        "Sources/Gateway": 43,
        "Sources/KeyValueStore": 32,
        "Sources/Transport": 75,
    ]
}
