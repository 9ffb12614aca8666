// What a database declares about its indexes, and how far that is.

package import Basics
package import DocumentModel
package import Indexing

/// A change of what a database declares, decided by the commit thread: no other change comes between reading and
/// writing.
struct DeclarationChange: Sendable {
    /// Memory that the change holds, roughly.
    let byteCount: Int
    let apply: @Sendable (inout IndexDeclaration) throws(RequestError) -> Void

    static func replace(by wanted: IndexDeclaration) -> DeclarationChange {
        DeclarationChange(byteCount: (wanted.indexes.count + wanted.fieldOverrides.count) * 1_024) { $0 = wanted }
    }
}

extension DocumentStore {
    /// Makes a database's declared indexes and field overrides those of a declaration. New indexes are built in the
    /// background, and serve queries when they are complete; others are dropped. Answered when the change is durable;
    /// the building continues after it, also after a restart. `INVALID_ARGUMENT` says what is wrong with a declaration.
    package func declareIndexes(
        _ wanted: IndexDeclaration, in database: DatabaseName,
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        submit(.declare(.replace(by: wanted), in: database, completion))
    }

    /// How far a declared index or the entries of an overridden field are.
    package enum IndexProgress: String, Sendable {
        case building = "BUILDING"
        case ready = "READY"
        case dropping = "DROPPING"
    }

    /// A database's declared indexes, those that overrides ask for among them.
    package func declaredIndexes(in database: DatabaseName) -> [(shape: IndexShape, state: IndexProgress)] {
        guard let number = databases.number(of: database) else { return [] }
        // One that is complete serves queries when that is published.
        let published = engine.publishedVersion
        return indexState.current.declared.filter { $0.database == number }.map { index in
            let state: IndexProgress =
                switch index.state.phase {
                case .complete: index.state.isComplete(at: published) ? .ready : .building
                case .clearing, .off: .dropping
                case .building: .building
                }
            return (index.shape, state)
        }
    }

    /// All indexes and overrides of a database, as entries of `firestore.indexes.json` with their states: indexes over
    /// several fields first. An override is ready when the index entries that it excludes are removed and those that
    /// it asks for are there; one that was lifted is listed until then. Indexes that were made on
    /// demand are listed as overrides with the time of their last use; `*` of group `*` stands for the entries that all
    /// fields have until they are unused.
    package func indexListing(in database: DatabaseName) -> [(json: String, state: IndexProgress)] {
        guard let number = databases.number(of: database) else { return [] }
        let declared = declaredIndexes(in: database)
        let published = engine.publishedVersion
        let groups = indexState.current.groups
        var implied: [IndexShape] = []
        var overrides: [(json: String, state: IndexProgress)] = []
        if let since = groups.common.allKeptSince {
            let all = FieldOverride(collectionID: "*", field: nil, indexes: .automatic, lastUse: since)
            overrides.append((all.json, .ready))
        }
        for group in groups.all where group.database == number {
            let isReady = group.state.isComplete(at: published)
            for override in group.overrides where !override.isAdaptive || override.field != nil {
                let isSettled = isReady || group.hasSettled(override)
                let parts = declared.filter { override.shapes.contains($0.shape) && $0.state != .dropping }
                implied += parts.map(\.shape)
                overrides.append(
                    (override.json, isSettled && parts.allSatisfy { $0.state == .ready } ? .ready : .building))
            }
            for lifted in Set(group.previous.joined().map(\.ignoringUse)) where !isReady {
                let isLifted = !group.overrides.contains { $0.field == lifted.field }
                if isLifted { overrides.append((lifted.json, .dropping)) }
            }
        }
        return declared.filter { $0.state == .dropping || !implied.contains($0.shape) }.map {
            ($0.shape.json, $0.state)
        }
            + overrides
    }

    // MARK: Single indexes and fields

    /// Changes what a database declares. `change` gets the present declaration, runs on the commit thread, and must
    /// be short; what it throws is the outcome, and nothing changes then. The completion is called when the change is
    /// durable.
    package func changeIndexes(
        in database: DatabaseName, _ change: @escaping @Sendable (inout IndexDeclaration) throws(RequestError) -> Void,
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        submit(.declare(DeclarationChange(byteCount: 4_096, apply: change), in: database, completion))
    }

    /// The settings of the fields of one collection group.
    package struct FieldSettings: Sendable {
        package let collectionID: String
        /// What was declared.
        package let declared: [FieldOverride]
        /// What holds: with indexes on demand, their entries too.
        package let effective: [FieldOverride]
        /// Whether all entries are as the overrides ask.
        package let isSettled: Bool
    }

    /// The collection groups of a database whose fields have or had overrides.
    package func fieldSettings(in database: DatabaseName) -> [FieldSettings] {
        guard let number = databases.number(of: database) else { return [] }
        let published = engine.publishedVersion
        return indexState.current.groups.all.filter { $0.database == number }.map {
            FieldSettings(
                collectionID: $0.collectionID, declared: $0.declared, effective: $0.overrides,
                isSettled: $0.state.isComplete(at: published))
        }
    }

    /// The databases that have been written to.
    package var databaseNames: [DatabaseName] { databases.all.map(\.name) }
}
