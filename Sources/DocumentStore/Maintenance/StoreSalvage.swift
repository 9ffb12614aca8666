// What is readable of a damaged directory, as a new one: what `hearth salvage` runs.
//
//     damaged directory ──► SalvageTable: the newest intact state of each key ──► by version ──► new directory
//
// Documents keep their create and update times. Collections are counted and numbered again, and indexes are built when
// the new directory is opened. Former versions and the results of commits are not taken. A database that was deleted,
// or that another store has, is not taken, whatever is left of its documents.

internal import Basics
internal import DocumentModel
internal import EmbeddedEngine
internal import FileSystem
internal import Indexing
package import Storage
internal import StorageEngines
internal import StoreFormat

/// Makes a directory of what is intact of another.
package enum StoreSalvage {
    /// What was found.
    package struct Report: Sendable {
        /// Documents of the new directory.
        package var documents = 0
        /// What could not be read, a sentence each; stops growing at `lossesMax`.
        package var losses: [String] = []
        /// How many there are, with those beyond.
        package var lossCount = 0

        static let lossesMax = 10_000

        mutating func note(_ loss: String) {
            lossCount += 1
            if losses.count < Report.lossesMax { losses.append(loss) }
        }
    }

    /// - Parameters:
    ///   - directory: the damaged one, which no process has open. It is not changed.
    ///   - target: the new one. It must not exist. Work is done in `target.salvaging`, which a failure leaves nothing
    ///     of. What a killed process has left there is removed.
    ///   - selection: the documents that are wanted.
    ///   - progress: gets the number of entries that were read, and then of documents that were written; called on
    ///     this thread.
    ///   - complete: adds files to the new directory, before it gets its name.
    /// - Throws: `StorageError`, for example `locked` if a process uses the directory or makes the same target,
    ///   `refused` if `target.salvaging` has other files, or `full` if there is no space for the documents three times.
    package static func run(
        _ directory: String, to target: String, taking selection: StoreSelection = StoreSelection(),
        progress: @escaping WorkProgress.Handler = { _ in }, complete: (String) throws -> Void = { _ in }
    ) throws -> Report {
        let partial = target + ".salvaging"
        let lock = try lockWorkPlace(partial)
        defer { lock.unlock() }
        do {
            let table = try SalvageTable(partial + "/table", progress)
            defer { table.close() }
            try EngineSalvage.run(directory: directory, into: table)
            try table.sort()
            let writer = try SalvageWriter(partial + "/data", table, selection)
            try writer.run(progress)
            try complete(partial + "/data")
            try Directory.rename(partial + "/data", to: target)
            try Directory.syncName(of: target)
            table.close()
            try removeWork(in: partial)
            try Directory.removeAll(partial)
            return table.report
        } catch {
            try? removeWork(in: partial)
            try? Directory.removeAll(partial)
            throw error
        }
    }

    /// What the place of the work has beside its lock.
    private static let work = ["table", "data"]

    /// Takes the place of the work for this process, without anything in it.
    private static func lockWorkPlace(_ partial: String) throws(StorageError) -> DirectoryLock {
        let known = work + [DirectoryFormat.lockName]
        if Directory.exists(partial), let other = try Directory.names(in: partial).first(where: { !known.contains($0) })
        {
            throw StorageError(.refused, "a salvage works in this directory, which has \(other)", file: partial)
        }
        do throws(StorageError) {
            let lock = try DirectoryLock(partial)
            try removeWork(in: partial)
            return lock
        } catch {
            // Goes if it is empty: the lock could not be made.
            try? Directory.remove(partial)
            throw error
        }
    }

    private static func removeWork(in partial: String) throws(StorageError) {
        for name in work { try Directory.removeAll("\(partial)/\(name)") }
    }
}

/// The newest intact state of each key, in an engine that is thrown away. Used by one thread.
///
///     30 | key                       -> version, 8 | 1, or 0 for a deletion | value
///     31 | version, 8 | number, 8    -> key length, 2 | key | value          documents that exist
final class SalvageTable: SalvageSink {
    private enum Space {
        static let keys: UInt8 = 0x30
        static let versions: UInt8 = 0x31
    }

    private let engine: StorageEngine
    private let writer: EngineWriter
    private var batch = MutationBatch()
    private var lastVersion: UInt64 = 0
    private(set) var report = StoreSalvage.Report()
    /// Counts what is found.
    private var meter: WorkMeter
    /// Documents that are there, after `sort`.
    private(set) var documents = 0
    private var isClosed = false

    init(_ directory: String, _ progress: @escaping WorkProgress.Handler) throws {
        meter = WorkMeter("reading what is intact", total: 0, progress)
        var options = EngineOptions()
        options.latestOnlySpaces = [Space.keys, Space.versions]
        options.retentionMicroseconds = 0
        engine = try StorageEngine.open(directory: directory, options: options) { _, _, _, _ in }
        writer = try engine.makeWriter()
    }

    func close() {
        if isClosed { return }
        isClosed = true
        try? engine.close()
    }

    func note(_ loss: String) { report.note(loss) }

    func noteDocument() { report.documents += 1 }

    // MARK: What is found

    func take(key: UnsafeRawBufferPointer, version: CommitVersion, value: UnsafeRawBufferPointer?) throws {
        let nothing: [UInt8] = []
        let name = unsafe RawSpan(_unsafeBytes: key)
        if let value = unsafe value {
            try keep(name, version, kind: 1, nothing.byteSpan, unsafe RawSpan(_unsafeBytes: value))
        } else {
            try keep(name, version, kind: 0, nothing.byteSpan, nothing.byteSpan)
        }
    }

    func take(record: RawSpan, version: CommitVersion) throws {
        do {
            switch record.byteCount > 0 ? record[byteAt: 0] : 0 {
            case LogRecord.commitKind: try take(commit: record, version)
            case LogRecord.definitionKind: try take(definitions: record, version)
            case LogRecord.databaseKind:
                try take(DatabaseSettings.self, of: record, version, DatabaseDirectory.writeSettingsKey)
            case LogRecord.tenureKind:
                try take(DatabaseTenure.self, of: record, version, DatabaseDirectory.writeTenureKey)
            default: break
            }
        } catch let error as LogRecord.Malformed {
            note("the record of commit \(version): \(error)")
        }
    }

    /// Takes what a record says about one database.
    private func take<Contents: DatabaseRecordContents>(
        _: Contents.Type, of record: RawSpan, _ version: CommitVersion, _ writeKey: (UInt32, inout ByteBuffer) -> Void
    ) throws {
        guard let changed = try? DatabaseRecord<Contents>(record) else {
            return note("the record of commit \(version) cannot be read")
        }
        var key = ByteBuffer(capacity: 16)
        var value = ByteBuffer(capacity: 64)
        let nothing: [UInt8] = []
        writeKey(changed.number, &key)
        changed.contents.append(to: &value)
        try keep(key.bytes, version, kind: 1, nothing.byteSpan, value.bytes)
    }

    private func take(commit record: RawSpan, _ version: CommitVersion) throws {
        var reader = try LogRecordReader(record)
        let nothing: [UInt8] = []
        if reader.newDatabaseName.byteCount > 0, let name = try? DatabaseName(reader.newDatabaseName) {
            var key = ByteBuffer(capacity: 256)
            var value = ByteBuffer(capacity: 256)
            DatabaseDirectory.write(name, number: reader.database, key: &key, value: &value)
            try keep(key.bytes, version, kind: 1, nothing.byteSpan, value.bytes)
            // What was said of a deleted database of this name is forgotten.
            DatabaseDirectory.writeSettingsKey(of: reader.database, into: &key)
            try keep(key.bytes, version, kind: 0, nothing.byteSpan, nothing.byteSpan)
        }
        var header = ByteBuffer(capacity: 64)
        var location = DocumentLocation()
        while let item = try reader.next() {
            if item.identifier != nil { continue }
            location.locate(item.path, database: reader.database)
            item.writeHeader(at: version, isCut: location.parts.isCut, into: &header)
            if item.kind == .deleted {
                try keep(location.key, version, kind: 0, nothing.byteSpan, nothing.byteSpan)
            } else {
                try keep(location.key, version, kind: 1, header.bytes, item.payload)
            }
        }
    }

    private func take(definitions record: RawSpan, _ version: CommitVersion) throws {
        var reader = try DefinitionRecord(record)
        var key = ByteBuffer(capacity: 64)
        var value = ByteBuffer(capacity: 128)
        let nothing: [UInt8] = []
        while let definition = try reader.next() {
            definition.write(key: &key, value: &value)
            try keep(key.bytes, version, kind: definition.isDropped ? 0 : 1, nothing.byteSpan, value.bytes)
        }
    }

    /// Keeps a state of a key unless a newer one is known.
    private func keep(
        _ name: RawSpan, _ version: CommitVersion, kind: UInt8, _ first: RawSpan, _ second: RawSpan
    ) throws {
        meter.step()
        let space = name.byteCount > 0 ? KeySpace(rawValue: name[byteAt: 0]) : nil
        switch space {
        case .documents, .definitions, .overrides, .meta: break
        case nil: return note("a key of \(name.byteCount) bytes is in an unknown key space")
        default: return
        }
        if name.byteCount > KeyLayout.keyBytesMax { return note("a key of \(name.byteCount) bytes is too long") }
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax + 1)
        key.append(byte: Space.keys)
        key.append(name)
        if let known = try writer.latest.value(forKey: key.bytes) {
            var reader = WireReader(known.bytes)
            // An item that comes later in the same commit is newer.
            if try reader.fixed64() > version.microseconds { return }
        }
        var head = ByteBuffer(capacity: 16)
        head.append(littleEndian: version.microseconds)
        head.append(byte: kind)
        batch.put(key: key.bytes, value: head.bytes, first, second)
        try stage()
    }

    private func stage() throws {
        lastVersion += 1
        let record = [LogRecord.clockKind]
        try writer.stage(
            version: CommitVersion(microseconds: lastVersion), record: record.byteSpan, mutations: batch)
        batch.removeAll()
        if writer.isGroupFull { try writer.commitGroup() }
    }

    // MARK: What is there

    /// Puts the documents in the order of their versions. To be called once, when everything is found.
    func sort() throws {
        try writer.commitGroup()
        try forEachKey(in: .documents) { name, version, value throws in
            var key = ByteBuffer(capacity: 17)
            key.append(byte: Space.versions)
            key.append(bigEndian: version)
            key.append(bigEndian: self.lastVersion)
            var head = ByteBuffer(capacity: 16 + name.byteCount)
            head.append(littleEndian: UInt64(name.byteCount))
            head.append(name)
            self.batch.put(key: key.bytes, value: head.bytes, value)
            try self.stage()
            self.documents += 1
        }
        try writer.commitGroup()
        writer.finishReading()
    }

    /// Visits the keys of a space that exist.
    func forEachKey(
        in space: KeySpace, _ visit: (_ key: RawSpan, _ version: UInt64, _ value: RawSpan) throws -> Void
    ) throws {
        let (from, to) = ([Space.keys, space.rawValue], [Space.keys, space.rawValue + 1])
        let reader = try engine.makeReader()
        let snapshot = try reader.snapshot()
        var cursor = try snapshot.cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() {
            var reader = WireReader(cursor.value)
            let version = try reader.fixed64()
            guard cursor.value[byteAt: reader.position] == 1 else { continue }
            try visit(
                cursor.key.extracting(1..<cursor.key.byteCount), version,
                cursor.value.extracting((reader.position + 1)..<cursor.value.byteCount))
        }
    }

    /// Visits the documents in the order of their versions.
    func forEachDocument(
        _ visit: (_ key: RawSpan, _ version: UInt64, _ value: RawSpan) throws -> Void
    ) throws {
        let (from, to) = ([Space.versions], [Space.versions + 1])
        let reader = try engine.makeReader()
        let snapshot = try reader.snapshot()
        var cursor = try snapshot.cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() {
            var place = WireReader(cursor.key)
            place.position = 1
            let version = try place.fixed64().byteSwapped
            var reader = WireReader(cursor.value)
            let end = 8 + Int(try reader.fixed64())
            try visit(
                cursor.value.extracting(8..<end), version, cursor.value.extracting(end..<cursor.value.byteCount))
        }
    }
}

/// Writes the new directory. Used by one thread.
private final class SalvageWriter {
    private let table: SalvageTable
    private let engine: StorageEngine
    private let writer: EngineWriter
    private var catalogue = Catalogue()
    private var batch = MutationBatch()
    private var databases: [UInt32: DatabaseName] = [:]
    /// Versions at which databases were deleted, or left for another store. Documents of later versions are of a
    /// database that came into being again.
    private var ends: [UInt32: UInt64] = [:]
    private let selection: StoreSelection
    /// The version of the documents in the batch.
    private var version: UInt64 = 1

    init(_ directory: String, _ table: SalvageTable, _ selection: StoreSelection) throws {
        self.table = table
        self.selection = selection
        let options = DocumentStore.engineOptions(.forTool(directory))
        engine = try StorageEngine.open(directory: directory, options: options) { _, _, _, _ in }
        writer = try engine.makeWriter()
    }

    func run(_ progress: @escaping WorkProgress.Handler) throws {
        try putDatabases()
        try putDefinitions()
        var meter = WorkMeter("writing the documents", total: table.documents, progress)
        try table.forEachDocument { key, version, value in
            meter.step()
            if version != self.version { try self.commit(next: version) }
            try self.put(key, value)
        }
        try commit(next: version + 1)
        try writer.commitGroup()
        writer.finishReading()
        try engine.close()
    }

    // MARK: Databases and definitions

    private func putDatabases() throws {
        var found: [UInt32: (name: DatabaseName, version: UInt64)] = [:]
        var settings: [UInt32: (contents: DatabaseSettings, version: UInt64)] = [:]
        try table.forEachKey(in: .meta) { key, version, value in
            let number = DatabaseDirectory.number(ofSettingsKey: key)
            switch key.byteCount > 1 ? key[byteAt: 1] : 0 {
            case UInt8(ascii: "d"):
                guard let database = DatabaseDirectory.read(value: value) else {
                    return self.table.note("the name of a database cannot be read")
                }
                found[database.number] = (database.name, version)
            case UInt8(ascii: "s"):
                guard let number, let contents = DatabaseSettings(value) else {
                    return self.table.note("the settings of a database cannot be read")
                }
                settings[number] = (contents, version)
                if contents.state != .created { self.noteEnd(of: number, contents.deleteMicroseconds) }
            case UInt8(ascii: "o"):
                guard let number, let tenure = DatabaseTenure(value) else {
                    return self.table.note("the right to a database cannot be read")
                }
                if tenure.state == .released { self.noteEnd(of: number, tenure.version) }
            default: break
            }
        }
        var used: Set<UInt32> = []
        try table.forEachKey(in: .documents) { key, version, _ in
            if key.byteCount > KeyLayout.pathOffset, self.isTaken(key, version) {
                used.insert(DocumentKey.database(of: key))
            }
        }
        for number in used.subtracting(found.keys).sorted() {
            let name = try DatabaseName(project: "salvaged", database: "number-\(number)")
            table.note("the name of database \(number) is lost: it is \(name) now")
            found[number] = (name, 0)
        }
        for (number, database) in found.sorted(by: { $0.key < $1.key }) where selection.takes(database.name) {
            if ends[number] != nil, !used.contains(number) { continue }
            databases[number] = database.name
            // Settings that are older than the database are of a deleted one of its name.
            let known = settings[number].flatMap { $0.version > database.version ? $0.contents : nil }
            put(database.name, number, known)
        }
    }

    private func noteEnd(of number: UInt32, _ version: UInt64) { ends[number] = max(ends[number] ?? 0, version) }

    /// Whether the database of a document had not ended when the document was written.
    private func isTaken(_ key: RawSpan, _ version: UInt64) -> Bool {
        version > ends[DocumentKey.database(of: key)] ?? 0
    }

    private func put(_ name: DatabaseName, _ number: UInt32, _ settings: DatabaseSettings?) {
        var key = ByteBuffer(capacity: 256)
        var value = ByteBuffer(capacity: 256)
        DatabaseDirectory.write(name, number: number, key: &key, value: &value)
        batch.put(key: key.bytes, value: value.bytes)
        guard let settings, settings.state == .created else { return }
        DatabaseDirectory.writeSettingsKey(of: number, into: &key)
        value.reset()
        settings.append(to: &value)
        batch.put(key: key.bytes, value: value.bytes)
    }

    /// Declared indexes begin with the first document again; overrides of fields stay as they are.
    private func putDefinitions() throws {
        var key = ByteBuffer(capacity: 64)
        var value = ByteBuffer(capacity: 128)
        for space in [KeySpace.definitions, .overrides] {
            try table.forEachKey(in: space) { stored, _, contents in
                switch IndexDefinition(key: stored, value: contents, isDropped: false) {
                case .index(var index, _):
                    guard index.state.isKept, self.databases[index.database] != nil else { return }
                    let start = IndexMaintenance.documents(of: index.database).from
                    index.state = IndexState(phase: .building, position: start)
                    IndexDefinition.index(index, isDropped: false).write(key: &key, value: &value)
                case .group(let group, _):
                    // Of database 0 are those that count for all.
                    guard group.database == 0 || self.databases[group.database] != nil else { return }
                    IndexDefinition.group(group, isDropped: false).write(key: &key, value: &value)
                case nil: return self.table.note("the definition of an index cannot be read")
                }
                self.batch.put(key: key.bytes, value: value.bytes)
            }
        }
    }

    // MARK: Documents

    private func put(_ key: RawSpan, _ value: RawSpan) throws {
        var path = ByteBuffer(capacity: 256)
        var expected = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: version),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { return table.note("a document of version \(version) has no readable name") }
        DocumentKey.write(path.bytes, database: DocumentKey.database(of: key), into: &expected)
        let isCanonical = (try? DocumentValidator.validate(fields: record.fields).isCanonical) == true
        guard isCanonical, expected.bytes.equalsBytes(key) else {
            return table.note("the document \(String(repairingUTF8: path.bytes)) is not valid")
        }
        guard databases[DocumentKey.database(of: key)] != nil, isTaken(key, version),
            selection.takes(path: path.bytes)
        else { return }
        let collection = key.extracting(0..<parts.collectionByteCount)
        _ = try catalogue.adjust(collection, path: path.bytes, by: 1, latest: writer.latest)
        batch.put(key: key, value: value)
        table.noteDocument()
    }

    /// Stages the batch as the commit of its version.
    private func commit(next: UInt64) throws {
        catalogue.writeChanges(into: &batch)
        // The record does not matter: the directory is closed before it is used.
        let record = [LogRecord.clockKind]
        try writer.stage(version: CommitVersion(microseconds: version), record: record.byteSpan, mutations: batch)
        catalogue.keepCommit()
        batch.removeAll()
        version = next
        if writer.isGroupFull { try writer.commitGroup() }
    }
}
