// Maps of operands.

import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct OperandMapTests {
    @Test
    func `Keys are sorted by bytes, and the last of several entries counts`() {
        let map = OperandMap([("b", .integer(1)), ("é", .integer(2)), ("a", .integer(3)), ("b", .integer(4))])
        expectEqual(map.keys, ["a", "b", "é"])
        guard case .integer(4)? = map["b"] else { return expect(Bool(false), "the last entry counts") }
        expectNil(map["c"])
    }

    @Test
    func `Keys that are equivalent in Unicode are different keys`() {
        let map = OperandMap([("\u{E9}", .integer(1)), ("e\u{301}", .integer(2))])
        expectEqual(map.count, 2)
        guard case .integer(1)? = map["\u{E9}"] else { return expect(Bool(false), "keys are compared by bytes") }
    }
}
