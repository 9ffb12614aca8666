// The forms in which `hearth query --pipeline` takes a pipeline.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct PipelineQueryActionTests {
    @Test
    func `A text, a pipeline in JSON, a request in JSON and files with them are the same`() throws {
        let pipeline = """
            {"pipeline": {"stages": [{"name": "collection", "args": [{"referenceValue": "/books"}]}]}}
            """
        let bytes = try PipelineQueryAction.structuredPipeline("collection(books)")
        try expectEqual(PipelineQueryAction.structuredPipeline(pipeline), bytes)
        let request = "{\"structuredPipeline\": \(pipeline)}"
        try expectEqual(PipelineQueryAction.structuredPipeline(request), bytes)
        let directory = TemporaryDirectory()
        for text in ["collection(books)", pipeline, request] {
            let file = directory.path + "/books.pipeline"
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
            try expectEqual(PipelineQueryAction.structuredPipeline(file), bytes)
        }
    }

    @Test
    func `A text with a mistake is refused with the column`() throws {
        let error = #expect(throws: UsageError.self) { try PipelineQueryAction.structuredPipeline("collection(books") }
        expect(error?.message.hasPrefix("--pipeline: ") == true && error?.message.hasSuffix("at column 17") == true)
    }
}
