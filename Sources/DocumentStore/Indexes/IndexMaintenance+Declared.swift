// Making and dropping declared indexes, and bringing entries in line with overrides of fields, step by step like the making of
// the automatic indexes.

internal import DocumentModel
internal import KeyValueStore

extension IndexMaintenance {
    /// What a commit about declared indexes or overrides does: keys gone over, and definitions as they are afterwards.
    struct DeclaredStep {
        var from: [UInt8] = []
        var to: [UInt8] = []
        var definitions: [IndexDefinition] = []
    }

    private static let entriesPerStep = 4_096
    private static let documentsPerStep = 512
    private static let bytesPerStep = 1 << 20

    /// What makes a database's indexes those that are wanted: new ones begin to be built, others to be cleared, and entries of
    /// single fields to be brought in line.
    func change(to wanted: IndexDeclaration, in database: UInt32, at version: CommitVersion) -> DeclaredStep {
        var step = DeclaredStep()
        let documents = Self.documents(of: database)
        let shapes = wanted.shapes
        let present = declared.all.filter { $0.database == database && $0.state.phase != .clearing }
        for var index in present where !shapes.contains(index.shape) {
            index.state = IndexState(phase: .clearing, position: index.entries.from)
            step.definitions.append(.index(index, isDropped: false))
        }
        var number = (declared.all.map(\.number).max() ?? 0) + 1
        for shape in shapes where !present.contains(where: { $0.shape == shape }) {
            let state = IndexState(phase: .building, position: documents.from)
            step.definitions.append(
                .index(DeclaredIndex(number: number, database: database, shape: shape, state: state), isDropped: false))
            number += 1
        }
        let overridden = Dictionary(grouping: wanted.fieldOverrides, by: \.collectionID)
        let known = groups.all.filter { $0.database == database }
        for id in Set(overridden.keys).union(known.map(\.collectionID)).sorted() {
            let overrides = (overridden[id] ?? []).sorted { $0.json < $1.json }
            let group =
                known.first { $0.collectionID == id }
                ?? GroupFields(
                    database: database, collectionID: id, overrides: [], previous: [], begun: 0,
                    state: IndexState(phase: .complete))
            if group.overrides == overrides { continue }
            let start = state.isKept ? documents.from : nil
            step.definitions.append(.group(group.changed(to: overrides, at: version, start: start)))
        }
        return step
    }

    /// The next step of the first declared index or overridden group that has one.
    mutating func nextDeclaredStep(
        version: CommitVersion, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> DeclaredStep? {
        if let index = declared.all.first(where: { $0.state.hasWork }) {
            let isClearing = index.state.phase == .clearing
            let (from, to) = (index.state.position, isClearing ? index.entries.to : Self.documents(of: index.database).to)
            let stop = try go(
                isClearing ? .clear : .build(index), in: index.database, from: from, to: to, isBounded: true,
                catalogue: &catalogue, into: &batch)
            var next = index
            next.state = IndexMaintenance.state(after: stop, of: index.state, version)
            return DeclaredStep(
                from: from, to: stop ?? to, definitions: [.index(next, isDropped: stop == nil && isClearing)])
        }
        guard let group = groups.all.first(where: { $0.state.hasWork }) else { return nil }
        let (from, to) = (group.state.position, Self.documents(of: group.database).to)
        // Without automatic indexes there is nothing to bring in line.
        let stop =
            state.isKept
            ? try go(
                .settle(group), in: group.database, from: from, to: to, isBounded: true, catalogue: &catalogue,
                into: &batch) : nil
        var next = group
        next.state = IndexMaintenance.state(after: stop, of: group.state, version)
        return DeclaredStep(from: from, to: stop ?? to, definitions: [.group(next)])
    }

    private static func state(after stop: [UInt8]?, of state: IndexState, _ version: CommitVersion) -> IndexState {
        guard let stop else { return IndexState(phase: .complete, completeSince: version.microseconds) }
        return IndexState(phase: state.phase, position: stop)
    }

    /// Does again what a commit about declared indexes or overrides did; recovery.
    mutating func repeatDefinitions(
        _ record: consuming DefinitionRecord, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws {
        var isFirst = true
        while let definition = try record.next() {
            if isFirst, record.to.byteCount > 0, let (work, database) = work(of: definition) {
                _ = try go(
                    work, in: database, from: [UInt8](copying: record.from), to: [UInt8](copying: record.to),
                    isBounded: false, catalogue: &catalogue, into: &batch)
            }
            isFirst = false
            enter([definition], into: &batch)
        }
    }

    /// What a step was to do that left this definition; nil for nothing.
    private func work(of definition: IndexDefinition) -> (Work, database: UInt32)? {
        switch definition {
        case .index(let index, _):
            let known = declared.all.first { $0.number == index.number && $0.database == index.database }
            return known.map { ($0.state.phase == .clearing ? .clear : .build($0), $0.database) }
        case .group(let group):
            if !state.isKept { return nil }
            return groups.group(group.idBytes.byteSpan, in: group.database).map { (.settle($0), $0.database) }
        }
    }

    /// Takes definitions and puts them.
    mutating func enter(_ definitions: [IndexDefinition], into batch: inout MutationBatch) {
        var key = WireWriter(capacity: 16)
        var value = WireWriter(capacity: 128)
        for definition in definitions {
            definition.write(key: &key, value: &value)
            switch definition {
            case .index(let index, let isDropped):
                declared.set(index, isDropped ? nil : index.state)
                if isDropped {
                    batch.delete(key: key.bytes)
                    continue
                }
            case .group(let group): groups.set(group)
            }
            batch.put(key: key.bytes, value: value.bytes)
        }
    }

    /// The keys of a database's documents.
    private static func documents(of database: UInt32) -> (from: [UInt8], to: [UInt8]) {
        var key = WireWriter(capacity: 8)
        key.append(byte: KeySpace.documents.rawValue)
        key.append(bigEndian: database)
        let from = key.copyBytes()
        return (from, from + [KeyLayout.afterEverything])
    }

    /// What a step does with the keys that it goes over.
    private enum Work {
        /// They are entries, and go.
        case clear
        /// They are documents: those of the index's collections get their entries.
        case build(DeclaredIndex)
        /// They are documents: entries of those of the group are brought in line with its rules.
        case settle(GroupFields)

        var collectionID: [UInt8] {
            switch self {
            case .clear: []
            case .build(let index): Array(index.shape.collectionID.utf8)
            case .settle(let group): group.idBytes
            }
        }
    }

    /// Goes over keys.
    /// - Returns: the first key that was not looked at; nil when all were.
    private mutating func go(
        _ work: Work, in database: UInt32, from: [UInt8], to: [UInt8], isBounded: Bool, catalogue: inout Catalogue,
        into batch: inout MutationBatch
    ) throws(StorageError) -> [UInt8]? {
        var isClearing = false
        if case .clear = work { isClearing = true }
        var left = isBounded ? (isClearing ? Self.entriesPerStep : Self.documentsPerStep) : .max
        let latest = latest
        let wanted = work.collectionID
        var path = WireWriter(capacity: 256)
        var next = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
        var cursor = try latest.cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() {
            if left == 0 || (isBounded && batch.byteCount > Self.bytesPerStep) { return [UInt8](copying: cursor.key) }
            left -= 1
            if isClearing {
                batch.delete(key: cursor.key)
                continue
            }
            let isOther = try go(
                work, over: cursor.key, cursor.value, database, wanted: wanted, &path, &next, catalogue: &catalogue,
                into: &batch)
            if isOther { try cursor.seek(to: next.bytes) }
        }
        return nil
    }

    /// Does the work on one document if it is of the wanted collections.
    /// - Returns: whether it is not, and the rest of its collection can be leapt over: `next` is behind that.
    private mutating func go(
        _ work: Work, over key: RawSpan, _ value: RawSpan, _ database: UInt32, wanted: [UInt8],
        _ path: inout WireWriter, _ next: inout WireWriter, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> Bool {
        guard let parts = DocumentKey.parts(of: key), let record = StoredRecordView(value, versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        guard KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan) else {
            if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) { return false }
            next.reset()
            next.append(key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            return true
        }
        let collection = try catalogue.adjust(
            key.extracting(0..<parts.collectionByteCount), path: path.bytes, by: 0, latest: latest)
        let document = IndexedDocument(database: database, collection: collection, key: key, parts, path: path.bytes)
        let nothing = record.fields.extracting(0..<0)
        switch work {
        case .clear: break
        case .build(let index): declared.derive(index, document, from: nothing, to: record.fields, into: &batch)
        case .settle(let group):
            try derivation.derive(document, from: record.fields, to: nothing, by: group.rules, .leftovers, into: &batch)
            try derivation.derive(document, from: nothing, to: record.fields, by: group.rules, .newcomers, into: &batch)
        }
        return false
    }
}

/// A declared index or an overridden group, as the log tells of it.
enum IndexDefinition {
    case index(DeclaredIndex, isDropped: Bool)
    case group(GroupFields)

    /// Writes the key and the value that stand for it, of a dropped one too.
    func write(key: inout WireWriter, value: inout WireWriter) {
        switch self {
        case .index(let index, _):
            index.writeKey(into: &key)
            index.writeValue(into: &value)
        case .group(let group):
            group.writeKey(into: &key)
            group.writeValue(into: &value)
        }
    }

    var isDropped: Bool {
        if case .index(_, let isDropped) = self { isDropped } else { false }
    }

    /// Reads what `write` wrote; nil when it is something else.
    init?(key: RawSpan, value: RawSpan, isDropped: Bool) {
        if key.byteCount > 0, key[byteAt: 0] == KeySpace.overrides.rawValue {
            guard let group = GroupFields(key: key, value: value) else { return nil }
            self = .group(group)
        } else {
            guard let index = DeclaredIndex(key: key, value: value) else { return nil }
            self = .index(index, isDropped: isDropped)
        }
    }
}
