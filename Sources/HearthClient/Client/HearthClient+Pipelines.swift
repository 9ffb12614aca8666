// Pipelines.

package import Basics
import DocumentModel
package import FirestoreMessages

/// The messages of a pipeline as they arrive. Reading slowly slows the server down; memory stays bounded.
///
/// One iteration only. Letting go of the stream cancels the pipeline.
package struct PipelineStream: Sendable {
    fileprivate let messages: MessageStream

    /// The next message, or nil at the end.
    nonisolated(nonsending) package func next() async throws(RequestError) -> ExecutePipelineResponse? {
        guard let message = try await messages.next() else { return nil }
        return try HearthClient.decode { try ExecutePipelineResponse(wire: message.span.bytes) }.get()
    }
}

extension HearthClient {
    /// Runs a pipeline. One that writes is not sent again if the reply is lost: it may have been applied.
    package func pipelineStream(
        _ request: ExecutePipelineRequest, options: CallOptions = .standard
    ) -> PipelineStream {
        let kind: CallKind = request.mayWrite ? .once : .repeatable
        return PipelineStream(messages: stream(.executePipeline, request.encodedBytes(), kind: kind, options: options))
    }
}

extension ExecutePipelineRequest {
    /// Whether a stage changes documents, or the pipeline cannot be read.
    fileprivate var mayWrite: Bool {
        (try? Self.stageNames(pipeline ?? []).contains { $0 == "update" || $0 == "delete" }) ?? true
    }

    private static func stageNames(_ structuredPipeline: [UInt8]) throws(InvalidDocument) -> [String] {
        var names: [String] = []
        try forEach(FieldNumber.StructuredPipeline.pipeline, in: structuredPipeline.byteSpan) {
            (pipeline) throws(InvalidDocument) in
            try forEach(FieldNumber.Pipeline.stages, in: pipeline) { (stage) throws(InvalidDocument) in
                try forEach(FieldNumber.Pipeline.Stage.name, in: stage) { names.append(String(repairingUTF8: $0)) }
            }
        }
        return names
    }

    /// Calls `body` with each value of a field of a message.
    private static func forEach(
        _ field: Int, in message: RawSpan, _ body: (RawSpan) throws(InvalidDocument) -> Void
    ) throws(InvalidDocument) {
        var reader = WireReader(message)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == field { try body(try reader.span(tag)) } else { try reader.skip(tag) }
        }
    }
}
