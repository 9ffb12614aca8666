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
        /// An index for searches, until the store is opened with the libraries that it needs.
        case waiting = "WAITING"
        /// A build that cannot continue now. It is tried again; `indexFailure` has the cause.
        case failed = "FAILED"

        /// Whether the index is being built, though the build may not be able to continue now.
        package var isUnderWay: Bool { self == .building || self == .failed }
    }

    /// A declared index as a caller sees it.
    package struct PresentIndex: Sendable {
        package let shape: IndexShape
        package let state: IndexProgress
        /// The commit that declared it, in microseconds: one that is dropped and declared again has another one. 0 for
        /// indexes of versions that did not note it.
        package let created: UInt64
    }

    /// A database's declared indexes, those that overrides ask for among them.
    package func declaredIndexes(in database: DatabaseName) -> [PresentIndex] {
        guard let number = databases.number(of: database) else { return [] }
        return indexState.current.declared.indexes(in: number).map { present($0) }
    }

    /// The indexes of a database with a shape: several if one that is dropped was declared again.
    package func declaredIndexes(of shape: IndexShape, in database: DatabaseName) -> [PresentIndex] {
        definitions(of: shape, in: database).map { present($0) }
    }

    private func definitions(of shape: IndexShape, in database: DatabaseName) -> [DeclaredIndex] {
        guard let number = databases.number(of: database) else { return [] }
        let id = Array(shape.collectionID.utf8)
        return indexState.current.declared.indexes(of: id.byteSpan, in: number).filter { $0.shape == shape }
    }

    /// What a caller sees of an index. One that is complete serves queries when that is published.
    func present(_ index: DeclaredIndex) -> PresentIndex {
        let state: IndexProgress =
            switch index.state.phase {
            case .complete: index.state.isComplete(at: engine.publishedVersion) ? .ready : .building
            case .clearing: .dropping
            case .off: .waiting
            case .building: failedBuilds.message(of: IndexBuild(index)) == nil ? .building : .failed
            }
        return PresentIndex(shape: index.shape, state: state, created: index.created)
    }

    /// Why the build of an index cannot continue now; nil if it can, or is done.
    package func indexFailure(of shape: IndexShape, in database: DatabaseName) -> String? {
        definitions(of: shape, in: database).lazy.filter { $0.state.phase == .building }
            .compactMap { self.failedBuilds.message(of: IndexBuild($0)) }.first
    }

    /// What is missing that indexes for searches wait for; nil if none waits.
    package var missingTextLibraries: String? {
        guard indexState.current.declared.all.contains(where: { $0.state.phase == .off }),
            case .missing(let what) = configuration.textLibraries()
        else { return nil }
        return what
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
        /// The id of the group's collections, without a path.
        package let collectionID: String
        /// What was declared.
        package let declared: [FieldOverride]
        /// What holds: with indexes on demand, their entries too.
        package let effective: [FieldOverride]
        /// The commit that last changed what was declared, in microseconds; 0 if it was not noted.
        package let declaredAt: UInt64
        /// Whether all entries are as the overrides ask.
        package let isSettled: Bool
        /// The first commit whose settings entries are still to be brought in line with, in microseconds.
        package let begun: UInt64
        /// Why the entries cannot be brought in line now; nil if they can. It is tried again.
        package let failure: String?
    }

    /// The collection groups of a database whose fields have or had overrides.
    package func fieldSettings(in database: DatabaseName) -> [FieldSettings] {
        guard let number = databases.number(of: database) else { return [] }
        return indexState.current.groups.groups(in: number).map { settings(of: $0) }
    }

    /// The same of one group; nil if its fields never had overrides.
    package func fieldSettings(of collectionID: String, in database: DatabaseName) -> FieldSettings? {
        guard let number = databases.number(of: database) else { return nil }
        let id = Array(collectionID.utf8)
        return indexState.current.groups.group(id.byteSpan, in: number).map { settings(of: $0) }
    }

    private func settings(of group: GroupFields) -> FieldSettings {
        FieldSettings(
            collectionID: group.collectionID, declared: group.declared, effective: group.overrides,
            declaredAt: group.declaredAt, isSettled: group.state.isComplete(at: engine.publishedVersion),
            begun: group.begun, failure: failedBuilds.message(of: IndexBuild(group)))
    }

    /// The databases that exist: those that were created or written to, and not deleted.
    package var databaseNames: [DatabaseName] { databases.existing.map(\.name) }
}
