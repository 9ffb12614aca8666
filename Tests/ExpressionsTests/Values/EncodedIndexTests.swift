// Look-ups by an index against look-ups by a walk.

import DocumentModel
import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct EncodedIndexTests {
    private func text(_ operand: Operand) -> String? {
        if case .string(let text) = operand { text } else { nil }
    }

    @Test(arguments: [0, 1, 2, 3, 100, 1_000])
    func `An index finds what a walk finds`(count: Int) throws {
        var generator = SeededGenerator(seed: UInt64(count))
        func name() -> String {
            String(repeating: "é", count: generator.below(3)) + "\(generator.below(2 * count + 2))"
        }
        let fields = MapValue(Set((0..<count).map { _ in name() }).map { ($0, .string("v" + $0)) })
        let slice = EncodedSlice(documentFields: fields.documentBytes)
        let index = try #require(EncodedIndex(slice))
        for wanted in ["", "z"] + (0..<200).map({ _ in name() }) {
            expectEqual(text(index.member(wanted)), text(slice.member(wanted)), "\(wanted)")
        }
    }

    @Test
    func `Names that do not ascend have no index`() {
        let (first, second) = (
            MapValue([("a", .integer(1))]).documentBytes, MapValue([("b", .integer(2))]).documentBytes
        )
        expect(EncodedIndex(EncodedSlice(documentFields: first + second)) != nil)
        expectNil(EncodedIndex(EncodedSlice(documentFields: second + first)))
        expectNil(EncodedIndex(EncodedSlice(documentFields: first + first)))
        expectNil(EncodedIndex(EncodedSlice(documentFields: first.dropLast() + [])))
    }
}
