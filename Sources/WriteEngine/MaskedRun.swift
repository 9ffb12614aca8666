// Masked updates of one document that follow each other in a commit, made into one.
//
// One masked update of a large document rewrites all of it. Many in a row, each of a few fields, would rewrite it as
// many times; where no field of one lies inside a field of another they come to the same as one update of all the
// fields.

package import DocumentModel

extension Write {
    /// Whether the write only sets or removes fields of a document that is there already.
    package var isMaskedUpdate: Bool {
        guard kind == .update, mask != nil, transforms.isEmpty else { return false }
        return switch precondition {
        case nil, .exists(true): true
        case .exists(false), .updateTime: false
        }
    }
}

extension FieldEdits {
    /// The edits of masked updates applied one after the other; nil if they do not come to the same as one update.
    ///
    /// - Parameter run: positions in the list. The edits' ranges refer to the bytes of the list.
    static func merging(_ run: Range<Int>, of list: borrowing WriteList) throws(InvalidDocument) -> FieldEdits? {
        var edits: [FieldEdit] = []
        for position in run {
            let write = list.writes[position]
            for edit in try FieldEdits(setting: write.mask?.paths ?? [], from: list.fields(of: write)).edits {
                let offset = write.fields.lowerBound
                let value = edit.value.map { $0.lowerBound + offset..<$0.upperBound + offset }
                edits.append(FieldEdit(path: edit.path, value: value))
            }
        }
        // Those of one path stay in the order of the writes.
        edits.sort(byPath: \.path)
        var merged: [FieldEdit] = []
        for edit in edits {
            guard let last = merged.last, last.path.isPrefix(of: edit.path) else {
                merged.append(edit)
                continue
            }
            // The later of two updates of one field counts. But setting a field inside a map makes the map, which
            // removing the field then leaves.
            if last.path.count != edit.path.count || (edit.value == nil && edit.path.count > 1) { return nil }
            merged[merged.count - 1] = edit
        }
        return FieldEdits(merged)
    }
}
