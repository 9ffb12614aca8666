// Aggregations that need nothing but plain fields of documents.

internal import DocumentModel

/// What the stage `aggregate` takes from a document.
struct FieldAggregation {
    /// The fields of the accumulators, in the order of their names in the request; nil for one that counts rows.
    private(set) var fields: [FieldPath?] = []
    private(set) var groups: [NamedField] = []

    /// Whether only the number of documents is asked for.
    var isCount: Bool { groups.isEmpty && fields.allSatisfy { $0 == nil } }

    /// Nil for a stage with other expressions than fields.
    init?(_ stage: PipelineStage) {
        guard stage.name == "aggregate", stage.options.isEmpty, (1...2).contains(stage.arguments.count),
            let accumulators = try? stage.fields(0)
        else { return nil }
        for accumulator in accumulators {
            guard case .call(let call) = accumulator.value, call.options.isEmpty, call.arguments.count <= 1 else {
                return nil
            }
            guard let argument = call.arguments.first else {
                fields.append(nil)
                continue
            }
            guard case .field(let path) = argument, !path.isDocumentName else { return nil }
            fields.append(path)
        }
        guard stage.arguments.count == 2 else { return }
        guard let named = try? stage.fields(1) else { return nil }
        for group in named {
            guard case .field(let path) = group.value, !path.isDocumentName else { return nil }
            groups.append(NamedField(name: group.name, field: path))
        }
    }
}
