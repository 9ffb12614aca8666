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
    ///
    /// Commits that were replayed since the entries were dropped have entries already. To put those again changes
    /// nothing, but the statistics of searches would count documents twice: such an index begins under another number.
    /// - Returns: false if there are none.
    func decideRebuild(of kind: Kind, into record: inout ByteBuffer) -> Bool {
        switch kind {
        case .automatic:
            guard state.isKept else { return false }
            let start = IndexState(phase: .building, position: Self.documents.from)
            IndexStepRecord.write(from: [], to: [], state: start, into: &record)
        case .declared:
            var indexes: [DeclaredIndex] = []
            var number = nextIndexNumber
            for var index in declared.definitions.all where index.state.isKept {
                let start = IndexState(phase: .building, position: Self.documents(of: index.database).from)
                if index.shape.search == nil {
                    index.state = start
                    indexes.append(index)
                } else {
                    indexes += index.replaced(under: number, start, analysis: index.analysis)
                    number += 1
                }
            }
            if indexes.isEmpty { return false }
            DefinitionRecord.write(from: [], to: [], indexes.map { .index($0, isDropped: false) }, into: &record)
        }
        return true
    }
}
