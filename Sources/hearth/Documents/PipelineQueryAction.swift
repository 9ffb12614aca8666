// `hearth query --pipeline`: runs a pipeline and prints its results.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreJSON
import FirestoreMessages
import HearthClient
import Pipelines

enum PipelineQueryAction {
    /// Runs a pipeline.
    ///
    /// - Parameters:
    ///   - source: a text, JSON, or the name of a file with one of them.
    ///   - mode: what is done with it; the results are printed if it is executed alone.
    ///   - isJSON: prints a plan as an object.
    static func run(
        _ client: HearthClient, _ source: String, in database: DatabaseName, _ mode: PipelineExplanation.Mode,
        isJSON: Bool, _ printer: inout DocumentPrinter
    ) async throws {
        var pipeline = try structuredPipeline(source)
        if mode != .execute { pipeline += PipelineText.explainOption(mode) }
        let request = ExecutePipelineRequest(database: database.description, pipeline: pipeline)
        let responses = client.pipelineStream(request)
        while let response = try await responses.next() {
            if let metrics = response.explainMetrics {
                try PlanText.print(metrics, isJSON: isJSON)
            } else if let text = response.explainText {
                try StandardOutput.print(isJSON ? JSONValue.object(["text": .string(text)]).json : text)
            }
            if mode != .execute { continue }
            for result in response.results {
                if result.name.isEmpty {
                    var value = ByteBuffer()
                    Value.map(try MapValue(documentBytes: result.fields.span.bytes)).encode(into: &value)
                    try printer.print(value: value.copyBytes(), after: "")
                } else {
                    try printer.print(name: result.name, fields: result.fields)
                }
            }
        }
    }

    /// The bytes of a `StructuredPipeline`.
    static func structuredPipeline(_ source: String) throws -> [UInt8] {
        var text = source
        if !source.contains("("), !source.contains("{") {
            text = String(decoding: try InputFile.contents(of: source), as: UTF8.self)
        }
        guard text.first(where: { !$0.isWhitespace }) == "{" else {
            do {
                return try PipelineText.structuredPipeline(text)
            } catch {
                throw UsageError(message: "--pipeline: \(error)")
            }
        }
        return try json(text)
    }

    /// The pipeline of the JSON of a REST request, or of its `structuredPipeline`.
    private static func json(_ text: String) throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        let isRequest = text.contains("\"structuredPipeline\"")
        let type = isRequest ? "ExecutePipelineRequest" : "StructuredPipeline"
        do {
            try text.withUTF8Span { (bytes) throws(RequestError) in
                try reader.append(bytes, Schema.shared.message("google.firestore.v1.\(type)"), to: &output)
            }
        } catch {
            throw UsageError(message: "--pipeline: \(error.message)")
        }
        if !isRequest { return output.copyBytes() }
        guard let pipeline = try ExecutePipelineRequest(wire: output.bytes).pipeline else {
            throw UsageError(message: "--pipeline: the request has no pipeline")
        }
        return pipeline
    }
}
