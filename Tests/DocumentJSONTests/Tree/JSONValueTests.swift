import TestSupport
import Testing

@testable import DocumentJSON

@Suite(.timeLimit(.minutes(20))) struct JSONValueTests {
    private func read(_ text: String) throws -> JSONValue { try JSONValue.read(Array(text.utf8)) }

    private func fault(_ text: String) -> JSONValue.Fault? {
        do throws(JSONValue.Fault) {
            _ = try JSONValue.read(Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test
    func `Values, and back`() throws {
        let text = #"{"a":[1,-2.5,"x\n\"é",true,false,null],"b":{}}"#
        let value = try read(" \(text)\n")
        expectEqual(value["a"]?.elements?.count, 6)
        expectEqual(value["a"]?.elements?[1], .double(-2.5))
        expectNil(value["c"])
        expectEqual(value.json, text)
        try expectEqual(read(value.jsonLines), value)
        try expectEqual(read("18446744073709551616"), .double(18_446_744_073_709_551_616))
        try expectEqual(read("-9223372036854775808"), .integer(.min))
    }

    @Test(arguments: [
        "", " ", "{", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "01", "+1", "1.", "nul", "\"", "\"\u{1}\"",
        #""\ud800""#, #""\x""#, "1 2", "[1]x", "1e999", "'a'", "[1 2]",
    ])
    func `What is not one JSON value is refused`(text: String) {
        expectEqual(fault(text)?.isDuplicateName, false)
    }

    @Test
    func `Names that occur twice are refused, in other spellings too`() {
        for text in [#"{"a":1,"a":1}"#, #"{"a":1,"\u0061":1}"#, #"[{"b":{"a":1,"a":2}}]"#, "{\"é\":1,\"e\u{301}\":1}"] {
            expectEqual(fault(text)?.isDuplicateName, true)
        }
    }

    @Test
    func `Depth is bounded`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try read(nested(32)) }
        expectEqual(fault(nested(34))?.isDuplicateName, false)
        expectEqual(fault(String(repeating: "{\"a\":", count: 100_000))?.isDuplicateName, false)
    }

    @Test(
        arguments: [
            (.integer(5), 5), (.double(5.9), 5), (.double(-0.5), -1), (.integer(.max), nil), (.integer(.min), nil),
            (.double(1e20), nil), (.double(-1e300), nil), (.string("5"), nil), (.null, nil),
        ] as [(JSONValue, Int64?)])
    func `Moments are whole numbers of 53 bits`(value: JSONValue, expected: Int64?) {
        expectEqual(value.wholeNumber, expected)
    }
}
