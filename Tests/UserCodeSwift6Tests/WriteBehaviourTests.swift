// What writes do to documents, and that the cache's idea of a write is the server's.

import FirebaseFirestore
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WriteBehaviourTests {
    private static func same(_ fields: [String: Any]?, _ other: [String: Any]) -> Bool {
        fields.map { $0 as NSDictionary == other as NSDictionary } ?? false
    }

    @Test
    func `Keys of a set are literal, those of an update are paths; maps are replaced or merged as the rules say`()
        async throws
    {
        let user = try UserDatabase(.memory)
        let document = user.db.document("c/d")
        func check(_ fields: [String: Any], line: Int = #line) async throws {
            let found = try await document.getDocument(source: .server).data()
            #expect(Self.same(found, fields), "line \(line): \(found ?? [:])")
        }
        try await document.setData(["a.b": 1, "m": ["x": 1, "y": ["z": 2]], "l": [1, 2], "e": ["k": 1]])
        try await document.updateData([FieldPath(["a.b"]): 2, "m.y.z": 3, "l": [3], "back\\slash and space": 1])
        try await check([
            "a.b": 2, "m": ["x": 1, "y": ["z": 3]], "l": [3], "e": ["k": 1], "back\\slash and space": 1,
        ])
        try await document.setData(["m": ["y": ["w": 4]], "l": [5], "e": [String: Any]()], merge: true)
        try await check([
            "a.b": 2, "m": ["x": 1, "y": ["z": 3, "w": 4]], "l": [5], "e": [String: Any](), "back\\slash and space": 1,
        ])
        try await document.updateData([
            "m": ["only": 1], "e": FieldValue.delete(), FieldPath(["a.b"]): FieldValue.delete(),
        ])
        try await check(["m": ["only": 1], "l": [5], "back\\slash and space": 1])
        try await document.setData(["m": ["new": 1, "gone": FieldValue.delete()]], merge: true)
        try await check(["m": ["only": 1, "new": 1], "l": [5], "back\\slash and space": 1])
        // A path that names a map replaces it; data outside the fields is ignored, sentinels too.
        try await document.setData(
            ["m": ["whole": 1], "l": FieldValue.serverTimestamp(), "x": 1],
            mergeFields: ["m", "m.whole", FieldPath(["m"])])
        try await check(["m": ["whole": 1], "l": [5], "back\\slash and space": 1])
        try await document.setData(["n": 1])
        try await check(["n": 1])
        #expect(try await user.end())
    }

    @Test
    func `Empty merges and updates make sure that the document exists, or check it`() async throws {
        let user = try UserDatabase(.memory)
        let db = user.db
        #expect(await firestoreCode { try await db.document("c/update").updateData([:]) } == .notFound)
        try await db.document("c/merge").setData([:], merge: true)
        try await db.document("c/fields").setData(["ignored": 1], mergeFields: [])
        try await db.document("c/set").setData([:])
        for id in ["merge", "fields", "set"] {
            #expect(Self.same(try await db.document("c/\(id)").getDocument(source: .server).data(), [:]), "\(id)")
        }
        try await db.document("c/set").updateData([:])
        try await db.document("c/set").setData(["a": 1])
        try await db.document("c/set").setData([:], merge: true)
        #expect(try await db.document("c/set").getDocument(source: .server).get("a") as? Int == 1)
        try await db.batch().commit()
        #expect(try await user.end())
    }

    private struct Change {
        var base: Any?
        var change: FieldValue
        var result: String

        init(_ base: Any?, _ change: FieldValue, _ result: String) {
            self.base = base
            self.change = change
            self.result = result
        }
    }

    private static var changes: [Change] {
        [
            Change(5, .increment(Int64(3)), "8"), Change(Int64.max, .increment(Int64(1)), "\(Int64.max)"),
            Change(Int64.min, .increment(Int64(-1)), "\(Int64.min)"), Change(5, .increment(1.5), "6.5 double"),
            Change(1.5, .increment(Int64(1)), "2.5 double"), Change("x", .increment(Int64(2)), "2"),
            Change(nil, .increment(Int64(2)), "2"), Change([1, 2], .arrayUnion([3, 2, 4]), "[1, 2, 3, 4]"),
            Change("x", .arrayUnion([1, 1]), "[1]"), Change(nil, .arrayUnion(["a"]), "[a]"),
            Change([1], .arrayUnion([1.0]), "[1]"), Change([1, 2, 1], .arrayRemove([1]), "[2]"),
            Change("x", .arrayRemove([1]), "[]"), Change(nil, .arrayRemove([1]), "[]"),
            Change(5, .minimum(Int64(3)), "3"), Change(5, .minimum(5.0), "5"), Change(5, .maximum(5.0), "5"),
            Change(5, .maximum(6.0), "6.0 double"), Change(5, .maximum(Double.nan), "nan double"),
            Change("x", .maximum(Int64(2)), "2"), Change(nil, .minimum(Int64(2)), "2"),
            Change(["k": 1], .delete(), "absent"),
        ]
    }

    /// A value with its type.
    private static func text(_ value: Any?) -> String {
        switch value {
        case nil: "absent"
        case let number as NSNumber:
            String(cString: number.objCType) == "d" ? "\(number.doubleValue) double" : "\(number)"
        case let array as [Any]: "[" + array.map { text($0) }.joined(separator: ", ") + "]"
        default: "\(value!)"
        }
    }

    @Test
    func `What the cache makes of a sentinel is what the server makes of it`() async throws {
        let user = try UserDatabase(.server)
        let db = user.db
        func document(_ number: Int) -> DocumentReference { db.document("c/d\(number)") }
        for (number, change) in Self.changes.enumerated() {
            try await document(number).setData(change.base.map { ["v": $0] } ?? [:])
        }
        try await db.disableNetwork()
        for (number, change) in Self.changes.enumerated() {
            document(number).updateData(["v": change.change], completion: nil)
        }
        for (number, change) in Self.changes.enumerated() {
            let local = try await document(number).getDocument(source: .cache).get("v")
            #expect(Self.text(local) == change.result, "cache, \(change.change) on \(Self.text(change.base))")
        }
        try await db.enableNetwork()
        try await db.waitForPendingWrites()
        for (number, change) in Self.changes.enumerated() {
            let stored = try await document(number).getDocument(source: .server).get("v")
            #expect(Self.text(stored) == change.result, "server, \(change.change) on \(Self.text(change.base))")
        }
        #expect(try await user.end())
    }

    @Test
    func `A batch applies all or nothing, also offline`() async throws {
        let user = try UserDatabase(.server)
        let db = user.db
        let refused = db.batch()
        refused.setData(["a": 1], forDocument: db.document("c/a")).updateData(["a": 1], forDocument: db.document("c/b"))
        #expect(await firestoreCode { try await refused.commit() } == .notFound)
        #expect(try await db.collection("c").getDocuments(source: .server).isEmpty)
        let later = db.batch()
        later.setData(["a": 1], forDocument: db.document("c/a"))
        later.deleteDocument(db.document("c/a")).updateData(["a": 2], forDocument: db.document("c/a"))
        #expect(await firestoreCode { try await later.commit() } == .invalidArgument)
        try await db.disableNetwork()
        let batch = db.batch()
        batch.setData(["a": 1], forDocument: db.document("c/a")).setData(["a": 2], forDocument: db.document("c/b"))
        batch.commit(completion: nil)
        #expect(try await db.collection("c").getDocuments(source: .cache).count == 2)
        try await db.enableNetwork()
        try await db.waitForPendingWrites()
        #expect(try await db.collection("c").getDocuments(source: .server).count == 2)
        #expect(try await user.end())
    }

    @Test
    func `A transaction without a server fails with .unavailable, whether it reads or only writes`() async throws {
        let user = try UserDatabase(.server)
        try await user.db.disableNetwork()
        // Nothing listens there.
        let lonely = UserDatabase.firestore("127.0.0.1:1")
        for db in [user.db, lonely] {
            let document = db.document("c/d")
            let reading = await firestoreCode {
                _ = try await db.runTransaction { transaction, errorPointer in
                    do {
                        _ = try transaction.getDocument(document)
                    } catch {
                        errorPointer?.pointee = error as NSError
                    }
                    return nil
                }
            }
            #expect(reading == .unavailable)
            let writing = await firestoreCode {
                _ = try await db.runTransaction { transaction, _ in
                    transaction.setData(["a": 1], forDocument: document)
                    return nil
                }
            }
            #expect(writing == .unavailable)
        }
        try await lonely.terminate()
        #expect(try await user.end())
    }

    @Test
    func `After the end a transaction's read fails with .failedPrecondition`() async throws {
        let user = try UserDatabase(.server)
        let (db, document) = (user.db, user.db.document("c/d"))
        let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let found = Mutex<NSError?>(nil)
        db.runTransaction(
            { transaction, errorPointer in
                begun.signal()
                ended.wait()
                do {
                    _ = try transaction.getDocument(document)
                } catch {
                    found.withLock { $0 = error as NSError }
                    errorPointer?.pointee = error as NSError
                }
                return nil
            }, completion: { _, _ in })
        await withCheckedContinuation { continuation in
            Thread {
                begun.wait()
                continuation.resume()
            }.start()
        }
        #expect(try await user.end())
        ended.signal()
        try await eventually("the read's error") { found.withLock { $0 } != nil }
        let error = found.withLock { $0 }
        #expect(error.map { FirestoreErrorCode.Code(rawValue: $0.code) } == .failedPrecondition)
        #expect(error?.localizedDescription == "The client has already been terminated.")
    }

    @Test(arguments: [FirestoreSource.default, .cache])
    func `A read does not see a write that was issued after it`(source: FirestoreSource) async throws {
        let user = try UserDatabase(.server)
        let (db, document) = (user.db, user.db.document("c/d"))
        let query = db.collection("c").order(by: "n").limit(to: 2)
        for number in 1...3 { try await db.document("c/\(number)").setData(["n": number]) }
        try await db.disableNetwork()
        document.setData(["n": 0], completion: nil)
        let seen = Mutex<[String]>([])
        @Sendable func note(_ text: String) { seen.withLock { $0.append(text) } }
        document.getDocument(source: source) { snapshot, error in note("document \(snapshot?.get("n") ?? error!)") }
        query.getDocuments(source: source) { results, _ in note("query \(results?.documents.map(\.documentID) ?? [])") }
        db.document("c/new").getDocument(source: source) { snapshot, _ in note("new \(snapshot != nil)") }
        document.setData(["n": 9], completion: nil)
        db.document("c/1").delete(completion: nil)
        db.document("c/new").setData(["n": -1], completion: nil)
        try await eventually("the reads") { seen.withLock { $0.count } == 3 }
        #expect(seen.withLock { Set($0) } == ["document 0", #"query ["d", "1"]"#, "new false"])
        let now = try await query.getDocuments(source: .cache)
        #expect(now.documents.map(\.documentID) == ["new", "2"])
        #expect(try await user.end())
    }

    private struct Refusal: Error, Equatable { var reason: String }

    @Test(arguments: TestBackend.allCases)
    func `A transaction with a block that throws: its value, or the very error`(backend: TestBackend) async throws {
        let user = try UserDatabase(backend)
        let (db, document) = (user.db, user.db.document("c/d"))
        for expected in 1...2 {
            let next = try await db.runTransaction { transaction in
                let next = (try transaction.getDocument(document).get("n") as? Int ?? 0) + 1
                transaction.setData(["n": next], forDocument: document)
                return next
            }
            #expect(next == expected)
        }
        let nothing: String? = try await db.runTransaction { transaction in
            try transaction.getDocument(document).get("none") as? String
        }
        #expect(nothing == nil)
        let attempts = Mutex(0)
        await #expect(throws: Refusal(reason: "full")) {
            try await db.runTransaction { transaction in
                attempts.withLock { $0 += 1 }
                transaction.deleteDocument(document)
                throw Refusal(reason: "full")
            }
        }
        #expect(attempts.withLock { $0 } == 1)
        // An error of the library decides about another attempt.
        let options = TransactionOptions()
        options.maxAttempts = 3
        let code = await firestoreCode {
            try await db.runTransaction(with: options) { _ in
                attempts.withLock { $0 += 1 }
                throw NSError(domain: FirestoreErrorDomain, code: FirestoreErrorCode.aborted.rawValue)
            }
        }
        #expect(code == .aborted && attempts.withLock { $0 } == 4)
        #expect(try await document.getDocument().get("n") as? Int == 2)
        #expect(try await user.end())
    }

    @Test(arguments: TestBackend.allCases)
    func `A transaction that has only read a document runs again if it changes`(backend: TestBackend) async throws {
        let user = try UserDatabase(backend)
        let (read, written) = (user.db.document("c/read"), user.db.document("c/written"))
        try await read.setData(["n": 1])
        let attempts = Mutex(0)
        let result = try await user.db.runTransaction { transaction, errorPointer -> Any? in
            do {
                let n = try transaction.getDocument(read).get("n") as? Int ?? 0
                let isFirst = attempts.withLock { attempts in
                    attempts += 1
                    return attempts == 1
                }
                if isFirst {
                    let done = DispatchSemaphore(value: 0)
                    read.setData(["n": 2]) { _ in done.signal() }
                    done.wait()
                }
                transaction.setData(["copy": n], forDocument: written)
                return n
            } catch {
                errorPointer?.pointee = error as NSError
                return nil
            }
        }
        #expect(result as? Int == 2 && attempts.withLock { $0 } == 2)
        #expect(try await written.getDocument(source: .server).get("copy") as? Int == 2)
        #expect(try await user.end())
    }

    @Test(arguments: TestBackend.allCases)
    func `Transactions: absent documents, reads after writes, foreign errors, results`(backend: TestBackend)
        async throws
    {
        let user = try UserDatabase(backend)
        let db = user.db
        let document = db.document("c/d")
        func code(_ block: @escaping @Sendable (Transaction) throws -> Void) async -> FirestoreErrorCode.Code? {
            await firestoreCode {
                _ = try await db.runTransaction { transaction, errorPointer -> Any? in
                    do { try block(transaction) } catch { errorPointer?.pointee = error as NSError }
                    return nil
                }
            }
        }
        let attempts = Mutex(0)
        let ofAbsent = await code { transaction in
            attempts.withLock { $0 += 1 }
            if try !transaction.getDocument(document).exists { transaction.updateData(["a": 1], forDocument: document) }
        }
        #expect(ofAbsent == .invalidArgument && attempts.withLock { $0 } == 1)
        #expect(await code { $0.updateData(["a": 1], forDocument: document) } == .notFound)
        #expect(
            await code { $0.deleteDocument(document).updateData(["a": 1], forDocument: document) } == .invalidArgument)
        #expect(
            await code { transaction in
                transaction.setData(["a": 1], forDocument: document)
                try transaction.getDocument(document)
            } == .invalidArgument)
        #expect(try await !document.getDocument(source: .server).exists)
        #expect(await code { _ in } == nil)
        let foreign = NSError(domain: "app", code: 42)
        do {
            _ = try await db.runTransaction { transaction, errorPointer -> Any? in
                transaction.setData(["a": 1], forDocument: document)
                errorPointer?.pointee = foreign
                return "not delivered"
            }
            Issue.record("no error")
        } catch {
            #expect((error as NSError) == foreign)
        }
        let result = try await db.runTransaction { transaction, _ -> Any? in
            transaction.setData(["a": 1], forDocument: document)
            return 7
        }
        #expect(result as? Int == 7)
        #expect(try await document.getDocument(source: .server).get("a") as? Int == 1)
        #expect(try await user.end())
    }
}
