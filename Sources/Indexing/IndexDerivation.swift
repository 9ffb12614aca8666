// From documents to index entries: what a write adds to the indexes and takes from them.
//
// The old and the new fields are walked side by side, in the order of their names. Where both have the same bytes
// nothing is done, and entries that both have stay as they are, so an update costs what it changes.
//
// Every field has an entry by its value, maps and arrays as wholes too; the fields inside maps have their own, and
// arrays have one for each distinct element.
//
//     {a: 1, m: {x: "u"}, t: [3, 4]}     values    a = 1, m = {x: "u"}, m.x = "u", t = [3, 4]
//                                        elements  t has 3, t has 4
//
// Entries follow from documents and from the overrides of their fields (`FieldRules`). The log holds both in their
// order, and recovery derives the same entries again.

internal import Basics
internal import DocumentModel
package import Storage
package import StoreFormat

/// Takes the changes of index entries that follow from a change of a document. The bytes are lent for the call.
package protocol IndexEntrySink: ~Copyable {
    /// An entry without a value: its key ends with the id or path of the document.
    mutating func put(entry key: RawSpan)
    /// An entry of either form that is there no longer.
    mutating func remove(entry key: RawSpan)
    /// An entry with a value: in indexes of groups the key of the document if its path is cut.
    mutating func put(entry key: RawSpan, value: RawSpan)
}

extension MutationBatch: IndexEntrySink {
    package mutating func put(entry key: RawSpan) { put(key: key, value: key.extracting(first: 0)) }
    package mutating func remove(entry key: RawSpan) { delete(key: key) }
    package mutating func put(entry key: RawSpan, value: RawSpan) { put(key: key, value: value) }
}

/// The document whose entries are derived.
package struct IndexedDocument: ~Escapable {
    /// The number that stands for the database in keys.
    package let database: UInt32
    /// The collection's number.
    let collection: UInt64
    /// The document's key.
    let key: RawSpan
    /// As in the document's key.
    let idSegment: RawSpan
    /// Below `documents`.
    package let path: RawSpan

    @_lifetime(copy key, copy path)
    package init(database: UInt32, collection: UInt64, key: RawSpan, _ parts: DocumentKey.Parts, path: RawSpan) {
        self.database = database
        self.collection = collection
        self.key = key
        idSegment = key.extracting((parts.collectionByteCount + 1)..<key.byteCount)
        self.path = path
    }
}

/// Derives entries, with buffers that are kept. Belongs to one thread.
package struct IndexDerivation<Numbers: FieldNumbering & ~Copyable>: ~Copyable {
    package var fields: Numbers
    private var key = ByteBuffer(capacity: 512)
    private var oldKey = ByteBuffer(capacity: 512)
    private var changes = ElementChanges()
    /// What is kept of the document being derived, where that is not all.
    private var rules: FieldRules?
    private var purpose = FieldRules.Purpose.write

    package init(_ fields: consuming Numbers) {
        self.fields = fields
    }

    /// Brings the entries of a document up to date.
    ///
    /// - Parameters:
    ///   - old: the fields it had; empty if it was not there.
    ///   - new: the fields it has; empty if it goes.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) throws(StorageError) {
        try deriveEntries(document, from: old, to: new, at: .top(Self.noPlace), into: &sink)
    }

    /// The same for a document some of whose fields are overridden.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, by rules: FieldRules,
        _ purpose: FieldRules.Purpose, into sink: inout Sink
    ) throws(StorageError) {
        self.rules = rules
        self.purpose = purpose
        defer { self.rules = nil }
        try deriveEntries(document, from: old, to: new, at: .top(FieldRules.root), into: &sink)
    }

    /// Stands for all fields of documents without overrides.
    private static var noPlace: FieldRules.Place { -1 }

    /// The map whose fields are derived: the document itself, or a map in it.
    private struct Level {
        /// Of the entries of its fields.
        var tag: UInt8
        /// The number of the map; 0 for the document.
        var parent: UInt64
        /// Maps around it, itself included.
        var depth: Int
        /// Its place in the rules.
        var place: FieldRules.Place

        static func top(_ place: FieldRules.Place) -> Level {
            Level(tag: DocumentTag.field, parent: 0, depth: 0, place: place)
        }

        func map(_ number: UInt64, place: FieldRules.Place) -> Level {
            Level(tag: DocumentTag.mapEntry, parent: number, depth: depth + 1, place: place)
        }
    }

    /// Brings the entries of the fields of one map up to date.
    private mutating func deriveEntries<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, at level: Level,
        into sink: inout Sink
    ) throws(StorageError) {
        // Validated values do not nest deeper; the bound only keeps damaged bytes from the stack.
        if level.depth > Limits.nestingDepth { return }
        var oldPlace = EntryPlace(in: old, at: 0, tag: level.tag)
        var newPlace = EntryPlace(in: new, at: 0, tag: level.tag)
        while oldPlace != nil || newPlace != nil {
            var order = 0
            if let oldPlace, let newPlace {
                order = old.extracting(oldPlace.name).compareBytes(new.extracting(newPlace.name))
            } else {
                order = oldPlace == nil ? 1 : -1
            }
            let nothing = new.extracting(0..<0)
            if let place = oldPlace, order < 0 {
                try change(
                    document, name: old.extracting(place.name), from: old.extracting(place.value), to: nothing,
                    at: level, into: &sink)
            } else if let place = newPlace, order > 0 {
                try change(
                    document, name: new.extracting(place.name), from: nothing, to: new.extracting(place.value),
                    at: level, into: &sink)
            } else if let oldPlace, let newPlace {
                let (oldValue, newValue) = (old.extracting(oldPlace.value), new.extracting(newPlace.value))
                if !oldValue.equalsBytes(newValue) {
                    try change(
                        document, name: new.extracting(newPlace.name), from: oldValue, to: newValue, at: level,
                        into: &sink)
                }
            }
            if order <= 0, let place = oldPlace { oldPlace = EntryPlace(in: old, at: place.end, tag: level.tag) }
            if order >= 0, let place = newPlace { newPlace = EntryPlace(in: new, at: place.end, tag: level.tag) }
        }
    }

    /// A field's value goes from `old` to `new`; empty means that it has none.
    private mutating func change<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, name: RawSpan, from old: RawSpan, to new: RawSpan, at level: Level,
        into sink: inout Sink
    ) throws(StorageError) {
        var place = Self.noPlace
        var (removals, puts) = (EntryKinds.all, EntryKinds.all)
        if level.place != Self.noPlace, let rules {
            place = rules.field(name, in: level.place)
            if !rules.hasEntries(place) { return }
            (removals, puts) = (rules.removals(place, purpose), rules.puts(place, purpose))
        }
        let field = try fields.number(of: name, under: level.parent, database: document.database)
        changeValue(
            document, field, from: removals.contains(.values) ? old : old.extracting(first: 0),
            to: puts.contains(.values) ? new : new.extracting(first: 0), into: &sink)
        changeElements(
            document, field,
            from: removals.contains(.elements) && IndexedValue.isArray(old) ? old : old.extracting(first: 0),
            to: puts.contains(.elements) && IndexedValue.isArray(new) ? new : new.extracting(first: 0), into: &sink)
        let (oldInside, newInside) = (IndexedValue.inside(old), IndexedValue.inside(new))
        if !oldInside.isEmpty || !newInside.isEmpty {
            try deriveEntries(
                document, from: oldInside, to: newInside, at: level.map(field, place: place), into: &sink)
        }
    }

    /// Changes the entry by the value of a field; empty values have none.
    private mutating func changeValue<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, _ field: UInt64, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink
    ) {
        if !old.isEmpty { Self.write(.values, document, field, old, into: &oldKey) }
        if !new.isEmpty { Self.write(.values, document, field, new, into: &key) }
        // Values of equal order have one key, and so have values that are equal as far as keys go.
        if !old.isEmpty, !new.isEmpty, oldKey.bytes.equalsBytes(key.bytes) { return }
        if !old.isEmpty { sink.remove(entry: oldKey.bytes) }
        if !new.isEmpty { sink.put(entry: key.bytes) }
    }

    /// Changes the entries by the elements of an array; empty values have none.
    private mutating func changeElements<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, _ field: UInt64, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink
    ) {
        if !new.isEmpty, let wire = WireValue(new), var elements = wire.elements {
            while let element = elements.next() {
                Self.write(.elements, document, field, element, into: &key)
                changes.want(key)
            }
        }
        if !old.isEmpty, let wire = WireValue(old), var elements = wire.elements {
            while let element = elements.next() {
                Self.write(.elements, document, field, element, into: &key)
                if changes.isToRemove(key) { sink.remove(entry: key.bytes) }
            }
        }
        changes.finish(value: new.extracting(first: 0), into: &sink)
    }

    private static func write(
        _ space: KeySpace, _ document: borrowing IndexedDocument, _ field: UInt64, _ value: RawSpan,
        into key: inout ByteBuffer
    ) {
        IndexKey.begin(space, collection: document.collection, field: field, into: &key)
        IndexKey.append(value: value, into: &key)
        IndexKey.append(idSegment: document.idSegment, into: &key)
    }
}

/// What a value has inside that is indexed by itself.
package enum IndexedValue {
    static func isArray(_ value: RawSpan) -> Bool {
        value.byteCount > 0 && value[byteAt: 0] == UInt8(ValueTag.array)
    }

    /// The entries of a map whose fields are indexed one by one; empty for anything else.
    @_lifetime(copy value)
    static func inside(_ value: RawSpan) -> RawSpan {
        guard let entries = DocumentBytes.plainMapEntries(of: value) else { return value.extracting(0..<0) }
        return entries
    }
}

extension IndexedValue {
    /// Of a document: an element takes four, and a field more.
    private static let entryBytesMin = 4

    /// The most entries that a document of so many bytes may have.
    package static func entriesMax(fields: RawSpan) -> Int { fields.byteCount / entryBytesMin }

    /// Counts the entries of a document.
    ///
    /// - Parameters:
    ///   - rules: what is kept of its fields; nil for all.
    ///   - left: is lowered by the entries, or below 0 if there are more.
    package static func count(_ fields: RawSpan, rules: FieldRules?, left: inout Int) {
        count(fields, tag: DocumentTag.field, depth: 0, rules, FieldRules.root, left: &left)
    }

    /// Counts the entries of a document by the field of the document that they are of.
    package static func counts(_ fields: RawSpan, rules: FieldRules?) -> [(field: String, count: Int)] {
        var counts: [(field: String, count: Int)] = []
        var start = 0
        while let place = EntryPlace(in: fields, at: start, tag: DocumentTag.field) {
            var left = Int.max
            count(fields.extracting(start..<place.end), rules: rules, left: &left)
            counts.append((String(repairingUTF8: fields.extracting(place.name)), Int.max - left))
            start = place.end
        }
        return counts
    }

    private static func count(
        _ entries: RawSpan, tag: UInt8, depth: Int, _ rules: FieldRules?, _ rule: FieldRules.Place, left: inout Int
    ) {
        var place = EntryPlace(in: entries, at: 0, tag: tag)
        while let found = place, left >= 0, depth <= Limits.nestingDepth {
            let value = entries.extracting(found.value)
            let field = rules?.field(entries.extracting(found.name), in: rule) ?? rule
            let kept = rules?.puts(field, .write) ?? .all
            if kept.contains(.values) { left -= 1 }
            if kept.contains(.elements), isArray(value), let wire = WireValue(value), var elements = wire.elements {
                while elements.next() != nil { left -= 1 }
            }
            count(inside(value), tag: DocumentTag.mapEntry, depth: depth + 1, rules, field, left: &left)
            place = EntryPlace(in: entries, at: found.end, tag: tag)
        }
    }
}

/// Where the parts of one entry of a document or map lie.
struct EntryPlace {
    let name: Range<Int>
    let value: Range<Int>
    /// Where the next entry begins.
    let end: Int

    /// Reads the canonical entry at an offset; nil at the end, and where the bytes are something else.
    init?(in entries: RawSpan, at start: Int, tag: UInt8) {
        guard start < entries.byteCount, entries[byteAt: start] == tag else { return nil }
        var reader = WireReader(entries)
        reader.position = start + 1
        guard let end = try? reader.endOfLengthDelimited(), reader.position < end,
            entries[byteAt: reader.position] == DocumentTag.entryKey
        else { return nil }
        reader.position += 1
        guard let nameEnd = try? reader.endOfLengthDelimited(), nameEnd < end,
            entries[byteAt: nameEnd] == DocumentTag.entryValue
        else { return nil }
        name = reader.position..<nameEnd
        reader.position = nameEnd + 1
        guard let valueEnd = try? reader.endOfLengthDelimited(), valueEnd <= end else { return nil }
        value = reader.position..<valueEnd
        self.end = end
    }
}
