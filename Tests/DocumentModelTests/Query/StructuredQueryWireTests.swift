// Query messages on the wire: round trips, what is refused, and bounded recursion.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct StructuredQueryWireTests {
    static let name = try! FieldPath("a.`b-c`")

    static let queries: [StructuredQuery] = [
        StructuredQuery(),
        StructuredQuery(from: [CollectionSelector(collectionID: "users")]),
        StructuredQuery(
            select: Projection(fields: [.documentName, name]),
            from: [CollectionSelector(collectionID: "", allDescendants: true)],
            filter: .and([
                .field(name, .equal, EncodedValue(.integer(-3))),
                .or([.unary(name, .isNotNull), .field(name, .isIn, EncodedValue(.array([.null, .string("é")])))]),
            ]),
            orderBy: [Order(field: name, direction: .descending), Order(field: .documentName)],
            startAt: Cursor(values: [EncodedValue(.double(1.5))], before: true),
            endAt: Cursor(
                values: [
                    EncodedValue(.boolean(false)),
                    EncodedValue(.reference("projects/p/databases/d/documents/c/__id-9223372036854775808__")),
                ], before: false),
            offset: 7, limit: 0),
        StructuredQuery(
            from: [CollectionSelector(collectionID: "c")],
            findNearest: FindNearest(
                vectorField: name, queryVector: EncodedValue(.array([.double(1)])), distanceMeasure: .cosine, limit: 5,
                distanceResultField: "my-dist.`x", distanceThreshold: 0)),
    ]

    @Test(arguments: queries)
    func `A query reads back as it was written`(query: StructuredQuery) throws {
        var writer = ByteBuffer()
        query.encode(into: &writer)
        let again = try StructuredQuery(wire: writer.bytes)
        expectEqual(again, query)
    }

    @Test
    func `Unknown fields are skipped`() throws {
        var writer = ByteBuffer()
        writer.appendField(99, string: "later")
        Self.queries[2].encode(into: &writer)
        writer.appendField(98, varint: 5)
        let again = try StructuredQuery(wire: writer.bytes)
        expectEqual(again, Self.queries[2])
    }

    @Test
    func `Timestamps in operands are floored to microseconds`() throws {
        var writer = ByteBuffer()
        writer.appendField(10, timestamp: TimestampValue(seconds: -1, nanoseconds: 1_999))
        let operand = try EncodedValue(operand: writer.bytes)
        expectEqual(operand, EncodedValue(.timestamp(TimestampValue(seconds: -1, nanoseconds: 1_000))))
    }

    @Test(arguments: [
        ("/c/a", true), ("/c/__id7__", true), ("/c/__x__", true), ("/__c__/a/d/e", true), ("", false), ("/", false),
        ("/c", false), ("/c/a/d", false), ("/c/..", false),
    ])
    func `References in operands and cursors name documents, whose ids may be reserved`(
        path: String, isLegal: Bool
    ) throws {
        let reference = Value.reference("projects/p/databases/d/documents" + path)
        for value in [reference, [reference], ["k": reference]] as [Value] {
            let bytes = value.wireBytes
            expectEqual((try? EncodedValue(operand: bytes.byteSpan)) != nil, isLegal)
            expectEqual((try? EncodedValue(listOperand: bytes.byteSpan)) != nil, isLegal)
            var cursor = ByteBuffer()
            cursor.appendField(1, bytes: bytes)
            expectEqual((try? Cursor(wire: cursor.bytes)) != nil, isLegal)
        }
    }

    @Test(arguments: [(100, true), (101, false), (20_000, false)])
    func `Filters nest up to the bound and not beyond`(levels: Int, isLegal: Bool) {
        // Built from the inside out: each level wraps the bytes so far.
        var bytes: [UInt8] = []
        var leaf = ByteBuffer()
        Filter.unary(Self.name, .isNull).encode(into: &leaf)
        bytes = leaf.copyBytes()
        for _ in 0..<levels {
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 1) { writer in
                writer.appendField(1, varint: 1)
                writer.appendField(2, bytes: bytes)
            }
            bytes = writer.copyBytes()
        }
        var query = ByteBuffer()
        query.appendField(3, bytes: bytes)
        let result = Result { () throws(RequestError) in try StructuredQuery(wire: query.bytes) }
        switch result {
        case .success: expect(isLegal)
        case .failure(let error):
            expect(!isLegal)
            expectEqual(error.code, .invalidArgument)
        }
    }

    @Test
    func `Every truncation of a query is refused or reads as a query, and never traps`() throws {
        for query in Self.queries {
            var writer = ByteBuffer()
            query.encode(into: &writer)
            for length in 0..<writer.count {
                do {
                    _ = try StructuredQuery(wire: writer.bytes.extracting(first: length))
                } catch {
                    expectEqual(error.code, .invalidArgument)
                }
            }
        }
    }

    @Test
    func `Aggregations read back as they were written`() throws {
        let query = StructuredAggregationQuery(
            query: Self.queries[1],
            aggregations: [
                Aggregation(.count(upTo: nil)), Aggregation(.count(upTo: 5), alias: "five"),
                Aggregation(.sum(Self.name)), Aggregation(.average(Self.name), alias: "mean"),
            ])
        var writer = ByteBuffer()
        query.encode(into: &writer)
        let again = try StructuredAggregationQuery(wire: writer.bytes)
        expectEqual(again, query)
    }
}
