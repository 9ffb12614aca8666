// Pipelines of the Swift client against a server process and stores in this process.

import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct PipelineTests {
    private func books(_ firestore: Firestore) async throws {
        let books: [(String, [String: Any])] = [
            ("a", ["title": "Ubik", "genre": "sf", "rating": 4.5, "tags": ["x", "y"], "n": 1]),
            ("b", ["title": "Dune", "genre": "sf", "rating": 4.0, "tags": ["y"], "n": 2]),
            ("c", ["title": "Emma", "genre": "romance", "rating": 3.5, "v": VectorValue([1, 2]), "n": 3]),
        ]
        for (id, data) in books { try await firestore.document("books/\(id)").setData(data) }
        try await firestore.document("books/a/reviews/r").setData(["stars": 5])
    }

    private func with(_ backend: TestBackend, _ body: (Firestore) async throws -> Void) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "pipelines")
        try await books(firestore)
        try await body(firestore)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `Conditions, orders, fields and bounds`(backend: TestBackend) async throws {
        try await with(backend) { db in
            let source = db.pipeline().collection("books")
            let snapshot = try await source.where(Field("genre").equal("sf") && Field("rating").greaterThan(4))
                .execute()
            expectEqual(snapshot.results.map(\.id), ["a"])
            let first = try #require(snapshot.results.first)
            expect(first.ref == db.document("books/a") && first.get("title") as? String == "Ubik")
            expect(first.get(Field("tags")) as? [String] == ["x", "y"] && first.get("none") == nil)
            expect(first.updateTime != nil && snapshot.executionTime.seconds > 0)
            let selected = try await source.sort([Field("rating").descending()]).offset(1).limit(1)
                .select([Field("title").toUpper().as("t"), Field("n")]).execute()
            expectEqual(selected.results.count, 1)
            expect(selected.results[0].data["t"] as? String == "DUNE" && selected.results[0].data["n"] as? Int == 2)
            let others = try await source.where(!Field("tags").arrayContains("x") || Field("n").equalAny([1, 7]))
                .select(["n"]).sort([Field("n").ascending()]).execute()
            expectEqual(others.results.map { $0.get("n") as? Int }, [1, 2])
            let nearest = try await source.findNearest(
                field: Field("v"), vectorValue: VectorValue([1, 3]), distanceMeasure: .euclidean, limit: 2,
                distanceField: "d"
            ).execute()
            expectEqual(nearest.results.map { $0.get("d") as? Double }, [1])
        }
    }

    @Test(arguments: TestBackend.allCases)
    func `A pipeline that is made from a query has the results of the query`(backend: TestBackend) async throws {
        try await with(backend) { db in
            let books = db.collection("books")
            let values: [Any] = [NSNull(), Double.nan, 2.5, "text", true]
            for (index, value) in values.enumerated() { try await books.document("x\(index)").setData(["n": value]) }
            let dune = try await books.document("b").getDocument()
            let queries: [Query] = [
                books, db.collectionGroup("reviews"), books.whereField("genre", isEqualTo: "sf"),
                books.whereField("n", isGreaterThan: 1), books.whereField("n", isEqualTo: NSNull()),
                books.whereField("n", in: [1, NSNull(), 3]), books.whereField("tags", arrayContains: "y"),
                books.whereField("tags", arrayContainsAny: ["x", "z"]),
                books.whereFilter(.orFilter([.whereField("n", isEqualTo: 3), .whereField("genre", isEqualTo: "sf")])),
                books.order(by: "n", descending: true), books.order(by: "n").limit(to: 3),
                books.order(by: "n").limit(toLast: 3), books.order(by: "rating").start(after: [3.5]),
                books.order(by: "n").start(at: [2]), books.order(by: "n").end(before: ["text"]),
                books.order(by: "n").end(at: [NSNull()]), books.order(by: "n").start(after: [NSNull()]),
                books.order(by: "genre", descending: true).order(by: "n").start(at: ["sf", 2]),
                books.order(by: "genre").start(atDocument: dune), books.order(by: "genre").end(beforeDocument: dune),
                books.whereField("n", isLessThan: 3).order(by: "n").limit(toLast: 1),
                books.order(by: FieldPath.documentID()).start(after: ["b"]).limit(to: 2),
                books.whereField("n", in: [NSNull()]),
            ]
            for (index, query) in queries.enumerated() {
                let expected = try await query.getDocuments(source: .server).documents.map(\.documentID)
                let results = try await db.pipeline().create(from: query).execute().results
                expectEqual(results.map { $0.id ?? "" }, expected, "query \(index)")
            }
            // Documents without the field differ from every value, in pipelines.
            for (query, expected) in [
                (books.whereField("rating", isNotEqualTo: 4.5), ["b", "c", "x0", "x1", "x2", "x3", "x4"]),
                (books.whereField("rating", notIn: [4.5, 3.5]), ["b", "x0", "x1", "x2", "x3", "x4"]),
                (books.whereField("rating", isNotEqualTo: 4.5).order(by: "rating"), ["b", "c"]),
            ] {
                let results = try await db.pipeline().create(from: query).execute().results
                expectEqual(results.map { $0.id ?? "" }.sorted(), expected)
            }
            let counted = try await db.pipeline().create(from: books.whereField("genre", isEqualTo: "sf"))
                .aggregate([CountAll().as("n")]).execute()
            expectEqual(counted.results.map { $0.get("n") as? Int }, [2])
        }
    }

    @Test(arguments: TestBackend.allCases)
    func `Totals, groups, elements, unions and subqueries`(backend: TestBackend) async throws {
        try await with(backend) { db in
            let source = db.pipeline().collection("books")
            let totals = try await source.aggregate(
                [
                    CountAll().as("n"), Field("rating").average().as("mean"),
                    Field("rating").greaterThan(4).countIf().as("good"),
                ], groups: [Field("genre")]
            ).sort([Field("n").descending()]).execute()
            expectEqual(totals.results.map { $0.get("genre") as? String }, ["sf", "romance"])
            expect(totals.results[0].get("mean") as? Double == 4.25 && totals.results[0].get("good") as? Int == 1)
            expect(totals.results[0].ref == nil && totals.results[0].id == nil)
            let tags = try await source.unnest(Field("tags").as("tag"), indexField: "i").distinct(["tag"])
                .sort([Field("tag").ascending()]).execute()
            expectEqual(tags.results.map { $0.get("tag") as? String ?? "-" }, ["-", "x", "y"])
            let stars = Subcollection("reviews").aggregate([Field("stars").sum().as("s")])
            let joined = try await source.define([Field("n").as("number")])
                .select([
                    stars.toScalarExpression().as("stars"),
                    db.pipeline().collectionGroup("books").where(Field("n").lessThan(Variable("number"))).select(["n"])
                        .toArrayExpression().as("smaller"),
                    Field("tags").arrayTransform(elementAlias: "t", transform: Variable("t").toUpper()).as("upper"),
                    ConditionalExpression(
                        Field("n").equal(1), then: Constant("one"), else: MapExpression(["n": Field("n")])
                    ).as("name"),
                ]).execute()
            expectEqual(joined.results.map { $0.get("stars") as? Int }, [5, 0, 0])
            expectEqual(joined.results.map { $0.get("smaller") as? [Int] }, [[], [1], [1, 2]])
            expect(joined.results[0].get("upper") as? [String] == ["X", "Y"])
            expect(joined.results[2].get("name.n") as? Int == 3)
            let union = try await db.pipeline().documents(["books/a"]).union(with: source.limit(1)).execute()
            expectEqual(union.results.map(\.id), ["a", "a"])
            try await expect(
                db.pipeline().database().aggregate([CountAll().as("n")]).execute().results[0].get("n") as? Int == 4)
        }
    }

    @Test(arguments: TestBackend.allCases)
    func `A pipeline writes, sees pending writes, and reports what is wrong`(backend: TestBackend) async throws {
        try await with(backend) { db in
            let source = db.pipeline().collection("books")
            _ = try await source.where(Field("genre").equal("sf"))
                .rawStage(name: "update", params: [["rating": Field("rating").add(1)]]).execute()
            try await expect(db.document("books/a").getDocument().get("rating") as? Double == 5.5)
            db.document("books/d").setData(["n": 4]) { _ in }
            try await expectEqual(source.execute().results.count, 4)
            do {
                _ = try await source.limit(-1).execute()
                Issue.record("no error")
            } catch FirestoreErrorCode.invalidArgument {
            }
            do {
                _ = try await source.rawStage(name: "shuffle", params: []).execute()
                Issue.record("no error")
            } catch FirestoreErrorCode.unimplemented {
            }
        }
    }

    @Test(arguments: TestBackend.allCases)
    func `Null is nil, arguments are arrays and maps of expressions, and functions read parts`(
        backend: TestBackend
    ) async throws {
        try await with(backend) { db in
            try await db.document("books/a").updateData([
                "none": NSNull(), "list": [NSNull(), 1], FieldPath(["map", "level 1"]): "in".prefix(1),
            ])
            let source = db.pipeline().documents(["books/a"])
            let first = try #require(try await source.execute().results.first)
            expect(first.data.keys.contains("none") && first.data["none"]! == nil && first.get("none") == nil)
            expect((first.get("list") as? [Any])?.first is NSNull)
            let named = try await source.select(["__name__", "map.level 1"]).execute().results[0]
            expect(named.data.keys.sorted() == ["map"] && named.id == "a")
            expect(named.get(FieldPath(["map", "level 1"])) as? String == "i")
            let computed = try await source.select([
                Field("tags").equal(ArrayExpression(["x", Field("tags").arrayLast()])).as("list"),
                MapExpression(["n": Field("n"), "more": ["sum": Field("n").add(1)]]).as("map"),
                Field("tags").reverse().as("reversed"), Field("title").reverse().as("text"),
                Constant(db.document("books/a/reviews/r")).parent().documentId().as("above"),
                Field("title").equal("x").asBoolean().as("flag"),
                switchOn(Field("n").equal(2), Constant("two"), Field("n").equal(1), Constant("one")).as("switch"),
                Field("n").between(1, 2).as("between"), (Field("n").equal(1) ^ Field("n").equal(1)).as("xor"),
                nor(Field("n").equal(2), Field("n").equal(3)).as("nor"),
                Constant(Timestamp(seconds: 86_400, nanoseconds: 0)).timestampExtract(part: .day).as("day"),
                Constant(Timestamp(seconds: 86_400, nanoseconds: 0)).timestampDiff(
                    Constant(Timestamp(seconds: 0, nanoseconds: 0)), .hour
                ).as("hours"), Field("none").ifNull("nothing").as("ifNull"),
                Field("n").coalesce([Constant(7)]).as("coalesce"), Constant(1.25).truncToPrecision(1).as("trunc"),
            ]).execute()
            let row = try #require(computed.results.first)
            expect(row.get("list") as? Bool == true && row.get("map.more.sum") as? Int == 2)
            expect(row.get("reversed") as? [String] == ["y", "x"] && row.get("text") as? String == "kibU")
            expect(row.get("above") as? String == "a" && row.get("flag") as? Bool == false)
            expect(row.get("switch") as? String == "one" && row.get("between") as? Bool == true)
            expect(row.get("xor") as? Bool == false && row.get("nor") as? Bool == true)
            expect(row.get("day") as? Int == 2 && row.get("hours") as? Int == 24)
            expect(row.get("ifNull") as? String == "nothing" && row.get("coalesce") as? Int == 1)
            expect(row.get("trunc") as? Double == 1.2)
        }
    }

    private func message(of pipeline: Pipeline) async -> String? {
        do {
            _ = try await pipeline.execute()
            return nil
        } catch {
            let error = error as NSError
            return error.code == FirestoreErrorCode.invalidArgument.rawValue ? error.localizedDescription : "\(error)"
        }
    }

    @Test
    func `One name for two fields is refused wherever it stands, and a subcollection is not executed itself`()
        async throws
    {
        try await with(.memory) { db in
            let source = db.pipeline().collection("books")
            let twice = [Field("a").as("x"), Field("b").as("x")]
            let total = Field("a").sum().as("x")
            let selectables = "Duplicate alias 'x' found in selectables."
            for stage in [
                source.select(twice), source.addFields(twice), source.distinct(twice), source.define(twice),
                source.aggregate([total], groups: twice), source.search(query: "w", addFields: twice),
                source.union(with: source.select(twice)),
                source.select([Subcollection("c").select(twice).toArrayExpression().add(1).as("y")]),
                source.where(source.select(twice).toScalarExpression().equal(1)),
            ] { await expectEqual(message(of: stage), selectables) }
            await expectEqual(
                message(of: source.aggregate([total, total])), "Duplicate alias 'x' found in accumulators.")
            await expectEqual(message(of: Subcollection("reviews").limit(1))?.contains("without a database"), true)
            await expectNil(message(of: source.select([Field("a").as("x"), Field("b").as("y")])))
        }
    }
}
