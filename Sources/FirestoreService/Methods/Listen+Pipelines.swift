// Targets that are pipelines.

internal import Basics
internal import DocumentModel
internal import FirestoreMessages
internal import Listening
internal import Pipelines

extension ListenRequest {
    /// Puts the query that a pipeline of the target stands for in its place, or why there is none.
    ///
    /// - Parameter wire: the bytes of this request.
    /// - Returns: what the documents must meet besides the query.
    mutating func resolvePipeline(of wire: RawSpan, in database: DatabaseName) -> TargetCondition? {
        guard case .add(var target) = change, case .pipeline? = target.kind else { return nil }
        var condition: TargetCondition?
        do throws(RequestError) {
            let pipeline = ListenRequest.pipeline(in: wire)
            let query = try PipelineQuery(structuredPipeline: pipeline.byteSpan, in: database)
            target.kind = .query(parent: query.parent, query.query)
            condition = query.condition.map { TargetCondition($0, identity: pipeline) }
        } catch {
            target.kind = .invalidQuery(parent: database.documentsRoot, error)
        }
        self = ListenRequest(database: self.database, .add(target))
        return condition
    }

    /// The bytes of the `StructuredPipeline` of a request; empty if it has none.
    private static func pipeline(in wire: RawSpan) -> [UInt8] {
        typealias Target = FieldNumber.Target
        var message = [UInt8](copying: wire)
        for field in [
            FieldNumber.ListenRequest.addTarget, Target.pipelineQuery, Target.PipelineQueryTarget.structuredPipeline,
        ] { message = last(field, of: message) }
        return message
    }

    /// The last message that a field of a message has; empty if there is none.
    private static func last(_ field: Int, of message: [UInt8]) -> [UInt8] {
        var found: [UInt8] = []
        var reader = WireReader(message.byteSpan)
        while let tag = try? reader.nextTag() {
            guard tag.fieldNumber == field else {
                guard (try? reader.skip(tag)) != nil else { return found }
                continue
            }
            guard let bytes = try? reader.byteArray(tag) else { return found }
            found = bytes
        }
        return found
    }
}
