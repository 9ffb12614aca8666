// Codable models as applications have them, through a database, in Swift 5 mode.

import Firebase
import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct CodableBehaviourTests {
    private static func start() -> Firestore {
        let name = "codable-\(UUID().uuidString)"
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = name
        FirebaseApp.configure(name: name, options: options)
        let db = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        let settings = FirestoreSettings()
        settings.host = "file::memory:\(name)"
        settings.dispatchQueue = DispatchQueue(label: "codable")
        db.settings = settings
        return db
    }

    enum Shelf: String, Codable, CodingKeyRepresentable { case upper, lower }

    struct Keyed: Codable, Equatable {
        var numbers: [Int: String]
        var shelves: [Shelf: Int]
        var identifiers: [UUID: Int]
    }

    @Test
    func `Dictionaries with other keys than strings have the forms of the SDK`() async throws {
        let db = Self.start()
        let identifier = UUID()
        let keyed = Keyed(numbers: [1: "one", -2: "two"], shelves: [.upper: 3], identifiers: [identifier: 4])
        try db.document("c/d").setData(from: keyed)
        let snapshot = try await db.document("c/d").getDocument()
        #expect(snapshot.get("numbers") as? [String: String] == ["1": "one", "-2": "two"])
        #expect(snapshot.get("shelves") as? [String: Int] == ["upper": 3])
        let alternating = snapshot.get("identifiers") as? [Any]
        #expect(alternating?.first as? String == identifier.uuidString && alternating?.last as? Int == 4)
        #expect(try snapshot.data(as: Keyed.self) == keyed)
        try await db.terminate()
    }

    struct File: Codable { var data: Data }

    @Test
    func `Bytes decode from bytes and from base64 text; other text is an error`() async throws {
        let db = Self.start()
        try await db.document("c/bytes").setData(["data": Data([1, 2])])
        try await db.document("c/text").setData(["data": Data([1, 2]).base64EncodedString()])
        try await db.document("c/other").setData(["data": "*"])
        #expect(try await db.document("c/bytes").getDocument(as: File.self).data == Data([1, 2]))
        #expect(try await db.document("c/text").getDocument(as: File.self).data == Data([1, 2]))
        await #expect(throws: DecodingError.self) { _ = try await db.document("c/other").getDocument(as: File.self) }
        try await db.terminate()
    }

    struct Task: Codable {
        @DocumentID var id: String?
        @ServerTimestamp var changed: Timestamp?
        @ExplicitNull var note: String?
        var title: String
        var due: Date?
    }

    @Test
    func `A pending timestamp decodes as nil, as an estimate, or as the value before`() async throws {
        let db = Self.start()
        let document = db.document("c/d")
        let before = Timestamp(seconds: 5, nanoseconds: 0)
        var task = Task(title: "t")
        task.changed = before
        try document.setData(from: task)
        try await db.waitForPendingWrites()
        // A listener keeps the document in the cache.
        let registration = document.addSnapshotListener { _, _ in }
        #expect(try await document.getDocument().get("changed") as? Timestamp == before)
        try await eventually("cached") { (try? await document.getDocument(source: .cache))?.exists ?? false }
        try await db.disableNetwork()
        task.changed = nil
        try document.setData(from: task, merge: true)
        let snapshot = try await document.getDocument(source: .cache)
        #expect(try snapshot.data(as: Task.self).changed == nil)
        let estimate = try snapshot.data(as: Task.self, with: .estimate).changed
        #expect(estimate.map { $0.seconds > 1_000_000 } ?? false)
        #expect(try snapshot.data(as: Task.self, with: .previous).changed == before)
        try await db.enableNetwork()
        try await db.waitForPendingWrites()
        #expect(try await document.getDocument(as: Task.self).changed != before)
        registration.remove()
        try await db.terminate()
    }

    @Test
    func `nil is left out, an explicit null is written, a merge leaves other fields alone`() async throws {
        let db = Self.start()
        let document = try db.collection("c").addDocument(from: Task(title: "t"))
        var fields = try await document.getDocument().data() ?? [:]
        #expect(Set(fields.keys) == ["changed", "note", "title"] && fields["note"] is NSNull)
        try await document.updateData(["other": 1])
        try document.setData(from: Task(title: "u"), merge: true)
        try document.setData(from: Task(title: "not written", due: Date()), mergeFields: ["due"])
        fields = try await document.getDocument().data() ?? [:]
        #expect(fields["other"] as? Int == 1 && fields["title"] as? String == "u" && fields["due"] is Timestamp)
        let decoded = try await document.getDocument(as: Task.self)
        #expect(decoded.id == document.documentID && decoded.note == nil)
        try await document.updateData(["note": FieldValue.delete()])
        // A missing field is an error; null is not.
        await #expect(throws: DecodingError.self) { _ = try await document.getDocument(as: Task.self) }
        try await db.terminate()
    }

    @Test
    func `Numbers read from a document are all the numbers that they are`() async throws {
        let db = Self.start()
        try await db.document("c/d").setData(["n": 3, "b": true, "l": [1, 2], "d": 2.5])
        let snapshot = try await db.document("c/d").getDocument()
        let n = snapshot.get("n")
        #expect(n as? Int == 3 && n as? Int64 == 3 && n as? Double == 3 && n is NSNumber)
        #expect(snapshot["b"] as? Bool == true && snapshot["d"] as? Double == 2.5 && snapshot["l"] as? [Int] == [1, 2])
        #expect(snapshot.data()! as NSDictionary == ["n": 3, "b": true, "l": [1, 2], "d": 2.5] as NSDictionary)
        try await db.terminate()
    }

    @Test
    func `Classes of Foundation are values of documents and operands of queries too`() async throws {
        let db = Self.start()
        let date = Date(timeIntervalSince1970: 5)
        let fields = NSMutableDictionary()
        fields["text"] = NSString(string: "x")
        fields["list"] = NSArray(array: [1, NSString(string: "y")])
        fields["map"] = NSDictionary(dictionary: ["k": NSNumber(value: true)])
        fields["date"] = NSDate(timeIntervalSince1970: 5)
        fields["bytes"] = NSData(data: Data([1]))
        fields["decimal"] = NSDecimalNumber(string: "1.5")
        fields["other decimal"] = Decimal(string: "2.5")
        try await db.document("c/d").setData(fields as! [String: Any])
        let expected: [String: Any] = [
            "text": "x", "list": [1, "y"] as [Any], "map": ["k": true], "date": Timestamp(date: date),
            "bytes": Data([1]), "decimal": 1.5, "other decimal": 2.5,
        ]
        let found = try await db.document("c/d").getDocument().data() ?? [:]
        #expect(found as NSDictionary == expected as NSDictionary, "\(found)")
        for (field, value) in fields as! [String: Any] {
            let results = try await db.collection("c").whereField(FieldPath([field]), isEqualTo: value).getDocuments()
            #expect(results.count == 1, "\(field)")
        }
        try await db.terminate()
    }

    @Test
    func `A document id that a program gives logs a warning; one that it assigns does not`() async {
        func warns(_ text: [UInt8]?) -> Bool { String(decoding: text ?? [], as: UTF8.self).contains("I-FST000002") }
        let given = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            _ = Task(id: "x", title: "t")
        }
        #expect(warns(given?.standardErrorContent))
        let assigned = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            var task = Task(title: "t")
            task.id = "x"
        }
        #expect(!warns(assigned?.standardErrorContent))
    }
}
