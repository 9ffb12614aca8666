// What queries and totals return for null, NaN, missing fields and other types, from the server and from the cache.

import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct QueryBehaviourTests {
    private static var documents: [String: [String: Any]] {
        [
            "missing": ["other": 1], "nan": ["v": Double.nan, "n": 1.5], "null": ["v": NSNull()],
            "one": ["v": 1, "n": 2, "tags": [NSNull(), 1]], "text": ["v": "x", "n": "no number", "tags": [NSNull()]],
            "two": ["v": 2, "m": ["k": true]],
        ]
    }

    private static func ids(_ query: Query, _ source: FirestoreSource) async throws -> [String] {
        try await query.getDocuments(source: source).documents.map(\.documentID)
    }

    @Test
    func `Filters treat null, NaN and missing fields as the rules say, in the cache too`() async throws {
        let user = try UserDatabase(.server)
        let all = user.db.collection("c")
        for (id, fields) in Self.documents { try await all.document(id).setData(fields) }
        let group = user.db.collectionGroup("c")
        let cases: [(Query, Set<String>)] = [
            (all.whereField("v", isEqualTo: NSNull()), ["null"]),
            (all.whereField("v", isEqualTo: Double.nan), ["nan"]),
            (all.whereField("v", isEqualTo: 1.0), ["one"]),
            (all.whereField("v", isNotEqualTo: 1), ["nan", "text", "two"]),
            (all.whereField("v", isNotEqualTo: NSNull()), ["nan", "one", "text", "two"]),
            (all.whereField("v", isNotEqualTo: Double.nan), ["one", "text", "two"]),
            (all.whereField("v", notIn: [1, "x"]), ["nan", "two"]),
            (all.whereField("v", notIn: [1, NSNull()]), []),
            (all.whereField("v", in: [1, NSNull(), Double.nan]), ["one"]),
            (all.whereField("v", isLessThan: 2), ["one"]),
            (all.whereField("v", isGreaterThanOrEqualTo: "a"), ["text"]),
            (all.whereField("tags", arrayContainsAny: [NSNull(), 1]), ["one"]),
            (all.whereField("m.k", isEqualTo: true), ["two"]),
            (all.whereField(FieldPath(["m", "k"]), isEqualTo: true), ["two"]),
            (all.whereField(.documentID(), in: ["one", "absent"]), ["one"]),
            (group.whereField(.documentID(), isEqualTo: "c/two"), ["two"]),
            (all.whereFilter(.andFilter([])), Set(Self.documents.keys)),
            (
                all.whereFilter(.orFilter([.whereField("v", isEqualTo: 2), .whereField("n", isEqualTo: 1.5)])),
                ["two", "nan"]
            ),
            (all.order(by: "v"), ["nan", "null", "one", "text", "two"]),
            (all.order(by: "m.k"), ["two"]),
        ]
        for (number, (query, expected)) in cases.enumerated() {
            for source in [FirestoreSource.server, .cache] {
                let ids = try await Self.ids(query, source)
                #expect(Set(ids) == expected && ids.count == expected.count, "case \(number), \(source)")
            }
        }
        #expect(try await user.end())
    }

    @Test(arguments: [FirestoreSource.server, .cache])
    func `Orders, limits and cursors`(source: FirestoreSource) async throws {
        let user = try UserDatabase(.server)
        let all = user.db.collection("c")
        for (id, fields) in Self.documents { try await all.document(id).setData(fields) }
        let sorted = all.order(by: "v")
        #expect(try await Self.ids(sorted, source) == ["null", "nan", "one", "two", "text"])
        #expect(
            try await Self.ids(all.order(by: "v", descending: true), source) == ["text", "two", "one", "nan", "null"])
        #expect(try await Self.ids(sorted.limit(to: 2), source) == ["null", "nan"])
        #expect(try await Self.ids(sorted.limit(toLast: 2), source) == ["two", "text"])
        #expect(try await Self.ids(sorted.start(at: [1]).end(before: ["x"]), source) == ["one", "two"])
        #expect(try await Self.ids(sorted.start(at: ["x"]).start(after: [1]).end(at: [2]), source) == ["two"])
        let one = try await all.document("one").getDocument()
        #expect(try await Self.ids(sorted.start(atDocument: one), source) == ["one", "two", "text"])
        #expect(try await Self.ids(sorted.start(afterDocument: one), source) == ["two", "text"])
        #expect(try await Self.ids(sorted.end(beforeDocument: one), source) == ["null", "nan"])
        #expect(try await Self.ids(sorted.end(atDocument: one).limit(toLast: 2), source) == ["nan", "one"])
        let byName = all.order(by: FieldPath.documentID())
        #expect(try await Self.ids(byName.start(at: ["one"]).end(at: ["text"]), source) == ["one", "text"])
        // An inequality orders by its field, then by the name, in the direction of the last order.
        let inequality = all.whereField("v", isGreaterThan: 0)
        #expect(try await Self.ids(inequality, source) == ["one", "two"])
        #expect(try await Self.ids(inequality.start(afterDocument: one), source) == ["two"])
        #expect(try await user.end())
    }

    @Test
    func `Totals: nothing adds up to 0 and has no mean; their number is limited; they need the server`() async throws {
        let user = try UserDatabase(.server)
        let all = user.db.collection("c")
        for (id, fields) in Self.documents { try await all.document(id).setData(fields) }
        let fields = [AggregateField.count(), .sum("n"), .average(FieldPath(["n"]))]
        let totals = try await all.aggregate(fields).getAggregation(source: .server)
        // Of several totals, each is over the documents that have all of the fields.
        #expect(totals.count == 3)
        #expect((totals.get(.sum("n")) as? NSNumber)?.doubleValue == 3.5)
        #expect((totals.get(.average("n")) as? NSNumber)?.doubleValue == 1.75)
        #expect(totals.query == all.aggregate(fields))
        let absent = [AggregateField.sum("absent"), .average("absent")]
        let nothing = try await all.aggregate(absent).getAggregation(source: .server)
        #expect(nothing.get(.sum("absent")) as? Int == 0)
        #expect(nothing.get(.average("absent")) is NSNull)
        #expect(try await all.count.getAggregation(source: .server).count == 6)
        #expect(try await all.whereField("v", isEqualTo: 1).count.getAggregation(source: .server).count == 1)
        func code(_ query: AggregateQuery) async -> FirestoreErrorCode.Code? {
            await firestoreCode { _ = try await query.getAggregation(source: .server) }
        }
        #expect(await code(all.aggregate([])) == .invalidArgument)
        #expect(await code(all.aggregate(fields + absent + [.sum("other")])) == .invalidArgument)
        try await user.db.disableNetwork()
        #expect(await code(all.count) == .unavailable)
        #expect(try await user.end())
    }
}
