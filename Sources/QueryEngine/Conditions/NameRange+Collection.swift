// What a range of names means within one collection: a range of document ids.

import DocumentModel

extension NameRange {
    /// The ids of the collection's documents that lie in the range; nil if none can.
    func ids(in collection: [UInt8]) -> DocumentIDRange? {
        var range = DocumentIDRange()
        if let lower {
            switch lower.place(in: collection) {
            case .before: break
            case .after: return nil
            case .at(let id): range.lower = DocumentIDBound(id: id, isInclusive: lower.isInclusive)
            // The document itself precedes everything below it.
            case .below(let id): range.lower = DocumentIDBound(id: id, isInclusive: false)
            }
        }
        if let upper {
            switch upper.place(in: collection) {
            case .before: return nil
            case .after: break
            case .at(let id): range.upper = DocumentIDBound(id: id, isInclusive: upper.isInclusive)
            case .below(let id): range.upper = DocumentIDBound(id: id, isInclusive: true)
            }
        }
        return range
    }
}

extension NameRange.Bound {
    /// Where a bound lies, seen from the documents of one collection.
    enum Place: Equatable {
        /// Before all of them.
        case before
        /// At the document with this id.
        case at([UInt8])
        /// After the document with this id and before the next, among what lies below it.
        case below([UInt8])
        /// After all of them.
        case after
    }

    func place(in collection: [UInt8]) -> Place {
        let path = position.path
        if RelativePath.isBelow(path.byteSpan, collection.byteSpan) {
            let (id, isLast) = RelativePath.nextSegment(of: path.byteSpan, below: collection.byteSpan)
            return isLast ? .at(id) : .below(id)
        }
        return ResourcePath.compare(path.byteSpan, collection.byteSpan) <= 0 ? .before : .after
    }
}
