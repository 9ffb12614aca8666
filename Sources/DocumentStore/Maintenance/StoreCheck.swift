// Verifying a data directory: what `hearth check` runs.

internal import Basics
internal import DocumentModel
internal import EmbeddedEngine
internal import Indexing
package import Storage
internal import StorageEngines
internal import StoreFormat
internal import TextAnalysis

/// Looks at everything that is promised about a store's files and contents, and says what is wrong.
///
/// First the engine's part: format, log, order of the runs, history. Then the store is opened, which recovers its log,
/// and every key is looked at: documents are canonical, within the limits and at the key their name has; catalogue
/// counts are those of the documents; every document has its index entries, and there are no others; databases,
/// counters and sessions can be read. Index entries are compared as sets (``EntryBalance``), so the time grows as the
/// data do; if the sets differ, a second walk over the documents names those that lack entries.
package enum StoreCheck {
    /// What was found.
    package struct Report: Sendable {
        /// What is wrong, a sentence each; empty when all is well.
        package var problems: [String] = []
        /// Databases that hold or held documents.
        package var databases = 0
        /// Collections in the catalogue.
        package var collections = 0
        package var documents = 0
        /// Bytes of all documents' fields.
        package var documentBytes = 0
        /// Entries of the automatic indexes.
        package var indexEntries = 0
        /// Remembered results of commits.
        package var rememberedResults = 0
        package var isClean: Bool { problems.isEmpty }
        /// Whether everything that is wrong concerns index entries only, which can be made again from the documents.
        package var isRepairable: Bool { !isClean && !hasOtherProblems }
        fileprivate var hasOtherProblems = false

        static let problemsMax = 100

        /// - Parameter isAboutEntries: the problem concerns index entries only.
        mutating func note(_ problem: String, isAboutEntries: Bool = false) {
            if !isAboutEntries { hasOtherProblems = true }
            if problems.count < Report.problemsMax { problems.append(problem) }
        }
    }

    /// Checks a directory that no process has open. Writes nothing.
    /// - Parameter progress: gets the number of entries checked so far, on this thread.
    /// - Throws: `StorageError` when the directory cannot be looked at: it is in use, or no data directory.
    package static func run(
        _ configuration: StoreConfiguration, progress: @escaping WorkProgress.Handler = { _ in }
    ) throws -> Report {
        var report = Report()
        var keys = 0
        if configuration.volume == nil {
            let engine = try EngineCheck.run(directory: configuration.directory, progress: progress)
            report.problems = engine.problems
            report.hasOtherProblems = !engine.isClean && !engine.isRepairable
            keys = engine.entries - engine.historyEntries
        }
        // What the engine finds damaged is not opened.
        if !report.isClean { return report }
        var configuration = configuration
        configuration.engine.isReadOnly = true
        configuration.automaticIndexes = .unchanged
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        try run(store, into: &report, total: keys, progress)
        return report
    }

    /// Checks the contents of an open store, as of now.
    package static func run(_ store: DocumentStore) throws -> Report {
        var report = Report()
        try run(store, into: &report, total: 0) { _ in }
        return report
    }

    private static func run(
        _ store: DocumentStore, into report: inout Report, total: Int, _ progress: @escaping WorkProgress.Handler
    ) throws {
        var meter = WorkMeter("checking the documents", total: total, progress)
        let snapshot = try store.engine.makeReader().snapshot()
        var walk = StoreWalk(databases: Set(store.databases.all.map(\.number)))
        var cursor = try snapshot.cursor()
        while try cursor.next() {
            walk.visit(key: cursor.key, value: cursor.value, version: cursor.version, report: &report)
            try walk.noteEntries(snapshot)
            meter.step()
        }
        if !walk.areEntriesRight { try findMissing(snapshot, &walk, &report, progress) }
        walk.finish(&report)
        report.databases = store.databases.storedCount
    }

    /// Walks over the documents once more, to name those that lack entries.
    private static func findMissing(
        _ snapshot: borrowing EngineSnapshot, _ walk: inout StoreWalk, _ report: inout Report,
        _ progress: @escaping WorkProgress.Handler
    ) throws {
        var meter = WorkMeter("looking for missing index entries", total: report.documents, progress)
        let lower = [KeySpace.documents.rawValue]
        let upper = [KeySpace.documents.rawValue + 1]
        var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
        while try cursor.next() {
            walk.deriveEntries(key: cursor.key, value: cursor.value, version: cursor.version)
            try walk.findMissing(of: cursor.key, snapshot, &report)
            meter.step()
        }
    }
}

/// What is gathered on the walk over all keys. Keys of the catalogue come before those of the documents.
private struct StoreWalk: ~Copyable {
    let databases: Set<UInt32>

    /// Counts by the catalogue: collection prefixes without the space byte, to positions in `counts`.
    private var catalogue = ByteTable()
    private var counts: [(catalogued: Int, found: Int, number: UInt64, path: [UInt8])] = []
    private var numbers: Set<UInt64> = []
    /// Keys of the lists of groups.
    private var listed = ByteTable()
    private var listsGroups = false
    /// Collections of the catalogue that are in the lists.
    private var listedCount = 0
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
    private var path = ByteBuffer(capacity: 256)
    private var indexState = IndexState.off
    private var derivation = IndexDerivation(KnownFieldNumbers())
    /// Entries of the document visited last.
    private var entries = EntryList()
    private var entriesDue = 0
    private var balance = EntryBalance()
    private var declared = DeclaredIndexes()
    private var indexes: [UInt64: DeclaredIndex] = [:]
    private var groups = OverriddenGroups()
    private var search = SearchDerivation { .system }
    /// Statistics that the documents require, by their keys; those that were found are removed.
    private var searchCounts: [[UInt8]: SearchCounts] = [:]

    init(databases: Set<UInt32>) {
        self.databases = databases
    }

    mutating func visit(key: RawSpan, value: RawSpan, version: CommitVersion, report: inout StoreCheck.Report) {
        guard key.byteCount > 1, let space = KeySpace(rawValue: key[byteAt: 0]) else {
            return report.note("a key is in an unknown key space: \(StoreWalk.hex(key))")
        }
        switch space {
        case .meta: visitMeta(key, value, &report)
        case .catalogue: visitCatalogue(key, value, &report)
        case .sessions:
            report.rememberedResults += 1
            visitSession(key, value, &report)
        case .fields: visitField(key, value, &report)
        case .documents: visitDocument(key, value, version, &report)
        case .definitions:
            guard let index = DeclaredIndex(key: key, value: value) else {
                return report.note("the definition of an index is damaged: \(StoreWalk.hex(key))")
            }
            declared.set(index, index.state)
            indexes[index.number] = index
        case .overrides:
            guard let group = GroupFields(key: key, value: value) else {
                return report.note("the overridden fields of a collection group are damaged: \(StoreWalk.hex(key))")
            }
            groups.set(group)
        case .values, .elements: if indexState.phase == .complete { countEntry(key, &report) }
        case .declared: visitDeclared(key, &report)
        case .searches: visitSearches(key, value, &report)
        }
    }

    /// Counts an entry of an index for searches, and compares statistics with those of the documents, which come
    /// before.
    private mutating func visitSearches(_ key: RawSpan, _ value: RawSpan, _ report: inout StoreCheck.Report) {
        guard let index = declaredIndex(of: key, &report), isChecked(index) else { return }
        guard let search = index.shape.search, SearchKey.isStatistics(key) else { return countEntry(key, &report) }
        let expected = searchCounts.removeValue(forKey: [UInt8](copying: key))
        if SearchCounts(value, fields: search.texts.count) != expected ?? SearchCounts(fields: search.texts.count) {
            report.note(
                "the statistics of an index for searches are not those of the documents: \(StoreWalk.hex(key))",
                isAboutEntries: true)
        }
    }

    /// Whether the entries of an index have to be those of the documents.
    private func isChecked(_ index: DeclaredIndex) -> Bool {
        index.state.phase == .complete
            && (index.shape.search == nil || search.libraries.version == index.analysis)
    }

    /// Counts an entry of a declared index; those of one being made or dropped may be any number.
    private mutating func visitDeclared(_ key: RawSpan, _ report: inout StoreCheck.Report) {
        if declaredIndex(of: key, &report)?.state.phase == .complete { countEntry(key, &report) }
    }

    /// The index that an entry belongs to.
    private func declaredIndex(of key: RawSpan, _ report: inout StoreCheck.Report) -> DeclaredIndex? {
        var reader = WireReader(key)
        reader.position = 1
        let number = (try? reader.varint()) ?? 0
        let index = indexes[number]
        if index == nil {
            report.note("an index entry belongs to no declared index: \(StoreWalk.hex(key))", isAboutEntries: true)
        }
        return index
    }

    private mutating func countEntry(_ key: RawSpan, _ report: inout StoreCheck.Report) {
        report.indexEntries += 1
        balance.find(key)
    }

    /// Notes the index entries of the document visited last. Those of fields whose overrides are being applied may be
    /// there or not, and are noted if they are.
    mutating func noteEntries(_ snapshot: borrowing EngineSnapshot) throws(StorageError) {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        for position in 0..<entries.keys.count {
            key.reset()
            entries.keys.appendKey(at: position, to: &key)
            let isRequired = entries.keys.value(at: position) == EntryList.required
            if !isRequired {
                let isThere = try snapshot.value(forKey: key.bytes) != nil
                if !isThere { continue }
            }
            entriesDue += 1
            balance.require(key.bytes)
        }
        entries.keys.removeAll()
    }

    /// Whether the stored entries are those that were noted.
    var areEntriesRight: Bool { balance.isBalanced }

    /// Looks up the entries of a document that may be missing, after all have been compared.
    mutating func findMissing(
        of document: RawSpan, _ snapshot: borrowing EngineSnapshot, _ report: inout StoreCheck.Report
    ) throws(StorageError) {
        for position in 0..<entries.keys.count where entries.keys.value(at: position) == EntryList.required {
            key.reset()
            entries.keys.appendKey(at: position, to: &key)
            if balance.isBalanced(around: key.bytes) { continue }
            let isThere = try snapshot.value(forKey: key.bytes) != nil
            if isThere { continue }
            report.note(
                "a document lacks an index entry: \(StoreWalk.hex(document)) lacks \(StoreWalk.hex(key.bytes))",
                isAboutEntries: true)
        }
        entries.keys.removeAll()
    }

    /// Derives the index entries of a document that is not damaged, and whose collection is in the catalogue.
    mutating func deriveEntries(key: RawSpan, value: RawSpan, version: CommitVersion) {
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: version.microseconds),
            let position = catalogue.value(of: key.extracting(1..<parts.collectionByteCount))
        else { return }
        deriveEntries(key, parts, number: counts[position].number, record)
    }

    /// Derives the index entries that a document should have.
    private mutating func deriveEntries(
        _ key: RawSpan, _ parts: DocumentKey.Parts, number: UInt64, _ record: borrowing StoredRecordView
    ) {
        var path = ByteBuffer(capacity: 256)
        guard KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path) else { return }
        let document = IndexedDocument(
            database: DocumentKey.database(of: key), collection: number, key: key, parts, path: path.bytes)
        let nothing = record.fields.extracting(0..<0)
        // Its numbers come from the walk: nothing is read that could fail.
        if indexState.phase == .complete {
            if let group = groups.settings(ofDocument: path.bytes, in: document.database) {
                let certain = group.state.hasWork ? FieldRules.Purpose.certain : .write
                try? derivation.derive(
                    document, from: nothing, to: record.fields, by: group.rules, certain, into: &entries)
                if group.state.hasWork {
                    entries.mark = EntryList.optional
                    try? derivation.derive(
                        document, from: nothing, to: record.fields, by: group.rules, .uncertain, into: &entries)
                    entries.mark = EntryList.required
                }
            } else {
                try? derivation.derive(document, from: nothing, to: record.fields, into: &entries)
            }
        }
        let id = KeyedDocument.collectionID(ofDocument: path.bytes)
        for index in declared.definitions.indexes(of: id, in: document.database) where isChecked(index) {
            guard index.shape.search != nil else {
                declared.derive(index, document, from: nothing, to: record.fields, into: &entries)
                continue
            }
            guard let counts = search.entries(index, document, from: nothing, to: record.fields, into: &entries)
            else { continue }
            let key = search.statisticsKey(index, document)
            searchCounts[key, default: SearchCounts(fields: counts.fields.count)].add(counts)
        }
    }

    private mutating func visitField(_ key: RawSpan, _ value: RawSpan, _ report: inout StoreCheck.Report) {
        guard key.byteCount > KeyLayout.pathOffset, let number = try? FieldNumbers.read(value) else {
            return report.note("the number of a field is damaged: \(StoreWalk.hex(key))")
        }
        derivation.fields.add(key, number: number)
    }

    private mutating func visitMeta(_ key: RawSpan, _ value: RawSpan, _ report: inout StoreCheck.Report) {
        switch key[byteAt: 1] {
        case UInt8(ascii: "d"):
            if DatabaseDirectory.read(value: value) == nil { report.note("a database's entry is damaged") }
        case UInt8(ascii: "s"):
            if DatabaseDirectory.number(ofSettingsKey: key) == nil || DatabaseSettings(value) == nil {
                report.note("the settings of a database are damaged")
            }
        case UInt8(ascii: "o"):
            if DatabaseDirectory.number(ofSettingsKey: key) == nil || DatabaseTenure(value) == nil {
                report.note("the right to a database is damaged")
            }
        case UInt8(ascii: "n"), UInt8(ascii: "f"):
            var reader = WireReader(value)
            if (try? reader.varint()) == nil { report.note("a counter of collections or fields is damaged") }
        case UInt8(ascii: "g"):
            // Two bytes are the key that says that groups are listed.
            if key.byteCount == GroupKey.marker.count { listsGroups = true } else { listed.set(key, to: 0) }
        case UInt8(ascii: "i"):
            if let state = IndexState(value) {
                indexState = state
            } else {
                report.note("the state of the indexes is damaged")
            }
        default: report.note("a meta key is unknown: \(StoreWalk.hex(key))")
        }
    }

    private func visitSession(_ key: RawSpan, _ value: RawSpan, _ report: inout StoreCheck.Report) {
        var reader = WireReader(value)
        guard SessionTable.SlotName(key: key) != nil, (try? reader.varint()) != nil,
            EncodedResult.read(value.extracting(reader.position..<value.byteCount)) != nil
        else { return report.note("a remembered result is damaged: \(StoreWalk.hex(key))") }
    }

    private mutating func visitCatalogue(_ key: RawSpan, _ value: RawSpan, _ report: inout StoreCheck.Report) {
        report.collections += 1
        guard key.byteCount > KeyLayout.pathOffset, let entry = CatalogueEntry(value) else {
            return report.note("a catalogue entry is damaged: \(StoreWalk.hex(key))")
        }
        if !numbers.insert(entry.number).inserted || entry.number == 0 {
            report.note("collection number \(entry.number) is not unique")
        }
        if !databases.contains(DocumentKey.database(of: key)) {
            report.note("a catalogue entry belongs to an unknown database: \(StoreWalk.hex(key))")
        }
        if listsGroups { visitListed(key, entry, &report) }
        catalogue.set(key.extracting(1..<key.byteCount), to: counts.count)
        counts.append((catalogued: entry.count, found: 0, number: entry.number, path: [UInt8](copying: key)))
    }

    /// Looks for a collection of the catalogue in the list of its group, which comes before.
    private mutating func visitListed(
        _ key: RawSpan, _ entry: borrowing CatalogueEntry, _ report: inout StoreCheck.Report
    ) {
        let place = GroupKey.key(of: key, path: entry.path)
        if listed.value(of: place.byteSpan) != nil {
            listedCount += 1
        } else {
            report.note("a collection is missing in the list of its group: \(StoreWalk.hex(key))")
        }
    }

    private mutating func visitDocument(
        _ key: RawSpan, _ value: RawSpan, _ version: CommitVersion, _ report: inout StoreCheck.Report
    ) {
        report.documents += 1
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: version.microseconds)
        else { return report.note("a document's entry is damaged: \(StoreWalk.hex(key))") }
        report.documentBytes += record.fields.byteCount
        let collection = key.extracting(1..<parts.collectionByteCount)
        if let position = catalogue.value(of: collection) {
            counts[position].found += 1
            deriveEntries(key, parts, number: counts[position].number, record)
        } else {
            report.note("a document's collection is not in the catalogue: \(StoreWalk.hex(key))")
        }
        if record.createMicroseconds > record.updateMicroseconds {
            report.note("the update time of a document is before its create time: \(StoreWalk.hex(key))")
        }
        if let problem = StoreWalk.problem(
            key: key, parts: parts, record: record, path: &path, expected: &self.key, databases: databases)
        {
            report.note(problem)
        }
    }

    /// What is wrong with a document's name or fields.
    private static func problem(
        key: RawSpan, parts: DocumentKey.Parts, record: borrowing StoredRecordView, path: inout ByteBuffer,
        expected: inout ByteBuffer, databases: Set<UInt32>
    ) -> String? {
        let database = DocumentKey.database(of: key)
        if !databases.contains(database) { return "a document belongs to an unknown database: \(hex(key))" }
        if parts.isCut != (record.path.byteCount > 0) {
            return "a document has a missing or superfluous path: \(hex(key))"
        }
        guard KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path) else {
            return "the path of a document cannot be read: \(hex(key))"
        }
        let name = String(repairingUTF8: path.bytes)
        DocumentKey.write(path.bytes, database: database, into: &expected)
        if !expected.bytes.equalsBytes(key) { return "document \(name) is stored at a wrong key: \(hex(key))" }
        do throws(InvalidDocument) {
            if try !DocumentValidator.validate(fields: record.fields).isCanonical {
                return "document \(name) is not canonical"
            }
            return nil
        } catch {
            return "document \(name) is not valid: \(error.message)"
        }
    }

    func finish(_ report: inout StoreCheck.Report) {
        if listed.count != listedCount {
            report.note(
                "the lists of groups have \(listed.count) collections, \(listedCount) of which are in the catalogue")
        }
        if entriesDue != report.indexEntries {
            report.note(
                "there are \(report.indexEntries) index entries, but the documents require \(entriesDue)",
                isAboutEntries: true)
        }
        for key in searchCounts.keys {
            report.note(
                "the statistics of an index for searches are missing: \(StoreWalk.hex(key.byteSpan))",
                isAboutEntries: true)
        }
        for count in counts where count.catalogued != count.found {
            report.note(
                "the catalogue counts \(count.catalogued) documents where there are \(count.found): "
                    + StoreWalk.hex(count.path.byteSpan))
        }
    }

    /// The first bytes of a key as digits, for messages.
    private static func hex(_ key: RawSpan) -> String {
        Hexadecimal.text(key.extracting(first: min(key.byteCount, 300)))
    }
}

/// The entries of one document, each once.
private struct EntryList: IndexEntrySink, ~Copyable {
    static let required = 0
    static let optional = 1

    var keys = ByteTable()
    /// Stands with the keys put.
    var mark = EntryList.required

    mutating func put(entry key: RawSpan) { keys.set(key, to: mark) }
    mutating func remove(entry key: RawSpan) {}
    mutating func put(entry key: RawSpan, value: RawSpan) { keys.set(key, to: mark) }
}

/// The numbers of fields that were found in the store; a field without one has 0, which no entry has.
private struct KnownFieldNumbers: FieldNumbering, ~Copyable {
    private var numbers = ByteTable()
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)

    mutating func add(_ key: RawSpan, number: UInt64) { numbers.set(key, to: Int(truncatingIfNeeded: number)) }

    mutating func number(of name: RawSpan, under parent: UInt64, database: UInt32) -> UInt64 {
        FieldNumbers.writeKey(name, under: parent, database: database, into: &key)
        return UInt64(numbers.value(of: key.bytes) ?? 0)
    }
}
