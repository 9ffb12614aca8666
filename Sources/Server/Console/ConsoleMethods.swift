internal import DocumentModel
internal import FirestoreJSON
internal import FirestoreMessages

/// The administrative methods that the console has, by `SERVICE/METHOD`.
///
/// Those that write directories of the server's machine are not among them: a caller of an open server is not always a
/// user who may write there.
enum ConsoleMethods {
    struct Served: Sendable {
        let method: Method
        let input: MessageType
        let output: MessageType
        /// The fields that lead to the `ExplainMetrics` in the replies; nil for a method with one reply.
        var explainPath: [Int]? {
            switch method {
            case .runQuery: [FieldNumber.RunQueryResponse.explainMetrics]
            case .runAggregationQuery: [FieldNumber.RunAggregationQueryResponse.explainMetrics]
            case .executePipeline:
                [FieldNumber.ExecutePipelineResponse.explainStats, ExecutePipelineResponse.metricsField]
            default: nil
            }
        }
    }

    private static let methods: [Method] = [
        .adminGetServer, .adminCheckpoint, .adminApplyIndexes, .adminListIndexes, .adminApplyRules, .adminRollbackRules,
        .adminListRules, .adminGetRules, .createIndex, .listIndexes, .deleteIndex, .getField, .updateField, .listFields,
        .listDatabases, .listOperations, .cancelOperation,
        // Explained alone: the reply has the plan and no document.
        .runQuery, .runAggregationQuery, .executePipeline,
    ]

    static let byPath: [String: Served] = {
        var served: [String: Served] = [:]
        for service in DescriptorSet.files.flatMap(\.services) {
            for descriptor in service.methods {
                let path = "\(service.fullName)/\(descriptor.name)"
                guard let method = methods.first(where: { $0.paths.contains("/\(path)") }) else { continue }
                served[path] = Served(
                    method: method, input: Schema.shared.message(descriptor.inputType),
                    output: Schema.shared.message(descriptor.outputType))
            }
        }
        return served
    }()
}
