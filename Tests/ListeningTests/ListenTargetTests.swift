// Targets that are refused, ids, and states that a client may not continue from.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@testable import Listening

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct ListenTargetTests {
    private static let all = Subject.query(StructuredQuery(from: [CollectionSelector(collectionID: "c")]))

    private let harness: ListenHarness
    private let client: ListenClient

    init() throws {
        harness = try ListenHarness()
        client = ListenClient(harness)
        try client.connect()
    }

    private func finish() {
        client.disconnect()
        expectEqual(harness.hub.sessionCount, 0)
    }

    /// The causes of the targets that were removed, by their ids.
    private static func causes(_ messages: [ListenResponse]) -> [Int32: StatusMessage?] {
        var causes: [Int32: StatusMessage?] = [:]
        for case .targetChange(let change) in messages where change.kind == .remove {
            for id in change.targets { causes[id] = .some(change.cause) }
        }
        return causes
    }

    @Test
    func `A query that breaks a rule is removed with the error, and other targets continue`() throws {
        defer { finish() }
        try harness.set("c/a", [:])
        try client.listen(1, to: Self.all)
        let error = RequestError.invalidArgument("a rule")
        let parent = harness.database.documentsRoot
        try client.receive(.add(ListenTarget(.invalidQuery(parent: parent, error), id: 2)))
        try client.drain()
        expectEqual(Self.causes(client.takeMessages()), [2: StatusMessage(code: .invalidArgument, message: "a rule")])
        try harness.set("c/b", [:])
        harness.hub.advance()
        try client.drain()
        expectEqual(client.targets[1]?.documents.keys.sorted(), ["c/a", "c/b"])
    }

    @Test
    func `The removal of a target that the server has removed meanwhile gets its answer, and the id is free`() throws {
        defer { finish() }
        let error = RequestError.invalidArgument("a rule")
        let parent = harness.database.documentsRoot
        try client.receive(.add(ListenTarget(.invalidQuery(parent: parent, error), id: 2)))
        // The client has not read the refusal.
        try client.receive(.remove(2))
        try client.receive(.remove(7))
        try client.receive(.remove(0))
        try client.drain()
        let removed = client.takeMessages().compactMap { message -> String? in
            guard case .targetChange(let change) = message, change.kind == .remove else { return nil }
            return "\(change.targets) \(change.cause == nil ? "answer" : "refusal")"
        }
        expectEqual(removed, ["[2] refusal", "[2] answer", "[7] answer"])
        expectEqual(harness.hub.targetBytes, 0)
        try client.listen(2, to: Self.all)
        try client.drain()
        expect(client.targets[2] != nil)
    }

    @Test
    func `Refusals that a client does not read have a limit, and are not counted once they are read`() throws {
        var limits = ListenLimits()
        limits.targetBytes = 1 << 20
        let harness = try ListenHarness(limits: limits)
        let client = ListenClient(harness)
        try client.connect()
        // The error quotes the name.
        let ids = ["c", "d", "e"].map { String(repeating: $0, count: 1_500) }
        let names = ["\(harness.database.documentsRoot)/\(ids.joined(separator: "/"))"]
        for id in 1...5 as ClosedRange<Int32> { try client.receive(.add(ListenTarget(.documents(names), id: id))) }
        expect(harness.hub.targetBytes > 5 * 4_500)
        try client.drain()
        expect(Self.causes(client.takeMessages()).count == 5 && harness.hub.targetBytes == 0)
        for id in 10..<400 as Range<Int32> { try client.receive(.add(ListenTarget(.documents(names), id: id))) }
        expect(harness.hub.targetBytes <= limits.targetBytes)
        let error = #expect(throws: RequestError.self) { try client.drain() }
        expectEqual(error?.code, .resourceExhausted)
        client.disconnect()
        expectEqual(harness.hub.targetBytes, 0)
    }

    @Test
    func `A target that is removed before its turn is not held`() throws {
        defer { finish() }
        try client.listen(1, to: Self.all)
        weak var target: Target?
        target = client.session?.targets[1]
        expect(target != nil)
        try client.stopListening(1)
        expectNil(target)
        try client.drain()
        let kinds = client.takeMessages().compactMap { message in
            if case .targetChange(let change) = message { change.kind } else { nil }
        }
        expectEqual(kinds, [.add, .remove])
    }

    @Test
    func `An id that is in use ends the stream, whether the client or the server chose it, for any number of targets`()
        throws
    {
        var limits = ListenLimits()
        limits.targets = 1
        let harness = try ListenHarness(limits: limits)
        for first in [1, 0] as [Int32] {
            let client = ListenClient(harness)
            try client.connect()
            try client.send(first, Self.all, resume: nil, expectedCount: nil)
            try client.drain()
            #expect(throws: RequestError.invalidArgument("The target id 1 is in use.")) {
                try client.send(1, Self.all, resume: nil, expectedCount: nil)
            }
            // Another id is refused, and the target stays.
            _ = client.takeMessages()
            try client.send(first == 0 ? 0 : 7, Self.all, resume: nil, expectedCount: nil)
            try client.drain()
            let causes = Self.causes(client.takeMessages())
            expectEqual(causes.keys.sorted(), [first == 0 ? 2 : 7])
            expectEqual(causes.values.first??.code, .resourceExhausted)
            client.disconnect()
        }
    }

    @Test(arguments: [0, 2, 3] as [Int32])
    func `A client that has another number of documents than it should gets a filter`(count: Int32) throws {
        defer { finish() }
        for path in ["c/a", "c/b"] { try harness.set(path, [:]) }
        try client.listen(1, to: Self.all)
        try client.drain()
        client.disconnect()
        var token = ByteBuffer()
        ResumeToken(microseconds: client.readTime).encode(into: &token)
        try client.connect()
        _ = client.takeMessages()
        try client.send(1, Self.all, resume: .token(token.copyBytes()), expectedCount: count)
        try client.drain()
        let filters = client.takeMessages().compactMap { message in
            if case .filter(let filter) = message { filter } else { nil }
        }
        expectEqual(filters.map(\.count), count == 2 ? [] : [2])
        // Only a client that has documents needs names.
        expectEqual(filters.map { $0.unchangedNames != nil }, count == 2 ? [] : [count > 0])
    }

    @Test
    func `The filter has the number of documents of now, not of the state that the client continues from`() throws {
        defer { finish() }
        for path in ["c/a", "c/b"] { try harness.set(path, [:]) }
        try client.listen(1, to: Self.all)
        try client.drain()
        client.disconnect()
        var token = ByteBuffer()
        ResumeToken(microseconds: client.readTime).encode(into: &token)
        harness.clock.advance(milliseconds: 1)
        for path in ["c/c", "c/d", "c/e"] { try harness.set(path, [:]) }
        try client.connect()
        _ = client.takeMessages()
        var window = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        window.limit = 4
        let paths = ["c/a", "c/b", "c/d", "c/none"]
        let subjects: [Subject] = [Self.all, .documents(paths), .query(window)]
        for (number, subject) in subjects.enumerated() {
            try client.send(Int32(number + 1), subject, resume: .token(token.copyBytes()), expectedCount: 7)
        }
        try client.drain()
        var counts: [Int32: Int32] = [:]
        for case .filter(let filter) in client.takeMessages() { counts[filter.target] = filter.count }
        expectEqual(counts, [1: 5, 2: 3, 3: 4])
    }

    @Test(.enabled(if: ListenHarness.hasFiles, "The engine in memory has no files to copy."))
    func `A state of a history that was lost in a restore is not continued`() throws {
        defer { finish() }
        for path in ["c/a", "c/b"] { try harness.set(path, ["n": .integer(1)]) }
        try harness.backUp()
        try client.listen(1, to: Self.all)
        try harness.set("c/a", ["n": .integer(2)])
        try harness.delete("c/b")
        try harness.set("c/lost", [:])
        try client.drain()
        expectEqual(client.targets[1]?.documents.keys.sorted(), ["c/a", "c/lost"])
        let lost = client.readTime
        client.disconnect()
        try harness.restoreBackup()
        expect(harness.store.oldestResumeTime > lost)
        try client.resume()
        try client.drain()
        // The client compares every snapshot with the query.
        expectEqual(client.targets[1]?.wasReset, true)
        expectEqual(client.targets[1]?.documents.keys.sorted(), ["c/a", "c/b"])
        // The new history is continued, also over a restart.
        client.disconnect()
        try harness.set("c/new", [:])
        try harness.reopen()
        try client.resume()
        try client.drain()
        expectEqual(client.targets[1]?.wasReset, false)
        expectEqual(client.targets[1]?.documents.keys.sorted(), ["c/a", "c/b", "c/new"])
    }

    /// Queries over fields at any place of a large document, of each kind that a change is compared with.
    private static func queries() throws -> [StructuredQuery] {
        func query(
            _ filter: Filter?, by order: String? = nil, start: Int64? = nil, limit: Int32? = nil
        ) throws -> StructuredQuery {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")], filter: filter, limit: limit)
            if let order { query.orderBy = [Order(field: try FieldPath(order), direction: .descending)] }
            if let start { query.startAt = Cursor(values: [EncodedValue(.integer(start))], before: true) }
            return query
        }
        func filter(_ field: String, _ operation: FieldOperator, _ number: Int64) throws -> Filter {
            .field(try FieldPath(field), operation, EncodedValue(.integer(number)))
        }
        var queries = [try query(nil), try query(nil, by: "none"), try query(filter("map.none", .greaterThan, 0))]
        for place in [0, 1, 499, 998, 999] {
            let (field, nested) = ("f\(place)", "map.n\(place / 2)")
            queries += [
                try query(filter(field, .greaterThan, 3)), try query(filter(nested, .lessThan, 4)),
                try query(filter(field, .equal, 5)), try query(filter(nested, .notEqual, 5)),
                try query(nil, by: field, start: 4), try query(nil, by: nested, limit: 1),
                try query(.or([filter(field, .equal, 1), filter(nested, .greaterThan, 6)])),
            ]
        }
        return queries
    }

    @Test
    func `A change of a document with many fields reaches the queries that it concerns, whichever fields they name`()
        throws
    {
        defer { finish() }
        func fields(_ number: Int64, _ places: Range<Int>) -> [String: Value] {
            var fields = Dictionary(uniqueKeysWithValues: places.map { ("f\($0)", Value.integer(number)) })
            let nested = places.map { ("n\($0 / 2)", Value.integer(number + 1)) }
            fields["map"] = .map(MapValue(Dictionary(nested) { first, _ in first }))
            return fields
        }
        let queries = try Self.queries()
        for (index, query) in queries.enumerated() { try client.listen(Int32(index + 1), to: .query(query)) }
        try client.drain()
        for (number, places) in [(0, 0..<1000), (5, 0..<1000), (2, 100..<999), (7, 1..<1000), (4, 0..<10)] {
            try harness.set("c/a", fields(Int64(number), places))
            try harness.set("c/b", fields(Int64(7 - number), places))
            harness.hub.advance()
            try client.drain()
        }
        try harness.delete("c/a")
        harness.hub.advance()
        try client.drain()
        expectEqual(client.targets[1]?.documents.keys.sorted(), ["c/b"])
    }
}
