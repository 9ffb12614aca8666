// Changing some fields of a document on its wire bytes.
//
// A mask or a set of transforms comes down to a list of edits: this path gets this value, that path goes. Canonical
// documents are sorted by field name, and so are the edits; one merge of the two writes the changed document. Only maps
// on the way to an edit are taken apart; everything else is copied in runs, byte for byte.
//
//     stored   a: 1, b: {x: 1, y: 2}, c: 3          edits   b.y = 5, b.z gone, d = 7
//     written  a: 1  (copied)
//              b: {x: 1 (copied), y: 5}             a new length, nothing else
//              c: 3  (copied)
//              d: 7

package import Basics

/// One field to set or to remove.
package struct FieldEdit {
    package let path: FieldPath
    /// Where the new `Value` message stands among the edits' values; nil removes the field.
    package let value: Range<Int>?

    package init(path: FieldPath, value: Range<Int>?) {
        self.path = path
        self.value = value
    }
}

/// Edits of distinct fields, none inside another, sorted by path.
package struct FieldEdits {
    package private(set) var edits: [FieldEdit]

    /// Sorts the edits. Where one path leads into another the shorter one decides; of equal paths the first.
    package init(_ unsorted: [FieldEdit]) {
        edits = unsorted
        if edits.count < 2 { return }
        // Sorted, every path is preceded by its prefixes, with nothing but paths of the same prefix in between.
        edits.sort(byPath: \.path)
        var kept: [FieldEdit] = []
        for edit in edits {
            if let last = kept.last, last.path.isPrefix(of: edit.path) { continue }
            kept.append(edit)
        }
        edits = kept
    }

    /// The edits of an update with a mask: a path present in the new document is set, an absent one removed.
    ///
    /// - Parameters:
    ///   - paths: the mask.
    ///   - fields: the canonical field entries of the new document, whose bytes the edits' ranges refer to.
    package init(setting paths: [FieldPath], from fields: RawSpan) throws(InvalidDocument) {
        self.init(paths.map { FieldEdit(path: $0, value: nil) })
        let found = try FieldRanges.locate(edits.map(\.path), in: fields)
        edits = zip(edits, found).map { FieldEdit(path: $0.path, value: $1) }
    }

    /// Writes the document with the edits made.
    ///
    /// Removing a field that is absent, or that lies below something that is not a map, changes nothing. Setting one
    /// creates the maps on its way, in the place of whatever else stands there. A map that loses its last field stays.
    ///
    /// - Parameters:
    ///   - fields: canonical field entries.
    ///   - values: the bytes that the edits' ranges refer to.
    package func apply(to fields: RawSpan, values: RawSpan, into writer: inout ByteBuffer) throws(InvalidDocument) {
        try merge(0..<edits.count, depth: 0, base: fields, entryTag: DocumentTag.field, values: values, into: &writer)
    }

    /// Merges a map's entries with the edits that share the path down to it.
    private func merge(
        _ range: Range<Int>, depth: Int, base: RawSpan, entryTag: UInt8, values: RawSpan, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        var entries = FieldEntryReader(base)
        var hasEntry = try entries.next()
        // Bytes of `base` before this are written, or left out on purpose.
        var copied = 0
        var next = range.lowerBound
        while next < range.upperBound {
            let group = next..<endOfGroup(from: next, to: range.upperBound, depth: depth)
            next = group.upperBound
            let name = edits[group.lowerBound].path.utf8Segments[depth]
            var order = -1
            while hasEntry {
                order = entries.key.compareBytes(name.byteSpan)
                if order >= 0 { break }
                hasEntry = try entries.next()
            }
            let isPresent = hasEntry && order == 0
            writer.append(base.extracting(copied..<(hasEntry ? entries.start : base.byteCount)))
            copied = hasEntry ? entries.start : base.byteCount
            if isPresent {
                try change(
                    group, depth: depth, stored: entries.value,
                    storedEntry: base.extracting(entries.start..<entries.end),
                    entryTag: entryTag, name: name, values: values, into: &writer)
                copied = entries.end
                hasEntry = try entries.next()
            } else {
                try create(group, depth: depth, entryTag: entryTag, name: name, values: values, into: &writer)
            }
        }
        writer.append(base.extracting(copied..<base.byteCount))
    }

    /// The edits from `start` on that go through the same field at `depth`.
    private func endOfGroup(from start: Int, to end: Int, depth: Int) -> Int {
        let name = edits[start].path.utf8Segments[depth]
        var index = start + 1
        while index < end, edits[index].path.utf8Segments[depth] == name { index += 1 }
        return index
    }

    /// Writes a field that exists, as the edits of the group leave it.
    private func change(
        _ group: Range<Int>, depth: Int, stored: RawSpan, storedEntry: RawSpan, entryTag: UInt8, name: [UInt8],
        values: RawSpan, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        if edits[group.lowerBound].path.count == depth + 1 {
            writeLeaf(group.lowerBound, entryTag: entryTag, name: name, values: values, into: &writer)
        } else if let map = DocumentBytes.plainMapEntries(of: stored) {
            try writer.entry(entryTag, name: name) { (writer) throws(InvalidDocument) in
                try writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { (writer) throws(InvalidDocument) in
                    try merge(
                        group, depth: depth + 1, base: map, entryTag: DocumentTag.mapEntry, values: values,
                        into: &writer)
                }
            }
        } else if setsSomething(group) {
            try create(group, depth: depth, entryTag: entryTag, name: name, values: values, into: &writer)
        } else {
            writer.append(storedEntry)
        }
    }

    /// Writes a field that does not exist, or gives way, if the edits of the group set anything in it.
    private func create(
        _ group: Range<Int>, depth: Int, entryTag: UInt8, name: [UInt8], values: RawSpan, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        if edits[group.lowerBound].path.count == depth + 1 {
            writeLeaf(group.lowerBound, entryTag: entryTag, name: name, values: values, into: &writer)
        } else if setsSomething(group) {
            try writer.entry(entryTag, name: name) { (writer) throws(InvalidDocument) in
                try writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { (writer) throws(InvalidDocument) in
                    try merge(
                        group, depth: depth + 1, base: values.extracting(first: 0), entryTag: DocumentTag.mapEntry,
                        values: values, into: &writer)
                }
            }
        }
    }

    private func setsSomething(_ group: Range<Int>) -> Bool {
        edits[group].contains { $0.value != nil }
    }

    /// Writes the value of an edit under its last name, or nothing if the edit removes.
    private func writeLeaf(
        _ index: Int, entryTag: UInt8, name: [UInt8], values: RawSpan, into writer: inout ByteBuffer
    ) {
        guard let range = edits[index].value else { return }
        writer.entry(entryTag, name: name) { $0.append(values.extracting(range)) }
    }
}

extension ByteBuffer {
    /// Writes a map entry; `body` writes the `Value` message.
    package mutating func entry(
        _ tag: UInt8, name: [UInt8], _ body: (inout ByteBuffer) throws(InvalidDocument) -> Void
    ) throws(InvalidDocument) {
        append(byte: tag)
        let entry = beginLength()
        appendField(FieldNumber.MapEntry.key, bytes: name)
        append(byte: DocumentTag.entryValue)
        let value = beginLength()
        try body(&self)
        endLength(at: value)
        endLength(at: entry)
    }

    /// Writes a map entry; `body` writes the `Value` message.
    package mutating func entry(_ tag: UInt8, name: [UInt8], _ body: (inout ByteBuffer) -> Void) {
        append(byte: tag)
        let entry = beginLength()
        appendField(FieldNumber.MapEntry.key, bytes: name)
        append(byte: DocumentTag.entryValue)
        let value = beginLength()
        body(&self)
        endLength(at: value)
        endLength(at: entry)
    }
}
