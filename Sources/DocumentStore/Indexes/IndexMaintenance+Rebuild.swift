// Building all indexes again, when their entries were dropped because some were damaged.

internal import Basics
internal import DocumentModel
internal import Indexing

extension IndexMaintenance {
    /// The indexes whose states one record has.
    enum Kind: Sendable {
        case automatic, declared
    }

    /// Decides that all indexes of a kind begin again with the first document.
    /// - Returns: false if there are none.
    func decideRebuild(of kind: Kind, into record: inout ByteBuffer) -> Bool {
        switch kind {
        case .automatic:
            guard state.isKept else { return false }
            let start = IndexState(phase: .building, position: Self.documents.from)
            IndexStepRecord.write(from: [], to: [], state: start, into: &record)
        case .declared:
            let definitions = declared.all.filter(\.state.isKept).map { index in
                var index = index
                index.state = IndexState(phase: .building, position: Self.documents(of: index.database).from)
                return IndexDefinition.index(index, isDropped: false)
            }
            if definitions.isEmpty { return false }
            DefinitionRecord.write(from: [], to: [], definitions, into: &record)
        }
        return true
    }
}
