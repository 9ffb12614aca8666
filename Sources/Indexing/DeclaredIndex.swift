// Indexes that a declaration asks for: over several fields, or over a collection group.
//
//     05 | database, 4 | index number, 8    ->
//         | state length | state | fe | created, 8 | shape |
//         | state length | state | fe | created, 8 | ff | analysis length | analysis | shape of an index for searches |
//
//     shape    | group?, 1 | id length | id | kind, 1 | path length | path | ...
//
// An index of a version that did not note when it was created has no `fe`.
//
//     of collections   22 | index number | collection number | values, <= 220 | id segment | its byte count, 1
//     of groups        22 | index number | values, <= 220 | path, <= 248 | 00 | its byte count, 1
//
// Values of descending fields have every bit inverted, and so has the id or path if names descend, as they do if the
// last field does, unless the index says otherwise: one over (a ASC, b DESC) walked forwards gives b and names
// downwards. In groups the path replaces the id: its segments as in document keys, without the marker and ended
// by a byte below every segment's first, so that bytes are in the order of names. One too long is cut and hashed like
// an id; the document's key is the value of such an entry.

package import Basics
internal import DocumentModel
package import Storage
package import StorageEngines
internal import StoreFormat

/// One declared index and how far it is.
package struct DeclaredIndex: Sendable, Equatable {
    /// The number that stands for the index in keys. No other index has it until this one is dropped and cleared.
    package let number: UInt64
    /// The number that stands for the database in keys.
    package let database: UInt32
    package let shape: IndexShape
    /// The commit that declared it, in microseconds: an index that is dropped and declared again has another one. 0 if
    /// it was not noted.
    package let created: UInt64
    /// `clearing` means that it is being dropped. `off` means that an index for searches waits for its libraries.
    package var state: IndexState
    /// Of an index for searches the version of the libraries that made its entries (`TextLibraries`); empty without.
    package var analysis = ""

    /// Whether ids or paths are inverted in its keys.
    package var invertsSuffix: Bool { shape.isNameDescending }

    // MARK: Layout

    /// Replaces what is in `writer` by the key of the definition.
    package func writeKey(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.definitions.rawValue)
        writer.append(bigEndian: database)
        writer.append(bigEndian: number)
    }

    /// Replaces what is in `writer` by the value of the definition: its state and its shape.
    package func writeValue(into writer: inout ByteBuffer) {
        var part = ByteBuffer(capacity: 64)
        state.append(to: &part)
        writer.reset()
        writer.appendVarint(UInt64(part.count))
        writer.append(part.bytes)
        if created != 0 {
            writer.append(byte: DeclaredIndex.createdMarker)
            writer.append(littleEndian: created)
        }
        if shape.search != nil {
            writer.append(byte: DeclaredIndex.analysisMarker)
            writer.appendVarint(UInt64(analysis.utf8.count))
            writer.append(utf8: analysis)
        }
        shape.append(to: &writer)
    }

    /// Stand before the time of creation, and before the analysis of an index for searches; no shape begins with them.
    private static let (createdMarker, analysisMarker): (UInt8, UInt8) = (0xfe, 0xff)

    package init(
        number: UInt64, database: UInt32, shape: IndexShape, created: UInt64 = 0, state: IndexState,
        analysis: String = ""
    ) {
        self.number = number
        self.database = database
        self.shape = shape
        self.created = created
        self.state = state
        self.analysis = analysis
    }

    /// Reads a definition; nil when it is none.
    package init?(key: RawSpan, value: RawSpan) {
        guard key.byteCount == 13 else { return nil }
        var reader = WireReader(value)
        guard let stateBytes = try? reader.lengthDelimited(), let state = IndexState(stateBytes) else { return nil }
        var created: UInt64 = 0
        if !reader.isAtEnd, value[byteAt: reader.position] == DeclaredIndex.createdMarker {
            reader.position += 1
            guard let noted = try? reader.fixed64() else { return nil }
            created = noted
        }
        self.created = created
        if !reader.isAtEnd, value[byteAt: reader.position] == DeclaredIndex.analysisMarker {
            reader.position += 1
            guard let analysis = try? reader.lengthDelimited() else { return nil }
            self.analysis = String(repairingUTF8: analysis)
        }
        guard let shape = IndexShape(value.extracting(reader.position..<value.byteCount)) else { return nil }
        database = DocumentKey.database(of: key)
        // In bounds by the check of the length.
        number = UInt64(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: 5, as: UInt64.self))
        self.state = state
        self.shape = shape
    }

    /// What all keys of its entries begin with, of one collection if it is not over a group.
    package func writePrefix(collection: UInt64, into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.declared.rawValue)
        writer.appendVarint(number)
        if !shape.isGroup { writer.appendVarint(collection) }
    }

    /// The range of all its entries.
    package var entries: (from: [UInt8], to: [UInt8]) {
        var writer = ByteBuffer(capacity: 16)
        writer.append(byte: (shape.search == nil ? KeySpace.declared : KeySpace.searches).rawValue)
        writer.appendVarint(number)
        let from = writer.copyBytes()
        writer.appendAfterGroup()
        return (from, writer.copyBytes())
    }
}

extension IndexShape {
    package func append(to writer: inout ByteBuffer) {
        writer.append(byte: (isGroup ? 1 : 0) | (reversesName ? 2 : 0) | (search == nil ? 0 : IndexShape.searchFlag))
        writer.appendVarint(UInt64(collectionID.utf8.count))
        writer.append(utf8: collectionID)
        if let search { return search.append(to: &writer) }
        for part in parts {
            writer.append(byte: part.kind.rawValue)
            let path = "\(part.field)"
            writer.appendVarint(UInt64(path.utf8.count))
            writer.append(utf8: path)
        }
        if let vector {
            writer.append(byte: IndexShape.vectorKind)
            let path = "\(vector.field)"
            writer.appendVarint(UInt64(path.utf8.count))
            writer.append(utf8: path)
            writer.appendVarint(UInt64(vector.dimension))
        }
    }

    /// What stands where others have their `Part.Kind`, before the path and the dimension.
    private static let vectorKind: UInt8 = 4
    private static let searchFlag: UInt8 = 4

    /// Reads what `append` wrote; nil when it is something else.
    package init?(_ bytes: RawSpan) {
        guard bytes.byteCount > 1, bytes[byteAt: 0] <= 5 else { return nil }
        var reader = WireReader(bytes)
        reader.position = 1
        guard let id = try? reader.lengthDelimited() else { return nil }
        if bytes[byteAt: 0] & IndexShape.searchFlag != 0 {
            guard let search = SearchPart(&reader) else { return nil }
            self.init(
                collectionID: String(repairingUTF8: id), isGroup: bytes[byteAt: 0] & 1 != 0, parts: [], search: search)
            return
        }
        var parts: [Part] = []
        var vector: VectorPart?
        while reader.position < bytes.byteCount {
            let kind = bytes[byteAt: reader.position]
            reader.position += 1
            guard vector == nil, let path = try? reader.lengthDelimited(),
                let field = try? FieldPath(String(repairingUTF8: path))
            else { return nil }
            if kind == IndexShape.vectorKind {
                guard let dimension = try? reader.varint(), (1...UInt64(Int32.max)).contains(dimension) else {
                    return nil
                }
                vector = VectorPart(field: field, dimension: Int(dimension))
            } else {
                guard let kind = Part.Kind(rawValue: kind) else { return nil }
                parts.append(Part(field: field, kind: kind))
            }
        }
        if parts.isEmpty, vector == nil { return nil }
        self.init(
            collectionID: String(repairingUTF8: id), isGroup: bytes[byteAt: 0] & 1 != 0, parts: parts, vector: vector,
            reversesName: bytes[byteAt: 0] & 2 != 0)
    }
}

/// The declared indexes as the commit thread keeps them.
package struct DeclaredIndexes: ~Copyable {
    package var definitions = IndexDefinitions()
    /// Where the entries of those begin that documents expire by.
    package let begins = EntryBegins()
    private var key = ByteBuffer(capacity: 512)
    private var oldKey = ByteBuffer(capacity: 512)
    private var suffix = ByteBuffer(capacity: 256)
    /// Elements of the array that is being walked.
    private var seen = ByteTable()
    private var changes = ElementChanges()

    package init() {}

    /// Reads all definitions.
    package init(latest: LatestReader) throws(StorageError) {
        definitions = try IndexDefinitions(latest: latest)
    }

    // MARK: Numbers of entries

    /// The most entries that a document may have in the indexes of its collection, those for searches not counted.
    package func entriesMax(fields: RawSpan, _ path: RawSpan, in database: UInt32) -> Int {
        kept(ofDocument: path, in: database).reduce(0) { sum, index in
            sum + (index.shape.hasElements ? IndexedValue.entriesMax(fields: fields) : 1)
        }
    }

    /// The entries of a document in the indexes of its collection that are kept, without those for searches.
    package func entryCount(of fields: RawSpan, _ path: RawSpan, in database: UInt32) -> Int {
        kept(ofDocument: path, in: database).reduce(0) { $0 + $1.shape.entryCount(of: fields) }
    }

    /// The same, by index.
    package func entryCounts(
        of fields: RawSpan, _ path: RawSpan, in database: UInt32
    ) -> [(index: DeclaredIndex, count: Int)] {
        kept(ofDocument: path, in: database).map { ($0, $0.shape.entryCount(of: fields)) }
    }

    /// The indexes that are kept, of the collection of a document, those for searches apart.
    private func kept(ofDocument path: RawSpan, in database: UInt32) -> [DeclaredIndex] {
        if definitions.isEmpty { return [] }
        return definitions.indexes(of: KeyedDocument.collectionID(ofDocument: path), in: database).filter {
            $0.state.isKept && $0.shape.search == nil
        }
    }

    /// Takes a definition in its new state; nil removes it.
    package mutating func set(_ index: DeclaredIndex, _ state: IndexState?) {
        definitions.set(index, state)
        begins.forget(index)
    }

    /// Brings the entries of a document up to date in all indexes of its collection that are kept. `SearchDerivation`
    /// does so in those for searches.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) {
        for index in kept(ofDocument: document.path, in: document.database) {
            derive(index, document, from: old, to: new, into: &sink)
        }
    }

    /// The same for one index.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ index: DeclaredIndex, _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink
    ) {
        let isCut = writeSuffix(of: document, index)
        let contains = index.shape.parts.first { $0.kind == .contains }
        guard let contains else {
            let hadEntry = DeclaredIndexes.write(index, document, old, element: nil, suffix, into: &oldKey)
            let hasEntry = DeclaredIndexes.write(index, document, new, element: nil, suffix, into: &key)
            if hadEntry, hasEntry, oldKey.bytes.equalsBytes(key.bytes) { return }
            if hadEntry { sink.remove(entry: oldKey.bytes) }
            if hasEntry {
                begins.notePut(key.bytes, in: index)
                sink.put(entry: key.bytes, value: isCut ? document.key : document.key.extracting(0..<0))
            }
            return
        }
        if DeclaredIndexes.haveSameFields(old, new, index.shape) { return }
        let value = isCut ? document.key : document.key.extracting(0..<0)
        walkElements(of: new, at: contains.field, index, document) { changes, key in changes.want(key) }
        walkElements(of: old, at: contains.field, index, document) { changes, key in
            if changes.isToRemove(key) { sink.remove(entry: key.bytes) }
        }
        changes.finish(value: value, into: &sink)
    }

    /// Whether two states of a document have the same entries, because the fields of the index are the same.
    private static func haveSameFields(_ old: RawSpan, _ new: RawSpan, _ shape: IndexShape) -> Bool {
        if let vector = shape.vector, !haveSameValue(old, new, at: vector.field) { return false }
        for part in shape.parts where !haveSameValue(old, new, at: part.field) { return false }
        return true
    }

    private static func haveSameValue(_ old: RawSpan, _ new: RawSpan, at field: FieldPath) -> Bool {
        guard let before = DocumentBytes.value(at: field, in: old), let after = DocumentBytes.value(at: field, in: new)
        else { return false }
        return before.equalsBytes(after)
    }

    /// Bytes of an array from which on the entry of an element is written once, however often the element is there: a
    /// document may repeat one 250,000 times. In shorter arrays this costs more than it saves.
    private static let repeatingBytesMin = 16 << 10

    /// Calls `body` with the entries by the elements of an array.
    private mutating func walkElements(
        of fields: RawSpan, at field: FieldPath, _ index: DeclaredIndex, _ document: borrowing IndexedDocument,
        _ body: (inout ElementChanges, borrowing ByteBuffer) -> Void
    ) {
        guard let value = DocumentBytes.value(at: field, in: fields), let wire = WireValue(value),
            var elements = wire.elements
        else { return }
        let mayRepeat = value.byteCount >= Self.repeatingBytesMin
        while let element = elements.next() {
            if mayRepeat, seen.insert(element, hash: ByteTable.hash(element), value: 0) != nil { continue }
            guard DeclaredIndexes.write(index, document, fields, element: element, suffix, into: &key) else { continue }
            body(&changes, key)
        }
        if mayRepeat { seen.removeAll() }
    }

    /// Writes a document's entry.
    /// - Returns: whether it has one: all fields are there, and the vector if there is to be one.
    private static func write(
        _ index: DeclaredIndex, _ document: borrowing IndexedDocument, _ fields: RawSpan, element: RawSpan?,
        _ suffix: borrowing ByteBuffer, into key: inout ByteBuffer
    ) -> Bool {
        if let vector = index.shape.vector, vector.elementBytes(in: fields) == nil { return false }
        index.writePrefix(collection: document.collection, into: &key)
        let start = key.count
        for part in index.shape.parts {
            let left = start + IndexKey.valueBytesMax - key.count
            let isDescending = part.kind == .descending
            if part.kind == .contains, let element {
                ValueKey.appendPrefix(wireValue: element, bytesMax: left, into: &key)
            } else {
                guard let value = DocumentBytes.value(at: part.field, in: fields) else { return false }
                if part.kind == .contains { return false }
                ValueKey.appendPrefix(wireValue: value, bytesMax: left, descending: isDescending, into: &key)
            }
        }
        key.append(suffix.bytes)
        key.append(byte: UInt8(truncatingIfNeeded: suffix.count - (index.shape.isGroup ? 1 : 0)))
        return true
    }

    /// Writes what stands for the document after the values.
    /// - Returns: whether it is a path that had to be cut.
    private mutating func writeSuffix(of document: borrowing IndexedDocument, _ index: DeclaredIndex) -> Bool {
        suffix.reset()
        var isCut = false
        if index.shape.isGroup {
            suffix.appendPathSegments(document.path)
            isCut = suffix.cutKeyPart(from: 0)
            suffix.append(byte: KeyLayout.terminator)
        } else {
            suffix.append(document.idSegment)
        }
        if index.invertsSuffix { suffix.invertBits(from: 0) }
        return isCut
    }
}
