// Field masks of merges.

import Basics

extension DocumentFields {
    /// The paths of a merge of everything: those of all leaves (scalars, arrays, empty maps) and of the deleted fields.
    /// A map that contains only sentinels is not a leaf.
    static func leafMask(
        of fields: RawSpan, transforms: [FieldTransformData], deletedPaths: [[String]]
    ) -> [String] {
        var mask = deletedPaths
        let sentinels = transforms.map(\.path) + deletedPaths
        forEachLeaf(of: fields) { path, isEmptyMap in
            if isEmptyMap, sentinels.contains(where: { $0.count > path.count && $0.begins(with: path) }) { return }
            mask.append(path)
        }
        return mask.map { FieldPath.serverFormat($0) }.sorted()
    }

    /// The data of a merge of the given fields.
    static func mergeData(
        _ fields: RawSpan, transforms: [FieldTransformData], deletedPaths: [[String]], paths: [FieldPath]
    ) throws(InvalidUserData) -> DocumentWriteData {
        let sentinelPaths = transforms.map(\.path) + deletedPaths
        for path in paths {
            let isSentinel = sentinelPaths.contains { $0.begins(with: path.segments) }
            if !isSentinel, !contains(path.segments, in: fields) {
                throw InvalidUserData(
                    "Field '\(path.serverFormat)' is specified in your field mask but not in your input data.")
            }
        }
        let covered = transforms.filter { transform in
            paths.contains { transform.path.begins(with: $0.segments) }
        }
        // A field that is only transformed must not be in the mask: it would be deleted before its transform.
        let transformed = Set(covered.map(\.path.exact))
        let mask = Set(paths.map(\.segments.exact)).subtracting(transformed).map { path in
            FieldPath.serverFormat(path.lazy.map(\.string))
        }.sorted()
        return DocumentWriteData(
            fields: unsafe fields.withUnsafeBytes { unsafe [UInt8]($0) }, mask: mask, transforms: covered)
    }

    /// Calls `body` for every leaf of a document that was encoded here, with its path.
    private static func forEachLeaf(of fields: RawSpan, _ body: ([String], _ isEmptyMap: Bool) -> Void) {
        unsafe fields.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            var path: [String] = []
            forEachLeaf(unsafe WireCursor(base, 0, buffer.count), ValueWireTag.documentField, &path, body)
        }
    }

    private static func forEachLeaf(
        _ entries: WireCursor, _ entryTag: UInt8, _ path: inout [String], _ body: ([String], Bool) -> Void
    ) {
        var entries = entries
        while let (key, value) = try? entries.nextEntry(entryTag) {
            path.append(entries.text(key))
            var contents = unsafe WireCursor(entries.base, value.start, value.end)
            if case .map(let inner)? = try? contents.value() {
                let map = unsafe WireCursor(entries.base, inner.start, inner.end)
                if map.isAtEnd {
                    body(path, true)
                } else if (try? map.vector()) != nil {
                    body(path, false)
                } else {
                    forEachLeaf(map, ValueWireTag.mapEntry, &path, body)
                }
            } else {
                body(path, false)
            }
            path.removeLast()
        }
    }

    private static func contains(_ path: [String], in fields: RawSpan) -> Bool {
        unsafe fields.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return false }
            return unsafe WireCursor(base, 0, buffer.count).find(path[...], ValueWireTag.documentField) != nil
        }
    }
}

/// Paths of field names, which are equal if their bytes are.
extension [String] {
    /// The path as a key of sets.
    var exact: [UTF8Text] { map { UTF8Text($0) } }

    /// Whether the first names are those of another path.
    func begins(with path: [String]) -> Bool { starts(with: path) { $0.hasSameUTF8(as: $1) } }
}

extension WireCursor {
    /// The value at a path of names, starting from the entries of a map; nil if there is none.
    func find(_ path: ArraySlice<String>, _ entryTag: UInt8) -> ValueRange? {
        guard let name = path.first else { return nil }
        let nameCount = name.utf8.count
        var entries = self
        var found: ValueRange?
        while let (key, value) = try? entries.nextEntry(entryTag) {
            if key.end - key.start == nameCount, unsafe bytes(key).elementsEqual(name.utf8) { found = value }
        }
        guard let found, path.count > 1 else { return found }
        var contents = unsafe WireCursor(base, found.start, found.end)
        guard case .map(let inner)? = try? contents.value() else { return nil }
        return unsafe WireCursor(base, inner.start, inner.end).find(path.dropFirst(), ValueWireTag.mapEntry)
    }
}
