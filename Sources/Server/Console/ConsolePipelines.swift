// Texts of pipelines in the console: the messages that they stand for.

internal import Basics
internal import DocumentJSON
internal import FirestoreJSON
internal import Pipelines

/// Answers `{"text": PIPELINE}` with `{"structuredPipeline": MESSAGE}`, or with `{"problem": TEXT}` for a text with a
/// mistake (docs/pipelines.md, "The text form"). Nothing is run.
enum ConsolePipelines {
    private static let textBytesMax = 256 << 10

    /// - Throws: `INVALID_ARGUMENT` for a body that is not of the form.
    static func answer(_ body: [UInt8]) throws(RequestError) -> JSONValue {
        let text: String
        do throws(JSONObject.Mistake) {
            text = try JSONObject(body).string("text") ?? ""
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
        if text.utf8.count > textBytesMax {
            throw .invalidArgument("A pipeline has at most \(textBytesMax) bytes of text here.")
        }
        do throws(PipelineTextError) {
            return .object(["structuredPipeline": try json(try PipelineText.structuredPipeline(text))])
        } catch {
            return .object(["problem": .string("\(error)")])
        }
    }

    /// The JSON of a `StructuredPipeline`.
    private static func json(_ message: [UInt8]) throws(PipelineTextError) -> JSONValue {
        var output = ByteBuffer(capacity: 2 * message.count + 64)
        do {
            let type = Schema.shared.message("google.firestore.v1.StructuredPipeline")
            try JSONMessageWriter().append(message.byteSpan, type, to: &output)
            return try JSONValue.read(output.copyBytes())
        } catch {
            throw PipelineTextError("the pipeline is nested too deeply", column: 1)
        }
    }
}
