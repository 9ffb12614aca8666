// Shapes of indexes as stored bytes.

import Basics
import DocumentModel
import StoreTestSupport
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
            #expect(IndexShape(bytes.byteSpan) == shape)
            for count in 0..<bytes.count {
                let cut = Array(bytes.prefix(count))
                #expect(IndexShape(cut.byteSpan) != shape)
            }
            // A vector comes last.
            let more = bytes + [1, 1, 97]
            #expect(IndexShape(more.byteSpan) == nil)
        }
    }
}
