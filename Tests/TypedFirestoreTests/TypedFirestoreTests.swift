// The typed layer over a server and over stores in this process.

import FirebaseCore
import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@testable import TypedFirestore

/// A model with the forms that a field can have.
struct Book: Codable, Sendable, Equatable {
    enum Kind: String, Codable, Sendable, CaseIterable { case novel, essay }
    struct Publisher: Codable, Sendable, Equatable {
        var name: String
        var city: String?
    }
    struct Shelf: Codable, Sendable, Equatable { var number: Int }

    @DocumentID var id: String?
    var title: String
    var year: Int
    var price = 1.5
    var isLent = false
    var kind = Kind.novel
    var tags: [String] = []
    var ratings: [String: Int] = [:]
    var publisher = Publisher(name: "p", city: nil)
    var shelf = Shelf(number: 1)
    var subtitle: String?
    var place: GeoPoint?
    var link: URL?
    @ServerTimestamp var added: Timestamp?
    @ExplicitNull var note: String?

    var shout: String { title.uppercased() }
    var age: Int { 2000 - year }

    enum CodingKeys: String, CodingKey {
        case id, title, price, kind, tags, ratings, publisher, shelf, subtitle, place, link, added, note
        case year = "published_in"
        case isLent = "lent"
    }
}

@Suite(.timeLimit(.minutes(20)))
struct TypedFirestoreTests {
    private func open(_ backend: TestBackend) throws -> (TestDatabase, Firestore) {
        let database = try backend.start()
        let name = "typed-\(UUID().uuidString)"
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = name
        FirebaseApp.configure(name: name, options: options)
        let firestore = Firestore.firestore(app: try #require(FirebaseApp.app(name: name)))
        let settings = firestore.settings
        settings.host = database.host
        settings.dispatchQueue = DispatchQueue(label: "typed")
        firestore.settings = settings
        return (database, firestore)
    }

    /// The ids of the results.
    private func ids(_ query: TypedQuery<Book>) async throws -> [String] {
        try await query.get().documents.map(\.id).sorted()
    }

    @Test(arguments: TestBackend.allCases)
    func `Transactions and batches read and write models`(backend: TestBackend) async throws {
        let (database, db) = try open(backend)
        let books = db.collection("books", of: Book.self)
        let (ulysses, dubliners) = (books.document("u"), books.document("d"))
        let batch = db.batch()
        try batch.set(Book(title: "Ulysses", year: 1900), at: ulysses)
            .update(ulysses, .set(\.year, to: 1922), .union(\.tags, with: ["irish"]))
        try batch.set(Book(title: "Dubliners", year: 1914), at: dubliners)
        try await batch.commit()
        try await expectEqual(ulysses.get()?.year, 1922)
        let titles = try await db.runTransaction { transaction in
            guard var first = try transaction.get(ulysses), let second = try transaction.snapshot(dubliners) else {
                return [String]()
            }
            first.year += 1
            try transaction.set(first, at: ulysses)
            try transaction.update(dubliners, .increment(\.year, by: 1), .remove(\.subtitle))
            return [first.title, try second.model.title]
        }
        expectEqual(titles, ["Ulysses", "Dubliners"])
        try await expectEqual(ulysses.get()?.year, 1923)
        try await expectEqual(dubliners.get()?.year, 1915)
        try await db.runTransaction { transaction in
            try expectNil(transaction.get(books.document("none")))
            try transaction.merge(Book(title: "Finnegans Wake", year: 1939), at: ulysses)
            transaction.delete(dubliners)
        }
        try await expectEqual(ulysses.get()?.title, "Finnegans Wake")
        await #expect(throws: NoSuchField.self) {
            try await db.runTransaction { transaction in
                _ = try transaction.update(ulysses, .set(\.shout, to: "x"))
            }
        }
        let last = db.batch()
        try last.merge(Book(title: "x", year: 1), at: books.document("new")).delete(ulysses)
        try await last.commit()
        try await expectEqual(ids(books.all), ["new"])
        try await db.terminate()
        expect(database.stop())
    }

    @Test
    func `A filter that no query may have is an error of each read`() async throws {
        let (database, db) = try open(.memory)
        let books = db.collection("books", of: Book.self).all
        let queries: [(TypedQuery<Book>, String)] = [
            (books.where(\.title, in: []), "A non-empty array is required for 'in' filters."),
            (books.where(\.title, notIn: []), "A non-empty array is required for 'notIn' filters."),
            (books.where(\.tags, containsAny: []), "A non-empty array is required for 'arrayContainsAny' filters."),
            (
                books.where(\.title, in: ["a"]).where(\.year, notIn: [1]),
                "You cannot use 'notIn' filters with 'in' filters."
            ), (books.where(\.id, .equal, "a/b"), "contains a '/' character"),
        ]
        for (query, text) in queries { await expectErrors(of: query, text) }
        try await db.terminate()
        expect(database.stop())
    }

    /// The errors of all kinds of reads of a query.
    private func expectErrors(of query: TypedQuery<Book>, _ text: String) async {
        let reads: [(String, () async throws -> Void)] = [
            ("get", { _ = try await query.get() }), ("count", { _ = try await query.count() }),
            ("sum", { _ = try await query.sum(of: \.year) }), ("average", { _ = try await query.average(of: \.year) }),
            ("snapshots", { for try await _ in query.snapshots { break } }),
        ]
        for (name, read) in reads {
            do {
                try await read()
                Issue.record("\(name) has no error")
            } catch FirestoreErrorCode.invalidArgument {
                // The text is that of the trap of the untyped query.
                await #expect("\(name)") { try await read() } throws: { $0.localizedDescription.contains(text) }
            } catch {
                Issue.record("\(name) has another error: \(error)")
            }
        }
    }

    @Test
    func `A limit, a cursor or an order that no query may have is an error of each read`() async throws {
        let (database, db) = try open(.memory)
        let books = db.collection("books", of: Book.self)
        try await books.document("a").set(Book(title: "Ulysses", year: 1922))
        let book = try #require(try await books.document("a").snapshot())
        let gone = TypedSnapshot<Book>(try await db.document("books/none").getDocument())
        let limit = "Query limit (0) is invalid. Limit must be positive."
        let queries: [(TypedQuery<Book>, String)] = [
            (books.all.limit(to: 0), limit), (books.order(by: \.year).limit(toLast: 0), limit),
            (books.all.limit(to: -1), "Query limit (-1) is invalid."),
            (books.all.limit(toLast: 1), "limit(toLast:) queries require specifying at least one OrderBy() clause."),
            (books.order(by: \.subtitle).start(at: book), "the field 'subtitle' (used as the order by) does not exist"),
            (books.order(by: \.link).start(after: book), "the field 'link' (used as the order by) does not exist."),
            (books.all.start(after: gone), "using a document that doesn't exist."),
            (
                books.order(by: \.year).start(at: book).order(by: \.title),
                "You must not specify a starting point before specifying the order by."
            ),
        ]
        for (query, text) in queries { await expectErrors(of: query, text) }
        // An order that comes later is in time.
        try await expectEqual(books.all.limit(toLast: 1).order(by: \.year).get().count, 1)
        try await db.terminate()
        expect(database.stop())
    }

    private struct Sheet: Codable, Sendable {
        struct Page: Codable, Sendable { var number: Int }

        @DocumentID var id: String?
        var cells: [[Int]] = []
        var page = Page(number: 1)
        var owner: DocumentReference?
    }

    @Test
    func `An update that no document may have is an error, and writes nothing`() async throws {
        let (database, db) = try open(.memory)
        let sheet = db.document("sheets/a", of: Sheet.self)
        try await sheet.set(Sheet())
        let foreign = Firestore.firestore(app: db.app, database: "other").document("a/b")
        let updates: [([FieldChange<Sheet>], String)] = [
            ([.set(\.page, to: .init(number: 2)), .set(\.page.number, to: 3)], "is set twice in the update"),
            ([.set(\.cells, to: [[1]])], "Nested arrays are not supported."),
            ([.union(\.cells, with: [[1]])], "Nested arrays are not supported."),
            ([.subtract([[1]], from: \.cells)], "Nested arrays are not supported."),
            ([.set(\.id, to: "b")], "cannot begin and end with \"__\""),
            ([.set(\.owner, to: foreign)], "Document reference is for database"),
        ]
        for (changes, text) in updates {
            let (first, second) = (changes[0], changes.last ?? changes[0])
            let ways: [() async throws -> Void] = [
                { changes.count > 1 ? try await sheet.update(first, second) : try await sheet.update(first) },
                {
                    let batch = db.batch()
                    _ = changes.count > 1 ? try batch.update(sheet, first, second) : try batch.update(sheet, first)
                },
                {
                    try await db.runTransaction { transaction in
                        _ =
                            changes.count > 1
                            ? try transaction.update(sheet, first, second) : try transaction.update(sheet, first)
                    }
                },
            ]
            for way in ways {
                await #expect { try await way() } throws: { error in
                    let error = error as NSError
                    return error.code == FirestoreErrorCode.invalidArgument.rawValue
                        && error.localizedDescription.contains(text)
                }
            }
        }
        try await expectEqual(sheet.get()?.page.number, 1)
        try await db.terminate()
        expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `Models are stored, read, changed and deleted`(backend: TestBackend) async throws {
        let (database, db) = try open(backend)
        let books = db.collection("books", of: Book.self)
        let reference = try await books.add(Book(title: "Ulysses", year: 1922, tags: ["irish"]))
        var stored = try #require(try await reference.get())
        expectEqual(stored.id, reference.id)
        expect(stored.title == "Ulysses" && stored.year == 1922)
        expect(stored.added != nil)
        try await reference.update(
            .set(\.title, to: "Ulysses 2"), .increment(\.year, by: 1), .increment(\.price, by: 0.5),
            .union(\.tags, with: ["long"]), .set(\.shelf.number, to: 7),
            .set(\.subtitle, to: "s"), .setToCommitTime(\.added))
        stored = try #require(try await reference.get())
        expect(stored.title == "Ulysses 2" && stored.year == 1923 && stored.price == 2)
        expect(stored.tags == ["irish", "long"] && stored.shelf.number == 7 && stored.subtitle == "s")
        try await reference.update(.remove(\.subtitle), .subtract(["long"], from: \.tags))
        try await expectEqual(reference.get()?.tags, ["irish"])
        await #expect(throws: RepeatedField.self) {
            try await reference.update(.set(\.year, to: 1), .increment(\.year, by: 1))
        }
        try await expectNil(reference.get()?.subtitle)
        try await reference.untyped.updateData(["other": 1])
        stored.title = "again"
        try await reference.merge(stored)
        try await expect(reference.untyped.getDocument().get("other") as? Int == 1)
        try await reference.set(stored)
        try await expectNil(reference.untyped.getDocument().get("other"))
        try await reference.delete()
        try await expectNil(reference.get())
        await #expect(throws: (any Error).self) { try await reference.update(.set(\.title, to: "none")) }
        try await db.terminate()
        expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `Key paths are the fields that the model stores, in filters and orders`(backend: TestBackend) async throws {
        let (database, db) = try open(backend)
        let books = db.collection("books", of: Book.self)
        for n in 0..<4 {
            let book = Book(
                title: "t\(n)", year: 1900 + n, price: Double(n), isLent: n == 3, kind: n < 2 ? .novel : .essay,
                tags: ["a\(n)", "all"], ratings: ["r": n], publisher: .init(name: "p\(n)", city: n == 1 ? "c" : nil),
                shelf: .init(number: n), subtitle: n == 2 ? "s" : nil)
            try await books.document("b\(n)").set(book)
        }
        try await expectEqual(ids(books.where(\.year, .greaterThan, 1901)), ["b2", "b3"])
        try await expectEqual(ids(books.where(\.year, .lessThanOrEqual, 1901).where(\.price, .greaterThan, 0)), ["b1"])
        try await expectEqual(ids(books.where(\.isLent, .equal, true)), ["b3"])
        try await expectEqual(ids(books.where(\.kind, .equal, .novel)), ["b0", "b1"])
        try await expectEqual(ids(books.where(\.kind, .notEqual, .novel)), ["b2", "b3"])
        try await expectEqual(ids(books.where(\.publisher.name, .equal, "p2")), ["b2"])
        try await expectEqual(ids(books.where(\.publisher, .equal, .init(name: "p1", city: "c"))), ["b1"])
        try await expectEqual(ids(books.where(\.shelf, .equal, .init(number: 3))), ["b3"])
        try await expectEqual(ids(books.where(\.shelf.number, .lessThan, 1)), ["b0"])
        try await expectEqual(ids(books.where(\.subtitle, .equal, "s")), ["b2"])
        try await expectEqual(ids(books.where(\.note, .equal, nil)), ["b0", "b1", "b2", "b3"])
        try await expectEqual(ids(books.where(\.id, .greaterThanOrEqual, "b2")), ["b2", "b3"])
        try await expectEqual(ids(books.all.where(\.tags, contains: "a1")), ["b1"])
        try await expectEqual(ids(books.all.where(\.tags, containsAny: ["a1", "a2"])), ["b1", "b2"])
        try await expectEqual(ids(books.all.where(\.title, in: ["t0", "t3", "x"])), ["b0", "b3"])
        try await expectEqual(ids(books.all.where(\.title, notIn: ["t0", "t3"])), ["b1", "b2"])
        try await expectEqual(ids(books.where(\.tags, .equal, ["a0", "all"])), ["b0"])
        try await expectEqual(ids(books.where(\.ratings, .equal, ["r": 2])), ["b2"])
        let page = try await books.order(by: \.year, descending: true).limit(to: 2).get()
        try expectEqual(page.models.map(\.year), [1903, 1902])
        let last = try #require(page.documents.last)
        try await expectEqual(books.order(by: \.year, descending: true).start(after: last).get().models.count, 2)
        try await expectEqual(books.order(by: \.year, descending: true).start(at: last).get().count, 3)
        try await expectEqual(books.order(by: \.year).limit(toLast: 1).get().models.map(\.year), [1903])
        try await expectEqual(books.all.count(), 4)
        try await expectEqual(books.all.sum(of: \.year), 7606)
        try await expectEqual(books.all.average(of: \.price), 1.5)
        try await expectNil(books.where(\.year, .equal, 1).average(of: \.price))
        try await expectEqual(db.collectionGroup("books", of: Book.self).count(), 4)
        try await db.terminate()
        expect(database.stop())
    }

    /// Without a server timestamp, whose arrival would be a change.
    struct Note: Codable, Sendable { var year: Int }

    @Test(arguments: TestBackend.allCases)
    func `Listeners are sequences of typed snapshots and changes`(backend: TestBackend) async throws {
        let (database, db) = try open(backend)
        let notes = db.collection("notes", of: Note.self)
        let states = [[], ["b"], ["a", "b"], ["b", "a"], ["a"]]
        var reached = 0
        var replayed: [String] = []
        for try await snapshot in notes.order(by: \.year).snapshots {
            for change in snapshot.changes {
                if let index = change.oldIndex { expectEqual(replayed.remove(at: index), change.document.id) }
                if let index = change.newIndex { replayed.insert(change.document.id, at: index) }
                expectEqual(change.oldIndex == nil, change.kind == .added)
                expectEqual(change.newIndex == nil, change.kind == .removed)
            }
            let ids = snapshot.documents.map(\.id)
            expectEqual(replayed, ids)
            guard ids == states[reached] else { continue }
            reached += 1
            switch reached {
            case 1: try await notes.document("b").set(Note(year: 2))
            case 2: try await notes.document("a").set(Note(year: 1))
            case 3: try await notes.document("a").update(.set(\.year, to: 3))
            case 4: try await notes.document("b").delete()
            default: break
            }
            if reached == states.count { break }
        }
        expectEqual(reached, states.count)
        var years: [Int?] = []
        for try await snapshot in notes.document("x").snapshots {
            years.append(try snapshot?.model.year)
            if years.count == 1 { try await notes.document("x").set(Note(year: 7)) }
            if years.count == 2 { break }
        }
        expectEqual(years, [nil, 7])
        try await db.terminate()
        expect(database.stop())
    }

    // MARK: Key paths without a field

    struct Ticket: Codable, Sendable {
        enum State: String, Codable, Sendable { case open, closed }
        var state: State
        var number: Int
    }

    struct Named: Codable, Sendable, FieldNaming {
        enum State: String, Codable, Sendable { case open, closed }
        var state: State

        static func fieldPath(of keyPath: PartialKeyPath<Named>) -> FieldPath? {
            keyPath == \Named.state ? FieldPath(["state"]) : nil
        }
    }

    @Test
    func `A computed property, and a type that cannot be made up, are errors of the query; FieldNaming helps`()
        async throws
    {
        let (_, db) = try open(.memory)
        let books = db.collection("books", of: Book.self)
        await #expect(throws: NoSuchField.self) { _ = try await books.where(\.shout, .equal, "X").get() }
        await #expect(throws: NoSuchField.self) { _ = try await books.order(by: \.age).limit(to: 3).get() }
        await #expect(throws: NoSuchField.self) {
            for try await _ in books.where(\.age, .equal, 1).snapshots { Issue.record("a snapshot") }
        }
        await #expect(throws: EncodingError.self) { _ = try await books.where(\.price, .equal, .nan).get() }
        let tickets = db.collection("tickets", of: Ticket.self)
        let error = await #expect(throws: NoSuchField.self) {
            _ = try await tickets.where(\.number, .equal, 1).get()
        }
        expectEqual(error?.description.contains("CaseIterable"), true)
        let named = db.collection("named", of: Named.self)
        try await named.document("n").set(Named(state: .closed))
        try await expectEqual(named.where(\.state, .equal, .closed).count(), 1)
        try await db.document("books/text").setData(["title": 1])
        await #expect(throws: DecodingError.self) { _ = try await books.document("text").get() }
        let all = try await books.all.get()
        expectEqual(all.count, 1)
        #expect(throws: DecodingError.self) { try all.models }
        try await db.terminate()
    }
}
