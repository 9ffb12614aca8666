// The pipelines that the official Python client's suite sends, with the results that it expects.

import Basics
import DocumentModel
import FirestoreJSON
import FirestoreMessages
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

/// One request of the suite.
private struct RecordedRequest {
    var name = ""
    var pipeline: [UInt8] = []
    var rows: [MapValue] = []
    /// How much numbers may differ, in relation to those above 1.
    var tolerance = 1e-12
    var count: Int?
    var errorText: String?

    var hasExpectation: Bool { !rows.isEmpty || count != nil || errorText != nil }
}

@Suite(.timeLimit(.minutes(20)))
struct RequestReplayTests {
    /// Requests that have to be served. A new function or stage raises it.
    private static let servedMin = 206

    /// Requests with results that depend on what the service leaves open: the order of an unsorted read. One asks for
    /// the size of the first name, which has 29 bytes only if it is that of `book10`.
    private static let open: Set<String> = [
        "aggregates.yaml: testArrayAggDistinct", "general.yaml: testStorageSize",
        "subqueries.yaml: array_subquery_with_variable",
    ]

    @Test
    func `The requests of the official client are served, and their results are those that it expects`() throws {
        let harness = try Harness()
        for line in try lines("documents.txt") {
            let parts = line.split(separator: " ", maxSplits: 1)
            let fields = try message(String(parts[1]), "Document")
            try harness.set([String(parts[0]): fields])
        }
        // What the suite expects in its project in the cloud (Tests/Interop/compatibility/firestore.indexes.json).
        try harness.declareSearches(["name", "description", "menu"], points: ["location"], of: "restaurants")
        var served = 0
        var refused: [String] = []
        for request in try requests() {
            let answer = harness.call(
                .executePipeline,
                ExecutePipelineRequest(database: Harness.database, pipeline: request.pipeline))
            if answer.status == .unimplemented {
                refused.append("\(request.name): \(answer.text)")
                continue
            }
            served += 1
            if request.hasExpectation, !Self.open.contains(request.name) { try check(answer, request) }
        }
        expect(served >= Self.servedMin, "\(served) are served, not these: \(refused.joined(separator: "\n"))")
    }

    private func check(_ answer: TestAnswer, _ request: RecordedRequest) throws {
        if let text = request.errorText {
            expectEqual(answer.status, .invalidArgument, "\(request.name)")
            expect(answer.text.contains(text), "\(request.name): \(answer.text)")
            return
        }
        expect(answer.isOK, "\(request.name): \(answer.text)")
        var rows: [MapValue] = []
        for bytes in answer.messages {
            for result in try ExecutePipelineResponse(wire: bytes.byteSpan).results {
                rows.append(try MapValue(documentBytes: result.fields.byteSpan))
            }
        }
        if let count = request.count { expectEqual(rows.count, count, "\(request.name)") }
        guard !request.rows.isEmpty else { return }
        expectEqual(rows.count, request.rows.count, "\(request.name): \(rows)")
        for (row, expected) in zip(rows, request.rows) {
            let isSame = Self.isSame(.map(row), .map(expected), within: request.tolerance)
            expect(isSame, "\(request.name): \(row) is not \(expected)")
        }
    }

    /// Whether values are equal, numbers as Python compares them.
    private static func isSame(_ left: Value, _ right: Value, within tolerance: Double) -> Bool {
        func number(_ value: Value) -> Double? {
            switch value {
            case .integer(let number): Double(number)
            case .double(let number): number
            default: nil
            }
        }
        if let left = number(left), let right = number(right) {
            return left.isNaN && right.isNaN || abs(left - right) <= tolerance * max(1, abs(right))
        }
        switch (left, right) {
        case (.array(let lefts), .array(let rights)):
            return lefts.count == rights.count
                && zip(lefts, rights).allSatisfy { isSame($0, $1, within: tolerance) }
        case (.map(let lefts), .map(let rights)):
            return lefts.count == rights.count
                && zip(lefts.entries, rights.entries).allSatisfy {
                    $0.key == $1.key && isSame($0.value, $1.value, within: tolerance)
                }
        default: return ValueOrder.equal(left, right)
        }
    }

    // MARK: Files

    private func lines(_ file: String) throws -> [String] {
        let folder = try #require(Bundle.module.url(forResource: "Requests", withExtension: nil))
        let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
        return text.split(separator: "\n").map(String.init)
    }

    /// The bytes of a message that is written in JSON.
    private func message(_ json: String, _ type: String) throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        try json.withUTF8Span {
            try reader.append($0, Schema.shared.message("google.firestore.v1.\(type)"), to: &output)
        }
        return output.copyBytes()
    }

    /// Names begin with `#`, pipelines with `>`, rows with `=` or, if numbers differ a little, with `~`; `within` says
    /// how much they may differ.
    private func requests() throws -> [RecordedRequest] {
        var requests: [RecordedRequest] = []
        for line in try lines("requests.txt") {
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            if parts[0] == "#" { requests.append(RecordedRequest(name: parts[1])) }
            let last = requests.count - 1
            switch parts[0] {
            case ">": requests[last].pipeline = try message(parts[1], "StructuredPipeline")
            case "=", "~":
                let fields = try message(parts[1], "Document")
                requests[last].rows.append(try MapValue(documentBytes: fields.byteSpan))
                if parts[0] == "~" { requests[last].tolerance = 1e-4 }
            case "within": requests[last].tolerance = try #require(Double(parts[1]))
            case "count": requests[last].count = Int(parts[1])
            case "error": requests[last].errorText = parts[1]
            default: break
            }
        }
        return requests
    }
}
