// Building and dropping declared indexes, and bringing entries in line with overrides of fields, in steps like those
// of the automatic indexes.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import QueryEngine
internal import Storage
internal import StoreFormat

extension IndexMaintenance {
    /// Decides what makes the indexes of a database the declared ones: new ones begin to be built, others to be
    /// cleared, and entries of single fields to be brought in line with overrides.
    ///
    /// - Parameters:
    ///   - analysis: the version of the libraries that analyse texts; empty if no index needs them.
    ///   - record: takes the record of the change.
    /// - Returns: false if nothing has to change.
    func decide(
        _ wanted: IndexDeclaration, in database: UInt32, at version: CommitVersion, analysis: String,
        into record: inout ByteBuffer
    ) -> Bool {
        var definitions: [IndexDefinition] = []
        let documents = Self.documents(of: database)
        let shapes = wanted.shapes
        let present = declared.definitions.indexes(in: database).filter { $0.state.phase != .clearing }
        let (kept, known) = (Set(shapes), Set(present.map(\.shape)))
        for var index in present where !kept.contains(index.shape) {
            index.state = IndexState(phase: .clearing, position: index.entries.from)
            definitions.append(.index(index, isDropped: false))
        }
        var number = nextIndexNumber
        for shape in shapes where !known.contains(shape) {
            let state = IndexState(phase: .building, position: documents.from)
            let index = DeclaredIndex(
                number: number, database: database, shape: shape, created: version.microseconds, state: state,
                analysis: shape.search == nil ? "" : analysis)
            definitions.append(.index(index, isDropped: false))
            number += 1
        }
        let overridden = Dictionary(grouping: wanted.fieldOverrides) { UTF8Text($0.collectionID) }
        let formerly = groups.groups(in: database).map { UTF8Text($0.collectionID) }
        for id in Set(overridden.keys).union(formerly).sorted() {
            let overrides = (overridden[id] ?? []).sorted { $0.json.compareUTF8($1.json) < 0 }
            let group = groups.group(id.string, in: database, start: documents.from)
            if group.declared == overrides { continue }
            let start = state.isKept ? documents.from : nil
            var settings = group.settings(declaring: overrides)
            let others = groups.common.adaptive
            // After a declaration for all fields is removed, the common settings apply again.
            if !settings.contains(where: { $0.covers([]) }) { settings += others }
            var changed = group.changed(to: settings, at: version, start: start)
            changed.declaredAt = version.microseconds
            definitions.append(.group(changed, isDropped: false))
        }
        if definitions.isEmpty { return false }
        DefinitionRecord.write(from: [], to: [], definitions, into: &record)
        return true
    }

    /// The number of the next index that is declared.
    var nextIndexNumber: UInt64 { declared.definitions.highestNumber + 1 }

    /// What a database declares, with the changes that are under way.
    func declaration(of database: UInt32) -> IndexDeclaration {
        states.declaration(of: database)
    }

    /// Decides the next step of the first declared index or overridden group that has one.
    /// - Returns: false if none has.
    func decideDeclaredStep(
        besides paused: Set<IndexBuild>, version: CommitVersion, into record: inout ByteBuffer
    ) throws(StorageError) -> Bool {
        if let index = declared.definitions.working.first(where: { !paused.contains(IndexBuild($0)) }) {
            let isClearing = index.state.phase == .clearing
            let from = index.state.position
            let to = isClearing ? index.entries.to : Self.documents(of: index.database).to
            let stop = try endOfStep(isClearing ? .clear : .build(index), from: from, to: to)
            var next = index
            next.state = IndexMaintenance.state(after: stop, of: index.state, version)
            let definition = IndexDefinition.index(next, isDropped: stop == nil && isClearing)
            DefinitionRecord.write(from: from, to: stop ?? to, [definition], into: &record)
            return true
        }
        guard let group = groups.firstWorking(where: { !paused.contains(IndexBuild($0)) }) else { return false }
        let (from, to) = (group.state.position, Self.documents(of: group.database).to)
        // Without automatic indexes there is nothing to bring in line.
        var visited = 0
        let stop = state.isKept ? try endOfStep(.settle(group), from: from, to: to, visited: &visited) : nil
        var next = group
        next.state = IndexMaintenance.state(after: stop, of: group.state, version)
        next.visited = stop == nil ? 0 : group.visited + visited
        DefinitionRecord.write(from: from, to: stop ?? to, [.group(next, isDropped: false)], into: &record)
        return true
    }

    private static func state(after stop: [UInt8]?, of state: IndexState, _ version: CommitVersion) -> IndexState {
        guard let stop else { return IndexState(phase: .complete, completeSince: version.microseconds) }
        return IndexState(phase: state.phase, position: stop)
    }

    /// Does what a record of definitions says: the step of the first one, if the record has a range, then all
    /// definitions.
    mutating func apply(
        _ record: consuming DefinitionRecord, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) {
        willChangeStates()
        var isFirst = true
        while let definition = try record.next() {
            if isFirst, record.to.byteCount > 0, let work = work(of: definition) {
                try perform(
                    work, from: [UInt8](copying: record.from), to: [UInt8](copying: record.to), catalogue: &catalogue,
                    into: &batch)
            }
            isFirst = false
            enter(definition, into: &batch)
        }
    }

    /// What the step does that ends with this definition; nil for nothing.
    private func work(of definition: IndexDefinition) -> Work? {
        switch definition {
        case .index(let index, _):
            let known = declared.definitions.index(index.number, in: index.database)
            return known.map { $0.state.phase == .clearing ? .clear : .build($0) }
        case .group(let group, _):
            if !state.isKept { return nil }
            return groups.group(group.idBytes.byteSpan, in: group.database).map { .settle($0) }
        }
    }

    /// Takes a definition and puts it.
    private mutating func enter(_ definition: IndexDefinition, into batch: inout MutationBatch) {
        var key = ByteBuffer(capacity: 16)
        var value = ByteBuffer(capacity: 128)
        definition.write(key: &key, value: &value)
        switch definition {
        case .index(let index, let isDropped):
            declared.set(index, isDropped ? nil : index.state)
            if isDropped {
                search.forgetDropped()
                return batch.delete(key: key.bytes)
            }
        case .group(let group, let isDropped):
            if isDropped {
                groups.remove(group)
                return batch.delete(key: key.bytes)
            }
            groups.set(group)
        }
        batch.put(key: key.bytes, value: value.bytes)
    }

    /// The keys of a database's documents; for database 0 those of all.
    static func documents(of database: UInt32) -> (from: [UInt8], to: [UInt8]) {
        if database == 0 { return documents }
        var key = ByteBuffer(capacity: 8)
        key.append(byte: KeySpace.documents.rawValue)
        key.append(bigEndian: database)
        let from = key.copyBytes()
        return (from, from + [KeyLayout.afterEverything])
    }
}

/// A declared index or an overridden group, as the log has it.
enum IndexDefinition {
    case index(DeclaredIndex, isDropped: Bool)
    case group(GroupFields, isDropped: Bool)

    /// Writes the key and the value that stand for it, of a dropped one too.
    func write(key: inout ByteBuffer, value: inout ByteBuffer) {
        switch self {
        case .index(let index, _):
            index.writeKey(into: &key)
            index.writeValue(into: &value)
        case .group(let group, _):
            group.writeKey(into: &key)
            group.writeValue(into: &value)
        }
    }

    var isDropped: Bool {
        switch self {
        case .index(_, let isDropped), .group(_, let isDropped): isDropped
        }
    }

    /// Reads what `write` wrote; nil when it is something else.
    init?(key: RawSpan, value: RawSpan, isDropped: Bool) {
        if key.byteCount > 0, key[byteAt: 0] == KeySpace.overrides.rawValue {
            guard let group = GroupFields(key: key, value: value) else { return nil }
            self = .group(group, isDropped: isDropped)
        } else {
            guard let index = DeclaredIndex(key: key, value: value) else { return nil }
            self = .index(index, isDropped: isDropped)
        }
    }
}
