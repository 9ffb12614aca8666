// The setup class of the SDK's integration tests, which is in Objective-C++ and makes instances by internal means. This
// one uses the public API. Its members have the names that Swift gives those of the SDK.

import FirebaseCore
import FirebaseFirestore
import Foundation
@_exported import XCTest

/// Gives each test its instances and ends them after it. Callbacks run on the main queue, which XCTest lets run while a
/// test waits.
class FSTIntegrationTestCase: XCTestCase {
    enum BackendEdition { case standard, enterprise }
    enum TargetBackend { case prod, nightly, emulator, qa }

    private var instance: Firestore?
    var db: Firestore { instance! }
    var eventAccumulator: FSTEventAccumulator<any Snapshot>!
    private var firestores: [Firestore] = []

    static func projectID() -> String { "test-db" }
    static func databaseID() -> String { "(default)" }
    static func backendEdition() -> BackendEdition { runsPipelines ? .enterprise : .standard }
    static func targetBackend() -> TargetBackend { runsPipelines ? .nightly : .emulator }
    static func isRunningAgainstEmulator() -> Bool { true }

    /// Hearth has one edition: that in which the SDK runs the tests of a class. Pipelines need Enterprise.
    private static let pipelineTests: Set = [
        "PipelineApiTests", "PipelineIntegrationTests", "PipelineSubqueryTests", "QueryToPipelineTests",
        "SearchIntegrationTests",
    ]
    nonisolated(unsafe) private static var runsPipelines = false

    /// Called first, before the other forms.
    override func setUp() async throws {
        try await super.setUp()
        FSTIntegrationTestCase.runsPipelines = Self.pipelineTests.contains(String(describing: Self.self))
        instance = firestore()
        eventAccumulator = FSTEventAccumulator(forTest: self)
    }

    override func tearDown() {
        for firestore in firestores {
            let expectation = expectation(description: "terminate")
            firestore.terminate(completion: completion(for: expectation))
            awaitExpectation(expectation)
        }
        firestores = []
        super.tearDown()
    }

    /// The next instance: each one of a test has its app, and so its cache.
    func firestore() -> Firestore {
        let name = "db\(firestores.count)"
        if FirebaseApp.app(name: name) == nil {
            let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
            options.projectID = Self.projectID()
            FirebaseApp.configure(name: name, options: options)
        }
        let firestore = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        firestores.append(firestore)
        return firestore
    }

    // MARK: References

    func documentRef() -> DocumentReference { db.collection("test-collection").document() }

    func collectionRef() -> CollectionReference {
        db.collection("test-collection-\(db.collection("ids").document().documentID)")
    }

    func collectionRef(withDocuments documents: [String: [String: Any]]) -> CollectionReference {
        let collection = collectionRef()
        writeAllDocuments(documents, toCollection: firestore().collection(collection.path))
        return collection
    }

    // MARK: Reads

    func readDocument(forRef ref: DocumentReference, source: FirestoreSource = .default) -> DocumentSnapshot {
        read { ref.getDocument(source: source, completion: $0) }
    }

    func readDocumentSet(forRef query: Query, source: FirestoreSource = .default) -> QuerySnapshot {
        read { query.getDocuments(source: source, completion: $0) }
    }

    private func read<Value>(_ start: (@escaping (Value?, (any Error)?) -> Void) -> Void) -> Value {
        let expectation = expectation(description: "read")
        var found: Value?
        start { value, error in
            XCTAssertNil(error)
            found = value
            expectation.fulfill()
        }
        awaitExpectation(expectation)
        return found!
    }

    /// The query has the same results from the cache alone, from the server, and from the cache after that.
    func checkOnlineAndOfflineCollection(_ collection: Query, query: Query, matchesResult expected: [String]) {
        readDocumentSet(forRef: collection, source: .server)
        for source in [FirestoreSource.cache, .server, .cache] {
            XCTAssertEqual(FIRQuerySnapshotGetIDs(readDocumentSet(forRef: query, source: source)), expected)
        }
    }

    // MARK: Writes

    func writeAllDocuments(_ documents: [String: [String: Any]], toCollection collection: CollectionReference) {
        let batch = collection.firestore.batch()
        for (id, data) in documents { batch.setData(data, forDocument: collection.document(id)) }
        // The backend of the SDK's authors has them there as well.
        if collection.collectionID == "SearchIntegrationTests" {
            let searched = collection.firestore.collection("TextSearchIntegrationTests")
            for (id, data) in documents { batch.setData(data, forDocument: searched.document(id)) }
        }
        write { batch.commit(completion: $0) }
    }

    func updateDocumentRef(_ ref: DocumentReference, data: [AnyHashable: Any]) {
        write { ref.updateData(data, completion: $0) }
    }

    func addDocumentRef(_ collection: CollectionReference, data: [String: Any]) -> DocumentReference {
        let document = collection.document()
        write { document.setData(data, completion: $0) }
        return document
    }

    func runTransaction(
        _ db: Firestore, block: @escaping (Transaction, NSErrorPointer) -> Any?,
        completion: ((Any?, (any Error)?) -> Void)? = nil
    ) {
        let expectation = expectation(description: "runTransaction")
        db.runTransaction(with: nil, block: block) { result, error in
            completion?(result, error)
            expectation.fulfill()
        }
        awaitExpectation(expectation)
    }

    private func write(_ start: (@escaping ((any Error)?) -> Void) -> Void) {
        let expectation = expectation(description: "write")
        start(completion(for: expectation))
        awaitExpectation(expectation)
    }

    // MARK: The network

    func disableNetwork() { write { db.disableNetwork(completion: $0) } }
    func enableNetwork() { write { db.enableNetwork(completion: $0) } }
}

extension XCTestCase {
    private static var patienceSeconds: Double { 25 }

    func awaitExpectations() { waitForExpectations(timeout: Self.patienceSeconds) }
    func awaitExpectation(_ expectation: XCTestExpectation) { wait(for: [expectation], timeout: Self.patienceSeconds) }

    func completionForExpectation(withName name: String) -> ((any Error)?) -> Void {
        completion(for: expectation(description: name))
    }

    func completion(for expectation: XCTestExpectation) -> ((any Error)?) -> Void {
        { error in
            XCTAssertNil(error)
            expectation.fulfill()
        }
    }
}

func FIRQuerySnapshotGetIDs(_ snapshot: QuerySnapshot) -> [String] { snapshot.documents.map(\.documentID) }
func FIRQuerySnapshotGetData(_ snapshot: QuerySnapshot) -> [[String: Any]] { snapshot.documents.map { $0.data() } }
func FSTTestDocRef(_ path: String) -> DocumentReference { Firestore.firestore().document(path) }
