// The text form of pipelines, against the JSON of the same requests.

import Basics
import FirestoreJSON
import TestSupport
import Testing

@testable import Pipelines

@Suite(.timeLimit(.minutes(20)))
struct PipelineTextTests {
    private func wire(_ stages: String) throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        try "{\"pipeline\": {\"stages\": [\(stages)]}}".withUTF8Span {
            try reader.append($0, Schema.shared.message("google.firestore.v1.StructuredPipeline"), to: &output)
        }
        return output.copyBytes()
    }

    private func call(_ name: String, _ arguments: String...) -> String {
        "{\"functionValue\": {\"name\": \"\(name)\", \"args\": [\(arguments.joined(separator: ","))]}}"
    }

    private func field(_ path: String) -> String { "{\"fieldReferenceValue\": \"\(path)\"}" }

    private func stage(_ name: String, _ arguments: String..., options: String = "") -> String {
        "{\"name\": \"\(name)\", \"args\": [\(arguments.joined(separator: ","))], \"options\": {\(options)}}"
    }

    private func map(_ entries: String) -> String { "{\"mapValue\": {\"fields\": {\(entries)}}}" }

    private func list(_ element: String) -> String { "{\"arrayValue\": {\"values\": [\(element)]}}" }

    private func expectText(_ text: String, _ stages: String...) throws {
        try expectEqual(PipelineText.structuredPipeline(text), wire(stages.joined(separator: ",")), "\(text)")
    }

    private let books = "{\"name\": \"collection\", \"args\": [{\"referenceValue\": \"/books\"}]}"
    private let one = "{\"integerValue\": \"1\"}"

    @Test
    func `Conditions and arithmetic have the usual precedence`() throws {
        try expectText("collection(books)", books)
        try expectText("collection(\"books\") | limit(1)", books, stage("limit", one))
        let sum = call("add", field("a"), call("multiply", field("b"), one))
        try expectText(
            "collection(books) | where(a + b * 1 > 1)", books, stage("where", call("greater_than", sum, one)))
        try expectText(
            "collection(books)|where(a and not b or c == 1)", books,
            stage("where", call("or", call("and", field("a"), call("not", field("b"))), call("equal", field("c"), one)))
        )
        try expectText(
            "collection(books) | where(1 in tags)", books, stage("where", call("array_contains", field("tags"), one)))
        try expectText(
            "collection(books) | where(a - 1 == -1.5)", books,
            stage("where", call("equal", call("subtract", field("a"), one), "{\"doubleValue\": -1.5}")))
    }

    @Test
    func `Stages take fields, orders, groups, options and pipelines`() throws {
        try expectText(
            "collection(books) | select(a, b: upper(c.d))", books,
            stage("select", map("\"a\": \(field("a")), \"b\": \(call("upper", field("c.d")))")))
        let accumulators = map("\"n\": \(call("count"))")
        try expectText(
            "collection(books) | aggregate(n: count() by genre) | sort(n desc, genre)", books,
            stage("aggregate", accumulators, map("\"genre\": \(field("genre"))")),
            stage(
                "sort", map("\"direction\": {\"stringValue\": \"descending\"}, \"expression\": \(field("n"))"),
                map("\"direction\": {\"stringValue\": \"ascending\"}, \"expression\": \(field("genre"))")))
        try expectText(
            "collection(books) | unnest(tags, \"t\", index_field: \"i\")", books,
            stage(
                "unnest", field("tags"), "{\"stringValue\": \"t\"}",
                options: "\"index_field\": {\"stringValue\": \"i\"}"))
        try expectText(
            "collection(books) | union(collection(books) | limit(1))", books,
            stage("union", "{\"pipelineValue\": {\"stages\": [\(books), \(stage("limit", one))]}}"))
        try expectText(
            "collection(books) | let(x: 'it\\'s') | where($x == null)", books,
            stage("let", map("\"x\": {\"stringValue\": \"it's\"}")),
            stage("where", call("equal", "{\"variableReferenceValue\": \"x\"}", "{\"nullValue\": null}")))
        let matches = call("document_matches", "{\"stringValue\": \"dune\"}")
        let order = map("\"direction\": {\"stringValue\": \"descending\"}, \"expression\": \(call("score"))")
        try expectText(
            "collection(books) | search(query: document_matches(\"dune\"), sort: [score() desc], limit: 1)", books,
            stage("search", options: "\"query\": \(matches), \"sort\": \(list(order)), \"limit\": \(one)"))
        try expectText(
            "collection(users/ada/books) | delete()",
            "{\"name\": \"collection\", \"args\": [{\"referenceValue\": \"/users/ada/books\"}]}", stage("delete"))
    }

    @Test(arguments: [
        "", "books", "collection(books", "collection(books) |", "collection(books) | where(a ==)", "collection()) ",
        "collection(books) | select(1)", "collection(books) | where(\"a)", "collection(books) | where(a # b)",
        "collection(books) | limit(1x)", "literals({a 1})", "collection(books) limit(1)",
        "collection(books) | search(sort: score() desc)", "collection(books) | unnest(sort: [a desc])",
    ])
    func `What is not a pipeline is refused with the column`(_ text: String) throws {
        #expect(throws: PipelineTextError.self) { try PipelineText.structuredPipeline(text) }
    }

    @Test
    func `Damaged texts are pipelines or are refused`() throws {
        let texts = [
            "collection(users/ada/books) | where(a + b * 1 > 1 and not c) | sort(n desc, `odd name`) | limit(3)",
            "collection(b) | aggregate(n: count(), x: sum(-1.5e3) by g) | select('it\\'s': {k: [1, $v]})",
        ]
        var random = SeededGenerator(seed: UInt64(CaseShare.number))
        for _ in 0..<500 {
            let text = String(decoding: random.damaged(Array(random.pick(texts).utf8)), as: UTF8.self)
            guard let bytes = try? PipelineText.structuredPipeline(text) else { continue }
            do throws(RequestError) {
                _ = try ParsedPipeline(structuredPipeline: bytes.byteSpan)
            } catch {
                expectEqual(error.code, .invalidArgument, "seed \(random.seed): \(text): \(error.message)")
            }
        }
    }

    @Test
    func `Deep nests end with an error`() throws {
        let text = "collection(books) | where(" + String(repeating: "(", count: 10_000)
        #expect(throws: PipelineTextError.self) { try PipelineText.structuredPipeline(text) }
    }
}
