// Pipelines.

package import Basics
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
    /// Runs a pipeline.
    package func pipelineStream(
        _ request: ExecutePipelineRequest, options: CallOptions = .standard
    ) -> PipelineStream {
        PipelineStream(messages: stream(.executePipeline, request.encodedBytes(), options: options))
    }
}
