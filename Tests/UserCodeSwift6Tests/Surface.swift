// Every call of the SDK's surface as user code writes it: labels, defaults, result types, forms with and without
// completion. That this file compiles without a warning in the language modes 5 and 6 is the test (`SurfaceTests`);
// nothing here runs.

import FirebaseCore
import FirebaseFirestore
import Foundation

enum Surface {
    struct Model: Codable {
        @DocumentID var id: String?
        @ServerTimestamp var changed: Timestamp?
        @ExplicitNull var note: String?
        var title = ""
    }

    // MARK: Apps, instances, settings

    static func apps() {
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = "p"
        options.apiKey = "k"
        FirebaseApp.configure(options: options)
        FirebaseApp.configure(name: "n", options: options)
        FirebaseApp.configure()
        FirebaseApp.app()
        guard let app: FirebaseApp = FirebaseApp.app(name: "n") else { return }
        let name: String = app.name
        let copied: FirebaseOptions = app.options
        app.isDataCollectionDefaultEnabled = false
        app.delete { (isDeleted: Bool) in print(isDeleted, name, copied) }
        FirebaseConfiguration.shared.setLoggerLevel(.min)
        Firestore.firestore()
        Firestore.firestore(app: app)
        Firestore.firestore(database: "d")
        Firestore.firestore(app: app, database: "d")
        let owner: FirebaseApp = Firestore.firestore().app
        Firestore.enableLogging(true)
        print(owner)
    }

    static func settings(_ db: Firestore) {
        let settings = FirestoreSettings()
        settings.host = "localhost:8080"
        settings.isSSLEnabled = false
        settings.dispatchQueue = DispatchQueue(label: "q")
        settings.isPersistenceEnabled = true
        settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
        db.settings = settings
        settings.cacheSettings = PersistentCacheSettings()
        settings.cacheSettings = PersistentCacheSettings(sizeBytes: 100 * 1024 * 1024 as NSNumber)
        settings.cacheSettings = MemoryCacheSettings()
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
        settings.cacheSettings = MemoryCacheSettings(
            garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 2_000_000))
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
        let cache: LocalCacheSettings & NSObjectProtocol = settings.cacheSettings
        db.useEmulator(withHost: "localhost", port: 8080)
        print(cache)
    }

    static func lifecycle(_ db: Firestore) {
        db.enableNetwork()
        db.enableNetwork { (error: Error?) in print(error as Any) }
        db.disableNetwork()
        db.disableNetwork(completion: nil)
        db.waitForPendingWrites { (error: Error?) in print(error as Any) }
        db.clearPersistence()
        db.clearPersistence { print($0 as Any) }
        db.terminate()
        db.terminate { print($0 as Any) }
        let registration: ListenerRegistration = db.addSnapshotsInSyncListener {}
        registration.remove()
        db.addSnapshotsInSyncListener { print("in agreement") }
        db.persistentCacheIndexManager?.enableIndexAutoCreation()
        db.persistentCacheIndexManager?.disableIndexAutoCreation()
        db.persistentCacheIndexManager?.deleteAllIndexes()
        db.setIndexConfiguration("{}")
        db.setIndexConfiguration("{}") { (error: Error?) in print(error as Any) }
        db.setIndexConfiguration(InputStream(data: Data()))
        db.setIndexConfiguration(InputStream(data: Data()), completion: { print($0 as Any) })
    }

    static func lifecycleAsync(_ db: Firestore) async throws {
        try await db.enableNetwork()
        try await db.disableNetwork()
        try await db.waitForPendingWrites()
        try await db.setIndexConfiguration("{}")
        try await db.setIndexConfiguration(InputStream(data: Data()))
        try await db.terminate()
        try await db.clearPersistence()
    }

    static func bundles(_ db: Firestore) {
        db.loadBundle(Data())
        db.loadBundle(InputStream(data: Data()))
        db.loadBundle(InputStream(data: Data())) { _, _ in }
        let task: LoadBundleTask = db.loadBundle(Data()) { (progress: LoadBundleTaskProgress?, error: Error?) in
            print(progress as Any, error as Any)
        }
        let handle: LoadBundleObserverHandle = task.addObserver { progress in
            let counts: [Int] = [
                progress.documentsLoaded, progress.totalDocuments, progress.bytesLoaded, progress.totalBytes,
            ]
            switch progress.state {
            case .error: print("error")
            case .inProgress: print(counts)
            case .success: print("success")
            }
        }
        task.addObserver { _ in }
        task.removeObserverWith(handle: handle)
        task.removeAllObservers()
        db.getQuery(named: "q") { (query: Query?) in print(query as Any) }
    }

    static func bundlesAsync(_ db: Firestore) async throws -> (LoadBundleTaskProgress, Query?) {
        try await db.loadBundle(InputStream(data: Data()))
        return (try await db.loadBundle(Data()), await db.getQuery(named: "q"))
    }

    // MARK: References

    static func references(_ db: Firestore) {
        let collection: CollectionReference = db.collection("a")
        let document: DocumentReference = db.document("a/b")
        let group: Query = db.collectionGroup("a")
        let query: Query = collection
        let names: [String] = [
            collection.collectionID, collection.path, document.documentID, document.path, document.parent.path,
        ]
        let parent: DocumentReference? = collection.parent
        let owners: [Firestore] = [document.firestore, collection.firestore, group.firestore]
        document.collection("c").document("d")
        collection.document()
        let set: Set<DocumentReference> = [document]
        let keys: [AnyHashable: Any] = [FieldPath(["a", "b.c"]): 1, FieldPath.documentID(): 2]
        print(query == group, names, parent as Any, owners, set, keys, document == collection.document("b"))
    }

    static func writes(_ db: Firestore) throws {
        let document = db.document("a/b")
        let model = Model()
        document.setData(["a": 1])
        document.setData(["a": 1]) { (error: Error?) in print(error as Any) }
        document.setData(["a": 1], merge: true)
        document.setData(["a": 1], merge: true, completion: nil)
        document.setData(["a": 1], mergeFields: ["a", FieldPath(["b"])])
        document.setData(["a": 1], mergeFields: ["a"]) { _ in }
        document.updateData(["a.b": FieldValue.delete(), FieldPath(["c"]): 1])
        document.updateData(["a": 1]) { _ in }
        document.delete()
        document.delete { _ in }
        document.delete(completion: nil)
        let encoder = Firestore.Encoder()
        try document.setData(from: model)
        try document.setData(from: model) { (error: Error?) in print(error as Any) }
        try document.setData(from: model, encoder: encoder, completion: nil)
        try document.setData(from: model, merge: true)
        try document.setData(from: model, merge: true, encoder: encoder) { _ in }
        try document.setData(from: model, mergeFields: ["title"])
        try document.setData(from: model, mergeFields: [FieldPath(["title"])], encoder: encoder) { _ in }
        let collection = db.collection("a")
        collection.addDocument(data: ["a": 1])
        let added: DocumentReference = collection.addDocument(data: ["a": 1]) { _ in }
        try collection.addDocument(from: model)
        let encoded: DocumentReference = try collection.addDocument(from: model, encoder: encoder) { _ in }
        print(added, encoded)
    }

    static func writesAsync(_ db: Firestore) async throws {
        let document = db.document("a/b")
        try await document.setData(["a": 1])
        try await document.setData(["a": 1], merge: true)
        try await document.setData(["a": 1], mergeFields: ["a"])
        try await document.updateData(["a": 1])
        try await document.delete()
        // These have no asynchronous form.
        try document.setData(from: Model())
        try document.setData(from: Model(), merge: true)
        try document.setData(from: Model(), mergeFields: ["title"])
        try db.collection("a").addDocument(from: Model())
        try await db.collection("a").addDocument(data: ["a": 1])
        let added: DocumentReference = try await db.collection("a").addDocument(data: ["a": 1])
        print(added)
    }

    static func reads(_ db: Firestore) {
        let document = db.document("a/b")
        document.getDocument { (snapshot: DocumentSnapshot?, error: Error?) in print(snapshot as Any, error as Any) }
        document.getDocument(source: .cache) { _, _ in }
        document.getDocument(as: Model.self) { (result: Result<Model, Error>) in print(result) }
        document.getDocument(as: Model?.self, with: .estimate) { print($0) }
        document.getDocument(
            as: Model.self, with: .previous, decoder: Firestore.Decoder(), source: .server
        ) { result in
            if case .failure(let error) = result { print(error) }
        }
        let query = db.collection("a")
        query.getDocuments { (snapshot: QuerySnapshot?, error: Error?) in print(snapshot as Any, error as Any) }
        query.getDocuments(source: .server) { _, _ in }
    }

    static func readsAsync(_ db: Firestore) async throws {
        let document = db.document("a/b")
        try await document.getDocument()
        let snapshot: DocumentSnapshot = try await document.getDocument(source: .default)
        let model: Model = try await document.getDocument(as: Model.self)
        let other = try await document.getDocument(
            as: Model?.self, with: .estimate, decoder: Firestore.Decoder(), source: .cache)
        let results: QuerySnapshot = try await db.collection("a").getDocuments()
        try await db.collection("a").getDocuments(source: .cache)
        print(snapshot, model, other as Any, results)
    }

    // MARK: Listeners

    static func listeners(_ db: Firestore) {
        let document = db.document("a/b")
        let query = db.collection("a")
        let options = SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(ListenSource.cache)
        let registrations: [ListenerRegistration] = [
            document.addSnapshotListener { (snapshot: DocumentSnapshot?, error: Error?) in
                print(snapshot as Any, error as Any)
            },
            document.addSnapshotListener(includeMetadataChanges: true) { _, _ in },
            document.addSnapshotListener(options: options) { _, _ in },
            query.addSnapshotListener { (snapshot: QuerySnapshot?, error: Error?) in
                print(snapshot as Any, error as Any)
            },
            query.addSnapshotListener(includeMetadataChanges: true) { _, _ in },
            query.addSnapshotListener(options: options, listener: { _, _ in }),
        ]
        for registration in registrations { registration.remove() }
        document.addSnapshotListener { _, _ in }
        query.addSnapshotListener { _, _ in }
        print(options.source == .default, options.includeMetadataChanges, registrations[0] === registrations[1])
    }

    static func sequences(_ db: Firestore) async throws {
        for try await snapshot in db.document("a/b").snapshots { return print(snapshot.exists) }
        for try await snapshot in db.collection("a").snapshots(includeMetadataChanges: true) {
            return print(snapshot.count)
        }
        let any: any AsyncSequence<QuerySnapshot, any Error> = db.collection("a").snapshots
        let documents = db.document("a/b").snapshots(includeMetadataChanges: false)
        // A sequence may go to another task.
        let task = Task {
            for try await snapshot in documents { return snapshot.documentID }
            return ""
        }
        print(any, try await task.value)
    }

    static func snapshots(_ snapshot: DocumentSnapshot, _ results: QuerySnapshot) throws {
        let exists: Bool = snapshot.exists
        let reference: DocumentReference = snapshot.reference
        let metadata: SnapshotMetadata = snapshot.metadata
        let fields: [String: Any]? = snapshot.data()
        let estimated: [String: Any]? = snapshot.data(with: .estimate)
        snapshot.data()
        snapshot.get("a.b")
        let values: [Any?] = [
            snapshot.get(FieldPath(["a"])), snapshot.get("a", serverTimestampBehavior: .previous), snapshot["a"],
            snapshot[FieldPath(["a"])],
        ]
        let model: Model = try snapshot.data(as: Model.self)
        let other: Model = try snapshot.data(as: Model.self, with: .none, decoder: Firestore.Decoder())
        print(snapshot.documentID, exists, reference, fields as Any, estimated as Any, values, model, other)
        print(metadata.hasPendingWrites, metadata.isFromCache, metadata == results.metadata)
        for document in results.documents {
            let required: [String: Any] = document.data()
            let also: [String: Any] = document.data(with: .previous)
            print(required, also)
        }
        let plain: [DocumentSnapshot] = results.documents
        let query: Query = results.query
        print(results.count, results.isEmpty, query, plain == [snapshot], results == results)
        for change: DocumentChange in results.documentChanges {
            switch change.type {
            case .added, .modified, .removed: break
            }
            let indexes: [UInt] = [change.oldIndex, change.newIndex, UInt(NSNotFound)]
            print(indexes, change.document.documentID)
        }
        results.documentChanges(includeMetadataChanges: true)
        let sources: [UInt] = [FirestoreSource.cache.rawValue, ListenSource.cache.rawValue]
        let behaviors: [ServerTimestampBehavior] = [.none, .estimate, .previous]
        print(sources, behaviors)
    }

    // MARK: Queries

    static func queries(_ db: Firestore, _ snapshot: DocumentSnapshot) {
        let path = FieldPath(["a"])
        let query: Query = db.collection("c")
            .whereField("a", isEqualTo: 1).whereField(path, isEqualTo: 1)
            .whereField("a", isNotEqualTo: 1).whereField(path, isNotEqualTo: 1)
            .whereField("a", isLessThan: 1).whereField(path, isLessThan: 1)
            .whereField("a", isLessThanOrEqualTo: 1).whereField(path, isLessThanOrEqualTo: 1)
            .whereField("a", isGreaterThan: 1).whereField(path, isGreaterThan: 1)
            .whereField("a", isGreaterThanOrEqualTo: 1).whereField(path, isGreaterThanOrEqualTo: 1)
        query.whereField("a", arrayContains: 1).whereField(path, arrayContains: 1)
        query.whereField("a", arrayContainsAny: [1]).whereField(path, arrayContainsAny: ["x", 2])
        query.whereField("a", in: [1]).whereField(path, in: [1])
        query.whereField("a", notIn: [1]).whereField(path, notIn: [1])
        query.order(by: "a").order(by: path).order(by: "b", descending: true).order(by: path, descending: false)
        query.limit(to: 1).limit(toLast: 1)
        query.start(at: [1]).start(after: [1]).end(before: [1]).end(at: [1])
        query.start(atDocument: snapshot).start(afterDocument: snapshot)
        query.end(beforeDocument: snapshot).end(atDocument: snapshot)
        let filter: Filter = Filter.andFilter([
            Filter.whereField("a", isEqualTo: 1), Filter.whereField(path, isEqualTo: 1),
            Filter.orFilter([.whereField("a", isNotEqualTo: 1), .whereField(path, isNotEqualTo: 1)]),
            .whereField("a", isLessThan: 1), .whereField(path, isLessThan: 1),
            .whereField("a", isLessThanOrEqualTo: 1), .whereField(path, isLessThanOrEqualTo: 1),
            .whereField("a", isGreaterThan: 1), .whereField(path, isGreaterThan: 1),
            .whereField("a", isGreaterOrEqualTo: 1), .whereField(path, isGreaterOrEqualTo: 1),
            .whereField("a", arrayContains: 1), .whereField(path, arrayContains: 1),
            .whereField("a", arrayContainsAny: [1]), .whereField(path, arrayContainsAny: [1]),
            .whereField("a", in: [1]), .whereField(path, in: [1]),
            .whereField("a", notIn: [1]), .whereField(path, notIn: [1]),
        ])
        query.whereFilter(filter)
        Filter.orFilter([filter])
    }

    static func aggregates(_ db: Firestore) {
        let path = FieldPath(["a"])
        let count: AggregateQuery = db.collection("c").count
        let query = db.collection("c").aggregate([
            AggregateField.count(), AggregateField.sum("a"), .sum(path), .average("a"), .average(path),
        ])
        query.getAggregation(source: .server) { (snapshot: AggregateQuerySnapshot?, error: Error?) in
            guard let snapshot else { return print(error as Any) }
            let number: NSNumber = snapshot.count
            let sum: Any = snapshot.get(.sum("a"))
            snapshot.get(AggregateField.count())
            print(number, sum, snapshot.query == count, count.query)
        }
    }

    static func aggregatesAsync(_ db: Firestore) async throws {
        try await db.collection("c").count.getAggregation(source: .server)
        let snapshot = try await db.collection("c").aggregate([.count()]).getAggregation(source: AggregateSource.server)
        print(snapshot.count.intValue, Int(truncating: snapshot.count))
    }

    // MARK: Batches, transactions, values

    static func batches(_ db: Firestore, _ batch: WriteBatch) throws {
        let document = db.document("a/b")
        let model = Model()
        db.batch()
        batch.setData(["a": 1], forDocument: document).setData(["a": 1], forDocument: document, merge: true)
        batch.setData(["a": 1], forDocument: document, mergeFields: ["a", FieldPath(["b"])])
            .updateData(["a": 1, FieldPath(["b"]): 2], forDocument: document).deleteDocument(document)
        try batch.setData(from: model, forDocument: document)
        try batch.setData(from: model, forDocument: document, encoder: Firestore.Encoder())
        try batch.setData(from: model, forDocument: document, merge: true)
        try batch.setData(from: model, forDocument: document, merge: true, encoder: Firestore.Encoder())
        try batch.setData(from: model, forDocument: document, mergeFields: ["a"])
        let same: WriteBatch = try batch.setData(
            from: model, forDocument: document, mergeFields: ["a"], encoder: Firestore.Encoder())
        batch.commit()
        batch.commit { (error: Error?) in print(error as Any, same === batch) }
    }

    static func transactions(_ db: Firestore) {
        let document = db.document("a/b")
        let block: (Transaction, NSErrorPointer) -> Any? = { transaction, errorPointer in
            do {
                let snapshot: DocumentSnapshot = try transaction.getDocument(document)
                transaction.setData(["a": 1], forDocument: document).deleteDocument(document)
                transaction.setData(["a": 1], forDocument: document, merge: true)
                transaction.setData(["a": 1], forDocument: document, mergeFields: ["a"])
                transaction.updateData(["a": 1, FieldPath(["b"]): 2], forDocument: document)
                try transaction.setData(from: Model(), forDocument: document)
                try transaction.setData(from: Model(), forDocument: document, merge: true)
                let same: Transaction = try transaction.setData(
                    from: Model(), forDocument: document, mergeFields: ["a"], encoder: Firestore.Encoder())
                return (snapshot, same)
            } catch {
                errorPointer?.pointee = error as NSError
                return nil
            }
        }
        db.runTransaction(block) { (result: Any?, error: Error?) in print(result as Any, error as Any) }
        db.runTransaction({ _, _ in nil }, completion: { _, _ in })
        let options = TransactionOptions()
        options.maxAttempts = 3
        db.runTransaction(with: options, block: block) { (_: Any?, _: Error?) in }
        db.runTransaction(with: nil, block: { _, _ in 1 }, completion: { _, _ in })
    }

    static func transactionsAsync(_ db: Firestore) async throws {
        let document = db.document("a/b")
        let result = try await db.runTransaction { transaction, errorPointer -> Any? in
            do {
                return try transaction.getDocument(document).get("n") as? Int
            } catch let error as NSError {
                errorPointer?.pointee = error
                return nil
            }
        }
        let next: Int = try await db.runTransaction { transaction in
            let next = (try transaction.getDocument(document).get("n") as? Int ?? 0) + 1
            transaction.setData(["n": next], forDocument: document)
            return next
        }
        try await db.runTransaction(with: TransactionOptions()) { _ = $0.deleteDocument(document) }
        print(next)
        _ = try await db.runTransaction { (transaction, _) -> Any? in
            transaction.deleteDocument(document)
            return nil
        }
        try await db.batch().deleteDocument(document).commit()
        print(result as? Int ?? 0)
    }

    static func values() -> [AnyHashable] {
        let sentinels: [FieldValue] = [
            .delete(), .serverTimestamp(), .arrayUnion([1, "a"]), .arrayRemove([1]), .increment(Int64(1)),
            .increment(1.5),
            .minimum(Int64(1)), .maximum(1.5),
        ]
        let vectors: [VectorValue] = [
            FieldValue.vector([1.5] as [Double]), FieldValue.vector([1.5] as [Float]), VectorValue([1]),
        ]
        let array: [Double] = vectors[0].array
        let point = GeoPoint(latitude: 1, longitude: 2)
        let timestamp = Timestamp(seconds: 1, nanoseconds: 2)
        let times: [Timestamp] = [timestamp, Timestamp(date: Date()), Timestamp()]
        let parts: (Int64, Int32, Date) = (timestamp.seconds, timestamp.nanoseconds, timestamp.dateValue())
        let order: ComparisonResult = timestamp.compare(times[1])
        let copy = timestamp.copy() as? Timestamp
        let dictionary = ["p": point] as NSDictionary == ["p": GeoPoint(latitude: 1, longitude: 2)] as NSDictionary
        print(
            sentinels, array, point.latitude + point.longitude, parts, order == .orderedAscending, copy as Any,
            dictionary)
        return [point, timestamp, vectors[0], FieldPath.documentID(), sentinels[0]]
    }

    // MARK: Coders

    static func coders(_ reference: DocumentReference) throws {
        let encoder = Firestore.Encoder()
        encoder.dateEncodingStrategy = .timestamp
        encoder.dateEncodingStrategy = .deferredToDate
        encoder.dateEncodingStrategy = .secondsSince1970
        encoder.dateEncodingStrategy = .millisecondsSince1970
        encoder.dateEncodingStrategy = .iso8601
        encoder.dateEncodingStrategy = .formatted(DateFormatter())
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date.timeIntervalSince1970)
        }
        encoder.dataEncodingStrategy = .blob
        encoder.dataEncodingStrategy = .base64
        encoder.dataEncodingStrategy = .deferredToData
        encoder.dataEncodingStrategy = .custom { data, encoder in try data.count.encode(to: encoder) }
        encoder.nonConformingFloatEncodingStrategy = .throw
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        encoder.keyEncodingStrategy = .useDefaultKeys
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.keyEncodingStrategy = .custom { path in path[path.count - 1] }
        encoder.userInfo = [CodingUserInfoKey(rawValue: "k")!: 1]
        let fields: [String: Any] = try encoder.encode(Model())
        let decoder = Firestore.Decoder()
        decoder.dateDecodingStrategy = .timestamp
        decoder.dateDecodingStrategy = .deferredToDate
        decoder.dateDecodingStrategy = .secondsSince1970
        decoder.dateDecodingStrategy = .millisecondsSince1970
        decoder.dateDecodingStrategy = .iso8601
        decoder.dateDecodingStrategy = .formatted(DateFormatter())
        decoder.dateDecodingStrategy = .custom { _ in Date() }
        decoder.dataDecodingStrategy = .blob
        decoder.dataDecodingStrategy = .base64
        decoder.dataDecodingStrategy = .deferredToData
        decoder.dataDecodingStrategy = .custom { _ in Data() }
        decoder.nonConformingFloatDecodingStrategy = .throw
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        decoder.keyDecodingStrategy = .useDefaultKeys
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.keyDecodingStrategy = .custom { path in path[path.count - 1] }
        decoder.userInfo = [:]
        let model: Model = try decoder.decode(Model.self, from: fields)
        let other = try decoder.decode(Model.self, from: fields, in: reference)
        print(model.title, other.id ?? "")
    }

    struct Name: DocumentIDWrappable, Codable, Hashable {
        var text: String
        static func wrap(_ documentReference: DocumentReference) throws -> Name { Name(text: documentReference.path) }
    }

    struct Moment: ServerTimestampWrappable, Codable, Hashable {
        var seconds: Int64
        static func wrap(_ timestamp: Timestamp) throws -> Moment { Moment(seconds: timestamp.seconds) }
        static func unwrap(_ value: Moment) throws -> Timestamp { Timestamp(seconds: value.seconds, nanoseconds: 0) }
    }

    struct Wrapped: Codable, Hashable {
        @DocumentID var name: Name?
        @DocumentID var reference: DocumentReference?
        @ServerTimestamp var moment: Moment?
        @ServerTimestamp var date: Date?
        @ExplicitNull var number: Int?
        var point: GeoPoint?
        var vector: VectorValue?
        var link: DocumentReference?
        var time: Timestamp?
    }

    // MARK: Errors

    static func errors(_ error: Error) -> String {
        if let code = FirestoreErrorCode.Code(rawValue: (error as NSError).code), code == .notFound { return "missing" }
        if (error as NSError).domain == FirestoreErrorDomain,
            (error as NSError).code == FirestoreErrorCode.unavailable.rawValue
        {
            return "offline"
        }
        switch error {
        case FirestoreErrorCode.permissionDenied: return "denied"
        case FirestoreEncodingError.encodingIsNotSupported(let text): return text
        case FirestoreDecodingError.decodingIsNotSupported(let text): return text
        case FirestoreDecodingError.fieldNameConflict(let text): return text
        default: break
        }
        do {
            throw error
        } catch FirestoreErrorCode.aborted {
            return "aborted"
        } catch {
            return error.localizedDescription
        }
    }

    static let codes: [FirestoreErrorCode.Code] = [
        .OK, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists, .permissionDenied,
        .resourceExhausted, .failedPrecondition, .aborted, .outOfRange, .unimplemented, .internal, .unavailable,
        .dataLoss, .unauthenticated,
    ]

    // MARK: Sendable

    static func values(_ db: Firestore, _ snapshot: QuerySnapshot, _ metadata: SnapshotMetadata) {
        let reference = db.document("a/b")
        let query = db.collection("a")
        let aggregate = query.count
        let others = (
            FieldPath(["a"]), FieldValue.delete(), Filter.andFilter([]), GeoPoint(latitude: 0, longitude: 0),
            Timestamp(), VectorValue([1]), AggregateField.count(), SnapshotListenOptions()
        )
        Task { print(reference, query, aggregate, snapshot, snapshot.documentChanges, metadata, others) }
    }
}
