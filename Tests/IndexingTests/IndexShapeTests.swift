// Shapes of indexes as stored bytes.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct IndexShapeTests {
    @Test
    func `A definition is read as it was written, and nothing else is`() throws {
        for parts in [[], [IndexShape.Part(field: try FieldPath("a.b"), kind: .descending)]] {
            let shape = IndexShape(
                collectionID: "c", isGroup: true, parts: parts,
                vector: IndexShape.VectorPart(field: try FieldPath("`é`"), dimension: 2_048))
            var writer = ByteBuffer(capacity: 64)
            shape.append(to: &writer)
            let bytes = writer.copyBytes()
            expectEqual(IndexShape(bytes.byteSpan), shape)
            for count in 0..<bytes.count {
                let cut = Array(bytes.prefix(count))
                expect(IndexShape(cut.byteSpan) != shape)
            }
            // A vector comes last.
            let more = bytes + [1, 1, 97]
            expectNil(IndexShape(more.byteSpan))
        }
    }

    @Test
    func `An index that is declared twice, or by an override too, is kept once, in the order of declaration`() throws {
        let fields = try ["b", "a", "c", "a", "b"].map { try FieldPath($0) }
        let declaration = IndexDeclaration(
            indexes: fields.map { .group("books", $0, .ascending) },
            fieldOverrides: try ["d", "c", "d"].map { name in
                let modes: FieldOverride.Modes = [.groupAscending, .groupContains]
                return FieldOverride(collectionID: "books", field: try FieldPath(name), indexes: modes)
            })
        let expected: [(String, IndexShape.Part.Kind)] = [
            ("b", .ascending), ("a", .ascending), ("c", .ascending), ("d", .ascending), ("d", .contains),
            ("c", .contains),
        ]
        try expectEqual(declaration.shapes, expected.map { .group("books", try FieldPath($0.0), $0.1) })
    }
}
