// The stage search against a naive evaluator of text queries and scores.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Foundation
import Indexing
import ServiceTestSupport
import TestSupport
import Testing
import TextAnalysis

@Suite(.timeLimit(.minutes(20)))
struct SearchTests {
    static let words = ["red", "reds", "redder", "fox", "foxes", "run", "runs", "running", "a", "häuser"]

    // MARK: Random searches

    @Test(arguments: CaseShare.of(UInt64(7000)..<7006, 3))
    func `Random searches return what a naive evaluator finds, with its scores, now and in the past`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        // Small steps end in the middle of lists and of combinations.
        var limits = ServiceLimits()
        limits.pipelines.rowsPerStep = seed % 3 == 0 ? 1_024 : 8
        let harness = try Harness(limits: limits)
        var documents: [String: NaiveDocument] = [:]
        var past: [(time: TimestampValue, documents: [String: NaiveDocument])] = []
        func change(_ count: Int) throws {
            for _ in 0..<count {
                let path = random.pick(["c", "c", "d/x/c"]) + "/\(random.below(40))"
                if random.oneIn(5) {
                    documents[path] = nil
                    try harness.delete(path)
                } else {
                    let document = NaiveDocument.random(&random)
                    documents[path] = document
                    try harness.set([path: document.fields.documentBytes])
                }
            }
        }
        try change(30)
        try harness.declareSearches(["t", "u"], of: "c")
        try harness.declareSearches(["t", "u"], of: "c", isGroup: true)
        for _ in 0..<4 {
            try change(20)
            let time = try harness.execute(.collection("none")).responses[0].executionTime
            past.append((try #require(time), documents))
            for _ in 0..<40 {
                let query = NaiveQuery.random(&random, depth: 0)
                let isGroup = random.oneIn(3)
                let source = isGroup ? Stage("collection_group", [.value(.reference("")), "c"]) : .collection("c")
                var options: [(String, Expression)] = [
                    ("query", .call("document_matches", .value(.string(query.text)))),
                    ("add_fields", .map([("score", .call("score"))])),
                ]
                let limit = random.oneIn(2) ? random.below(8) : nil
                if let limit { options.append(("limit", .value(.integer(Int64(limit))))) }
                let then = random.oneIn(4) ? random.pick(past) : nil
                let expected = NaiveSearch(then?.documents ?? documents, isGroup: isGroup).results(query)
                    .prefix(limit ?? .max)
                let answer = try harness.execute(
                    structuredPipeline([source, Stage("search", [], options: options)]),
                    then.map { ReadConsistency.readTime($0.time) } ?? .latest)
                expectEqual(
                    answer.paths.map { $0 ?? "" }, expected.map(\.path),
                    "seed \(seed), then \(then?.time as Any), group \(isGroup), \(query.text)")
                for (row, result) in zip(answer.rows, expected) {
                    guard case .double(let score)? = row["score"] else { throw RequestError(.internal, "no score") }
                    expect(abs(score - result.score) < 1e-9, "seed \(seed), \(query.text)")
                }
            }
        }
    }

    // MARK: The stage

    private func places() throws -> Harness {
        let harness = try Harness()
        let point = { (latitude: Double, longitude: Double) in
            Value.geoPoint(GeoPointValue(latitude: latitude, longitude: longitude))
        }
        try harness.set([
            "c/a": Harness.fields(["t": "Red foxes run", "n": 3, "p": point(10, 179.9)]),
            "c/b": Harness.fields(["t": "a red house", "n": 1, "p": point(10, -179.9)]),
            "c/c": Harness.fields(["t": "running in the red house", "n": 2, "p": point(89.9, 0)]),
            "c/d": Harness.fields(["t": "blue", "n": 5]),
        ])
        return harness
    }

    private func search(_ query: Expression, _ options: [(String, Expression)] = []) -> Stage {
        Stage("search", [], options: [("query", query)] + options)
    }

    private func matches(_ text: String) -> Expression { .call("document_matches", .value(.string(text))) }

    @Test
    func `Results have the order, the limits and the fields that the stage asks for`() throws {
        let harness = try places()
        try harness.declareSearches(["t"], points: ["p"], of: "c")
        func paths(_ stages: Stage...) throws -> [String?] {
            try harness.execute(structuredPipeline([.collection("c")] + stages)).paths
        }
        let byNumber: (String, Expression) = (
            "sort", .list([.map([("expression", .field("n")), ("direction", "descending")])])
        )
        expectEqual(Set(try paths(search(matches("red")))), ["c/a", "c/b", "c/c"])
        try expectEqual(paths(search(matches("red"), [byNumber])), ["c/a", "c/c", "c/b"])
        try expectEqual(paths(search(matches("red"), [byNumber, ("limit", 1), ("offset", 1)])), ["c/c"])
        try expectEqual(paths(search(matches("red"), [byNumber, ("retrieval_depth", 2)])), ["c/a", "c/b"])
        try expectEqual(paths(search(matches("red"), [("retrieval_depth", 0)])), [])
        try expectEqual(paths(search(matches("red"), [("limit", 0)])), [])
        try expectEqual(paths(search(matches("red"), [("language_code", "en-US")])).count, 3)
        try expectEqual(
            paths(search(.call("and", matches("red"), .call("greater_than", .field("n"), 1)), [byNumber])),
            ["c/a", "c/c"])
        try expectEqual(paths(search(.call("and", matches("red"), matches("run -house")))), ["c/a"])
        try expectEqual(paths(search(matches("red"), [byNumber]), .where(.call("equal", .field("n"), 2))), ["c/c"])
        try expectEqual(paths(search(.call("greater_than", .field("n"), 4), [byNumber])), ["c/d"])
    }

    @Test(arguments: [true, false])
    func `Places are found around the poles and across the date line, with an index and without`(
        isIndexed: Bool
    ) throws {
        let harness = try places()
        if isIndexed { try harness.declareSearches(["t"], points: ["p"], of: "c") }
        func found(_ latitude: Double, _ longitude: Double, _ radius: Double) throws -> [String?] {
            let point = Value.geoPoint(GeoPointValue(latitude: latitude, longitude: longitude))
            let distance = Expression.call("geo_distance", .field("p"), .value(point))
            return try harness.execute(
                .collection("c"),
                search(
                    .call("less_than_or_equal", distance, .value(.double(radius))),
                    [("sort", .list([.map([("expression", distance)])]))])
            ).paths
        }
        try expectEqual(found(10, 180, 12_000), ["c/a", "c/b"])
        try expectEqual(found(10, 179.9, 1), ["c/a"])
        try expectEqual(found(89.9, 180, 23_000), ["c/c"])
        try expect(found(-80, 0, 3e7) == ["c/b", "c/a", "c/c"] || found(-80, 0, 3e7).count == 3)
        try expectEqual(found(0, 0, -1), [])
        let explained = try harness.execute(
            structuredPipeline(
                [
                    .collection("c"),
                    search(
                        .call(
                            "less_than",
                            .call(
                                "geo_distance", .field("p"), .value(.geoPoint(GeoPointValue(latitude: 1, longitude: 1)))
                            ),
                            10)),
                ], options: [("explain_options", .map([("mode", "explain")]))]))
        let text = explained.responses.compactMap(\.explainText).joined()
        expect(text.contains(isIndexed ? "Search collection c by (t TEXT, p GEO) en" : "CollectionScan"), "\(text)")
    }

    @Test
    func `Distances are those on a sphere`() throws {
        let harness = try Harness()
        let point = { Expression.value(.geoPoint(GeoPointValue(latitude: $0, longitude: $1))) }
        func distance(_ left: Expression, _ right: Expression) throws -> Double {
            guard case .double(let metres)? = try harness.value(.call("geo_distance", left, right)) else { return .nan }
            return metres
        }
        try expectEqual(distance(point(0, 0), point(0, 0)), 0)
        expect(abs(try distance(point(0, 0), point(0, 180)) - 6_371_010 * .pi) < 1e-3)
        expect(abs(try distance(point(48.8566, 2.3522), point(51.5074, -0.1278)) - 343_557) < 100)
        try expectEqual(harness.value(.call("geo_distance", nil, point(0, 0))), .null)
        expectEqual(harness.failure(.call("geo_distance", 1, point(0, 0))).status, .invalidArgument)
    }

    @Test
    func `A search conflicts with a later change of its collection, and not with others`() throws {
        for (path, isConflict) in [("c/new", true), ("e/new", false)] {
            let harness = try places()
            try harness.declareSearches(["t"], of: "c")
            let transaction = try harness.begin()
            let found = try harness.execute(
                structuredPipeline([.collection("c"), search(matches("blue"))]), .transaction(transaction))
            expectEqual(found.paths, ["c/d"])
            try harness.set([path: Harness.fields(["t": "blue"])])
            var writes = try harness.emptyWrites()
            let (name, fields) = (Array(Harness.name("e/other").utf8), Harness.fields(["n": 1]))
            try writes.update(name.byteSpan, fields: fields.byteSpan)
            let outcome = harness.tryCommit(writes, transaction: transaction)
            expectEqual(outcome.status == .aborted, isConflict, "\(path)")
        }
    }

    @Test
    func `Without an index a text search names the index that it needs`() throws {
        let harness = try places()
        let lacking = harness.outcome([.collection("c"), search(matches("red"))])
        expectEqual(lacking.status, .failedPrecondition)
        expect(lacking.text.contains("\"collectionGroup\":\"c\",\"queryScope\":\"COLLECTION\""))
        expect(lacking.text.contains("\"textLanguage\":\"en\""))
        try harness.declareSearches(["t"], of: "c")
        expectEqual(
            harness.outcome([.collection("c"), search(matches("red"), [("language_code", "de")])]).status,
            .failedPrecondition)
        let group = Stage("collection_group", [.value(.reference("")), "c"])
        expect(harness.outcome([group, search(matches("red"))]).text.contains("COLLECTION_GROUP"))
    }

    @Test(arguments: [
        "", "   ", "-red", "red OR", "OR red", "red OR -blue", "(red", "red)", "\"red", "!!!", "- red OR", "()",
        String(repeating: "(", count: 40) + "red" + String(repeating: ")", count: 40),
        (0..<65).map { "w\($0)" }.joined(separator: " "), String(repeating: "x", count: 5_000),
    ])
    func `Text queries that mean nothing or are too large are refused`(_ query: String) throws {
        let harness = try places()
        try harness.declareSearches(["t"], of: "c")
        expectEqual(harness.outcome([.collection("c"), search(matches(query))]).status, .invalidArgument)
    }

    @Test
    func `Random texts are queries, or are refused as such`() throws {
        let harness = try places()
        try harness.declareSearches(["t"], of: "c")
        var random = SeededGenerator(seed: 9000)
        let parts = [
            "red", "fox", "OR", "-", "(", ")", "\"", "*", " ", " ", "AND", "\u{0}", "é", "\u{1F98A}", "東京", "\u{202E}",
            "'", "\t",
        ]
        var statuses: Set<StatusCode> = []
        for _ in 0..<400 {
            let text = (0..<random.below(14)).map { _ in random.pick(parts) }.joined()
            let status = harness.outcome([.collection("c"), search(matches(text))]).status
            expect(status == .ok || status == .invalidArgument, "\(text)")
            if let status { statuses.insert(status) }
        }
        expectEqual(statuses, [.ok, .invalidArgument])
    }

    @Test
    func `Options and places that are not valid are refused`() throws {
        let harness = try places()
        try harness.declareSearches(["t"], of: "c")
        let red = matches("red")
        let refused: [([Stage], StatusCode)] = [
            ([.collection("c"), search(red, [("language_code", "xx")])], .invalidArgument),
            ([.collection("c"), search(red, [("limit", -1)])], .invalidArgument),
            (
                [
                    .collection("c"),
                    search(red, [("limit", .value(.integer(.max))), ("offset", .value(.integer(.max))), ("sort", 1)]),
                ], .invalidArgument
            ),
            ([.collection("c"), search(red, [("retrieval_depth", "x")])], .invalidArgument),
            ([.collection("c"), search(red, [("partition", 1)])], .unimplemented),
            ([.collection("c"), search(.call("or", red, .call("exists", .field("n"))))], .invalidArgument),
            ([.collection("c"), search(.call("not", red))], .invalidArgument),
            ([.collection("c"), search(matches("red"), [("sort", .list([]))])], .invalidArgument),
            ([.collection("c"), .limit(1), search(red)], .invalidArgument),
            ([Stage("database", []), search(red)], .invalidArgument),
            ([search(red)], .invalidArgument),
            ([.collection("c"), .where(red)], .invalidArgument),
            ([.collection("c"), .select(("s", .call("score")))], .invalidArgument),
        ]
        for (stages, status) in refused {
            let answer = harness.outcome(stages)
            expectEqual(answer.status, status, "\(stages): \(answer.text)")
        }
    }

    @Test
    func `The text queries of the documentation find what it says`() throws {
        let page = try String(contentsOf: Repository.url("docs/pipelines.md"), encoding: .utf8)
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let start = try #require(lines.firstIndex { $0.hasPrefix("Documents with these texts") })
        let harness = try Harness()
        for line in lines[(start + 2)...].prefix(while: { $0.hasPrefix("    ") }) {
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            try harness.set(["c/\(parts[0])": Harness.fields(["t": .string(parts[1])])])
        }
        try harness.declareSearches(["t"], of: "c")
        let table = try #require(lines.firstIndex { $0.hasPrefix("| text query") })
        var count = 0
        for line in lines[(table + 2)...].prefix(while: { $0.hasPrefix("|") }) {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let query = String(cells[0].dropFirst().dropLast())
            let found = try harness.execute(.collection("c"), search(matches(query))).paths
            expectEqual(Set(found), Set(cells[2].split(separator: " ").map { "c/\($0)" }), "\(query)")
            count += 1
        }
        expect(count >= 10)
    }

    @Test
    func `A search holds no more entries than a pipeline may hold`() throws {
        var limits = ServiceLimits()
        limits.pipelines.memoryBytes = 2_000
        let harness = try Harness(limits: limits)
        for number in 0..<100 { try harness.set(["c/\(number)": Harness.fields(["t": "red"])]) }
        try harness.declareSearches(["t"], of: "c")
        for query in ["red", "re*"] {
            let answer = harness.outcome([.collection("c"), search(matches(query))])
            expect(answer.status == .resourceExhausted && answer.text.contains("The stage search"), "\(answer.text)")
        }
        expect(harness.outcome([.collection("c"), search(matches("blue"))]).isOK)
    }
}

extension Harness {
    /// Declares an index for searches besides those that are there, and waits until it is built.
    func declareSearches(
        _ texts: [String], points: [String] = [], of collectionID: String, isGroup: Bool = false,
        language: String = "en"
    ) throws {
        let shape = IndexShape(
            collectionID: collectionID, isGroup: isGroup, parts: [],
            search: IndexShape.SearchPart(
                texts: try texts.map { try FieldPath($0) }, points: try points.map { try FieldPath($0) },
                language: try TextLanguage(tag: language)))
        let database = try DatabaseName(Self.database)
        store.changeIndexes(in: database, { $0.indexes.append(shape) }, completion: { _ in })
        try waitUntil("the index is built") {
            store.declaredIndexes(in: database).contains { $0.shape == shape && $0.state == .ready }
        }
    }
}

// MARK: The naive evaluator

/// A document with the words of its two fields.
private struct NaiveDocument {
    /// Nil for a field that is not there.
    let texts: [[[String]]?]

    static func random(_ random: inout SeededGenerator) -> NaiveDocument {
        func text() -> [String] { (0..<random.below(7)).map { _ in random.pick(SearchTests.words) } }
        return NaiveDocument(
            texts: (0..<2).map { _ in
                random.oneIn(4) ? nil : (0..<(random.oneIn(4) ? 2 : 1)).map { _ in text() }
            })
    }

    var fields: MapValue {
        var fields: MapValue = [:]
        for (name, parts) in zip(["t", "u"], texts) {
            guard let parts else { continue }
            let values = parts.map { Value.string($0.joined(separator: " ")) }
            fields[name] = values.count == 1 ? values[0] : .array(values)
        }
        return fields
    }
}

private indirect enum NaiveQuery {
    case word(String)
    case prefix(String)
    case phrase([String])
    case all([NaiveQuery], [NaiveQuery])
    case any([NaiveQuery])

    static func random(_ random: inout SeededGenerator, depth: Int) -> NaiveQuery {
        switch random.below(depth < 2 ? 7 : 4) {
        case 0, 1: return .word(random.pick(SearchTests.words))
        case 2: return .prefix(random.pick(["r", "re", "red", "ru", "runn", "f", "h", "z"]))
        case 3: return .phrase((0..<(1 + random.below(3))).map { _ in random.pick(SearchTests.words) })
        case 4: return .any((0..<2).map { _ in Self.random(&random, depth: depth + 1) })
        default:
            return .all(
                (0..<(1 + random.below(2))).map { _ in Self.random(&random, depth: depth + 1) },
                (0..<random.below(2)).map { _ in Self.random(&random, depth: depth + 1) })
        }
    }

    var text: String {
        switch self {
        case .word(let word): word
        case .prefix(let word): word + "*"
        case .phrase(let words): "\"" + words.joined(separator: " ") + "\""
        case .any(let parts): parts.map(\.item).joined(separator: " OR ")
        case .all(let parts, let excluded):
            (parts.map(\.choice) + excluded.map { "-" + $0.choice }).joined(separator: " ")
        }
    }

    private var choice: String { if case .any = self { text } else { item } }

    private var item: String {
        switch self {
        case .all, .any: "(\(text))"
        default: text
        }
    }

    /// The words that count for scores, each once, in the order in which they occur.
    var scored: [Scored] {
        var result: [Scored] = []
        func add(_ scored: Scored) { if !result.contains(scored) { result.append(scored) } }
        switch self {
        case .word(let word): add(.stem(NaiveSearch.stem(word)))
        case .prefix(let word): add(.prefix(word))
        case .phrase(let words): for word in words { add(.stem(NaiveSearch.stem(word))) }
        case .any(let parts), .all(let parts, _): parts.flatMap(\.scored).forEach(add)
        }
        return result
    }

    enum Scored: Equatable {
        case stem(String)
        case prefix(String)

        func matches(_ word: String) -> Bool {
            switch self {
            case .stem(let stem): NaiveSearch.stem(word) == stem
            case .prefix(let prefix): word.hasPrefix(prefix)
            }
        }
    }
}

private struct NaiveSearch {
    private let documents: [(path: String, document: NaiveDocument)]

    init(_ all: [String: NaiveDocument], isGroup: Bool) {
        documents = all.filter { isGroup || $0.key.hasPrefix("c/") }.map { ($0.key, $0.value) }
            .sorted { ResourcePath.compare(Array($0.path.utf8).byteSpan, Array($1.path.utf8).byteSpan) < 0 }
    }

    /// The stems of the words that the tests use, by hand.
    static func stem(_ word: String) -> String {
        [
            "reds": "red", "redder": "redder", "foxes": "fox", "runs": "run", "running": "run",
        ][word] ?? word
    }

    func results(_ query: NaiveQuery) -> [(path: String, score: Double)] {
        documents.filter { matches(query, $0.document) }
            .map { (path: $0.path, score: score(query, $0.document)) }
            .enumerated().sorted { left, right in
                left.element.score != right.element.score
                    ? left.element.score > right.element.score : left.offset < right.offset
            }.map(\.element)
    }

    private func matches(_ query: NaiveQuery, _ document: NaiveDocument) -> Bool {
        let texts = document.texts.compactMap { $0 }.flatMap { $0 }
        switch query {
        case .word(let word): return texts.contains { $0.contains { Self.stem($0) == Self.stem(word) } }
        case .prefix(let word): return texts.contains { $0.contains { $0.hasPrefix(word) } }
        case .phrase(let words):
            let stems = words.map(Self.stem)
            return texts.contains { text in
                text.indices.contains { start in
                    text[start...].prefix(stems.count).map(Self.stem) == stems
                }
            }
        case .any(let parts): return parts.contains { matches($0, document) }
        case .all(let parts, let excluded):
            return parts.allSatisfy { matches($0, document) } && !excluded.contains { matches($0, document) }
        }
    }

    /// BM25 over the fields together, as the documentation states it.
    private func score(_ query: NaiveQuery, _ document: NaiveDocument) -> Double {
        func words(_ document: NaiveDocument, _ field: Int) -> [String] { (document.texts[field] ?? []).flatMap { $0 } }
        let withWords = documents.filter { entry in (0..<2).contains { !words(entry.document, $0).isEmpty } }.count
        var total = 0.0
        for word in query.scored {
            let count = documents.filter { entry in
                (0..<2).contains { words(entry.document, $0).contains(where: word.matches) }
            }.count
            var frequency = 0.0
            for field in 0..<2 {
                let lengths = documents.map { Double(words($0.document, field).count) }.filter { $0 > 0 }
                guard !lengths.isEmpty else { continue }
                let average = lengths.reduce(0, +) / Double(lengths.count)
                let own = words(document, field)
                frequency += Double(own.filter(word.matches).count) / (1 - 0.75 + 0.75 * Double(own.count) / average)
            }
            let weight = log(1 + (Double(withWords) - Double(count) + 0.5) / (Double(count) + 0.5))
            total += weight * frequency / (1.2 + frequency)
        }
        return total
    }
}
