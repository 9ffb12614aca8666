// Indexes for searches whose entries were made by other versions of the libraries that analyse texts.
//
//     version of the index            libraries      what happens
//     that of the libraries           there          its entries are kept
//     another                         there          it is dropped, and built again under another number
//     any                             missing        it is dropped, and waits under another number
//
// This is decided before the first commit after the store was opened. So no document is written while an index with the
// right version is not kept. At recovery commits are applied as they were decided: an index with another version than
// that of the libraries is left alone, and what is missing then does not matter, since the index is made again.

internal import Basics
internal import Indexing
internal import Storage

extension IndexMaintenance {
    /// Whether commits keep the entries of all indexes: a follower leaves those alone that other libraries make.
    var derivesAll: Bool {
        if declared.definitions.searches.isEmpty { return true }
        let version = search.libraries.version
        return declared.definitions.searches.allSatisfy { !$0.state.isKept || $0.analysis == version }
    }

    /// What brings the indexes for searches in line with the libraries.
    func searchRenewal() -> [DeclaredIndex] {
        if declared.definitions.searches.isEmpty { return [] }
        let version = search.libraries.version
        var number = nextIndexNumber
        var changes: [DeclaredIndex] = []
        for index in declared.definitions.searches where index.state.phase != .clearing {
            if let version, index.analysis == version { continue }
            if version == nil, index.state.phase == .off { continue }
            let start = IndexState(phase: .building, position: Self.documents(of: index.database).from)
            changes += index.replaced(under: number, version == nil ? .off : start, analysis: version ?? "")
            number += 1
        }
        return changes
    }
}

extension DeclaredIndex {
    /// The index under another number, in a state, and the present one, which is dropped.
    func replaced(under number: UInt64, _ state: IndexState, analysis: String) -> [DeclaredIndex] {
        var dropped = self
        dropped.state = IndexState(phase: .clearing, position: entries.from)
        let successor = DeclaredIndex(
            number: number, database: database, shape: shape, created: created, state: state, analysis: analysis)
        return [successor, dropped]
    }
}
