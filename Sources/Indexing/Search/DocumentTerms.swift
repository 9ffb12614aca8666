// From a document to its entries in an index for searches.

internal import Basics
internal import DocumentModel
internal import TextAnalysis

/// The words and places of one document.
struct DocumentTerms {
    /// The middle of each entry's key, from the kind to the document, with what follows the document key in its value.
    private(set) var entries: [[UInt8]: [UInt8]] = [:]
    /// Words of each text field.
    private(set) var lengths: [Int]

    private struct Occurrence {
        let field: Int
        let place: UInt32
        let isItself: Bool
    }

    /// - Parameter fields: of the document; empty if there is none.
    init(_ fields: RawSpan, _ search: IndexShape.SearchPart, _ analyzer: TextAnalyzer) {
        lengths = [Int](repeating: 0, count: search.texts.count)
        if fields.isEmpty { return }
        var found: [[UInt8]: [Occurrence]] = [:]
        for (number, field) in search.texts.enumerated() {
            guard let value = DocumentBytes.value(at: field, in: fields), let wire = WireValue(value) else { continue }
            var next: UInt32 = 0
            if wire.typeClass == .string { note(wire.payload, number, &next, &found, analyzer) }
            guard var elements = wire.elements else { continue }
            while let element = elements.next() {
                guard let wire = WireValue(element), wire.typeClass == .string else { continue }
                note(wire.payload, number, &next, &found, analyzer)
                // No phrase leads from one element to the next.
                next += 1
            }
        }
        for (number, field) in search.points.enumerated() {
            guard let value = DocumentBytes.value(at: field, in: fields), let point = WireValue(value)?.geoPoint
            else { continue }
            var key = ByteBuffer(capacity: 16)
            key.append(byte: SearchKey.Kind.place.rawValue)
            key.append(byte: UInt8(number))
            key.append(bigEndian: GeoCell(point).code)
            entries[key.copyBytes()] = []
        }
        for (key, occurrences) in found { entries[key] = posting(occurrences) }
    }

    private mutating func note(
        _ text: RawSpan, _ field: Int, _ next: inout UInt32, _ found: inout [[UInt8]: [Occurrence]],
        _ analyzer: TextAnalyzer
    ) {
        let words = analyzer.words(of: text)
        lengths[field] += words.count
        for index in 0..<words.count {
            let word = words[index]
            let occurrence = Occurrence(field: field, place: next, isItself: word.stem == word.folded)
            next += 1
            add(occurrence, .stem, word.stem, &found)
            if !occurrence.isItself { add(occurrence, .word, word.folded, &found) }
        }
    }

    private func add(
        _ occurrence: Occurrence, _ kind: SearchKey.Kind, _ word: [UInt8], _ found: inout [[UInt8]: [Occurrence]]
    ) {
        let key = [kind.rawValue] + word + [SearchKey.wordEnd]
        if found.count >= SearchKey.entriesPerDocumentMax, found[key] == nil { return }
        found[key, default: []].append(occurrence)
    }

    /// Fields come in their order, and in each of them the places.
    private func posting(_ occurrences: [Occurrence]) -> [UInt8] {
        var writer = ByteBuffer(capacity: 16)
        var start = 0
        while start < occurrences.count {
            let field = occurrences[start].field
            var end = start
            while end < occurrences.count, occurrences[end].field == field { end += 1 }
            writer.appendVarint(UInt64(field))
            writer.appendVarint(UInt64(lengths[field]))
            writer.appendVarint(UInt64(end - start))
            var before: UInt32 = 0
            for occurrence in occurrences[start..<end] {
                writer.appendVarint(UInt64(occurrence.place - before) << 1 | (occurrence.isItself ? 0 : 1))
                before = occurrence.place
            }
            start = end
        }
        return writer.copyBytes()
    }

    /// What the document adds to the statistics.
    var counts: SearchCounts {
        var counts = SearchCounts(fields: lengths.count)
        counts.documents = lengths.contains { $0 > 0 } ? 1 : 0
        for (field, length) in lengths.enumerated() where length > 0 {
            counts.fields[field] = SearchCounts.Field(documents: 1, words: Int64(length))
        }
        return counts
    }
}
