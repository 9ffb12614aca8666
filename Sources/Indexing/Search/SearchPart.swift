// What an index for searches holds: the words of texts, and the places of points.

internal import Basics
package import DocumentModel
package import TextAnalysis

extension IndexShape {
    /// The fields of an index for searches, in place of `parts`.
    package struct SearchPart: Sendable, Hashable {
        /// Fields whose words are searched: strings, and strings in arrays.
        package var texts: [FieldPath]
        /// Fields with geo points.
        package var points: [FieldPath]
        /// The language of the texts.
        package var language: TextLanguage

        package init(texts: [FieldPath], points: [FieldPath] = [], language: TextLanguage = .english) {
            self.texts = texts
            self.points = points
            self.language = language
        }

        /// Fields of both kinds that an index may have.
        package static let fieldsMax = 16
        /// Indexes for searches that a collection group may have: each of them analyses every document that is
        /// written.
        package static let indexesPerGroupMax = 4

        var words: [String] { texts.map { "\($0) TEXT" } + points.map { "\($0) GEO" } }

        /// The fields as `firestore.indexes.json` writes them.
        var jsonFields: [String] {
            let text =
                "{\"textSpec\":{\"indexSpecs\":[{\"indexType\":\"TOKENIZED\",\"matchType\":\"MATCH_GLOBALLY\"}]}}"
            return texts.map { "{\"fieldPath\":\(JSONText.quoted("\($0)")),\"searchConfig\":\(text)}" }
                + points.map { "{\"fieldPath\":\(JSONText.quoted("\($0)")),\"searchConfig\":{\"geoSpec\":{}}}" }
        }

        /// - Throws: `INVALID_ARGUMENT` for no field, too many or one that occurs twice.
        func check(_ collectionID: String) throws(RequestError) {
            let fields = texts + points
            if fields.isEmpty { throw .invalidArgument("An index of \(collectionID) has no field.") }
            if fields.count > Self.fieldsMax {
                throw .invalidArgument("An index for searches may have \(Self.fieldsMax) fields (\(collectionID)).")
            }
            if Set(fields).count < fields.count || fields.contains(where: \.isDocumentName) {
                throw .invalidArgument(
                    "An index for searches of \(collectionID) has a field twice, or the name of the document.")
            }
        }

        // MARK: Layout

        private static let textKind: UInt8 = 5
        private static let pointKind: UInt8 = 6

        func append(to writer: inout ByteBuffer) {
            writer.appendVarint(UInt64(language.code.utf8.count))
            writer.append(utf8: language.code)
            for (kind, fields) in [(Self.textKind, texts), (Self.pointKind, points)] {
                for field in fields {
                    writer.append(byte: kind)
                    let path = "\(field)"
                    writer.appendVarint(UInt64(path.utf8.count))
                    writer.append(utf8: path)
                }
            }
        }

        /// Reads what `append` wrote; nil when it is something else.
        init?(_ reader: inout WireReader) {
            guard let code = try? reader.lengthDelimited(),
                let language = try? TextLanguage(tag: String(repairingUTF8: code))
            else { return nil }
            self.init(texts: [], language: language)
            while !reader.isAtEnd {
                let kind = reader.bytes[byteAt: reader.position]
                reader.position += 1
                guard let path = try? reader.lengthDelimited(), let field = try? FieldPath(String(repairingUTF8: path))
                else { return nil }
                switch kind {
                case Self.textKind: texts.append(field)
                case Self.pointKind: points.append(field)
                default: return nil
                }
            }
            if texts.isEmpty, points.isEmpty { return nil }
        }
    }
}

extension IndexDeclaration {
    /// - Throws: `INVALID_ARGUMENT` for indexes for searches that are not possible.
    func checkSearches() throws(RequestError) {
        var counts: [UTF8Text: Int] = [:]
        for shape in indexes {
            guard let search = shape.search else { continue }
            try search.check(shape.collectionID)
            counts[shape.collection, default: 0] += 1
        }
        let most = IndexShape.SearchPart.indexesPerGroupMax
        if let group = counts.first(where: { $0.value > most })?.key {
            throw .invalidArgument("A collection group may have \(most) indexes for searches (\(group)).")
        }
    }

    /// Whether it has indexes for searches.
    package var hasSearches: Bool { indexes.contains { $0.search != nil } }
}
