// Lists and maps in document bytes.

import Basics
import DocumentModel
import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct EncodedSliceTests {
    static let fields: MapValue = [
        "n": 3, "s": "text", "list": [1, "two", ["three": 3]], "map": ["inner": ["leaf": true]], "none": nil,
        "ref": .reference("projects/p/databases/d/documents/a/b"), "small": ["__int__": 42],
    ]
    let slice = EncodedSlice(documentFields: EncodedSliceTests.fields.documentBytes)

    @Test
    func `Scalars are decoded, lists and maps stay encoded`() {
        guard case .integer(3) = slice.member("n") else { return expect(Bool(false), "n is 3") }
        guard case .string("text") = slice.member("s") else { return expect(Bool(false), "s is a text") }
        guard case .encodedMap(let map) = slice.member("map"), case .encodedMap(let inner) = map.member("inner"),
            case .boolean(true) = inner.member("leaf")
        else { return expect(Bool(false), "a path leads through maps") }
        guard case .reference = slice.member("ref") else { return expect(Bool(false), "ref is a reference") }
    }

    @Test
    func `A field that is missing is absent, a field that is null is null`() {
        guard case .absent = slice.member("other") else { return expect(Bool(false), "other is absent") }
        guard case .null = slice.member("none") else { return expect(Bool(false), "none is null") }
        expect(slice.hasMember("none") && !slice.hasMember("other"))
    }

    @Test
    func `A 32-bit integer of BSON is a number`() {
        guard case .integer(42) = slice.member("small") else { return expect(Bool(false), "small is 42") }
    }

    @Test
    func `Paths lead into maps, and not into vectors and BSON values, encoded or not`() throws {
        let values: [(MapValue, String, Bool)] = [
            (["a": 1], "a", true), (["__a": 1], "__a", true), ([:], "a", false),
            (["__oid__": "0123456789abcdef01234567"], "__oid__", false), (["__min__": nil], "__min__", false),
            (["__regex__": ["pattern": "a", "options": ""]], "__regex__", false),
            (["__type__": "__vector__", "value": [1.0]], "value", false),
        ]
        for (map, name, leads) in values {
            let encoded = EncodedSlice(documentFields: MapValue(["m": .map(map)]).documentBytes).member("m")
            for operand in [encoded, Operand(Value.map(map))] {
                let isFound = if case .absent = operand.field(name) { false } else { true }
                expectEqual(isFound, leads, "\(name) of \(operand)")
            }
        }
    }

    @Test
    func `Elements and entries are counted and decoded`() {
        guard case .encodedList(let list) = slice.member("list") else { return expect(Bool(false), "a list") }
        expectEqual(list.elementCount, 3)
        expectEqual(list.elements.count, 3)
        guard case .string("two") = list.element(at: 1), case .absent = list.element(at: 3) else {
            return expect(Bool(false), "elements by index")
        }
        expectEqual(slice.entryCount, 7)
        expectEqual(slice.entries.keys, ["list", "map", "n", "none", "ref", "s", "small"])
    }

    @Test
    func `Bytes that are not a document give absent values`() {
        for bytes: [UInt8] in [[0x12], [0x12, 0x05, 0x0A], [0xFF, 0xFF], [0x12, 0x04, 0x0A, 0x01, 0x61, 0x12]] {
            let slice = EncodedSlice(documentFields: bytes)
            if case .absent = slice.member("a") { continue }
            Issue.record("\(bytes) has a value")
        }
    }
}
