// JSON lines to documents and back: the table of docs/json-lines.md, and hostile lines.

import DocumentJSON
import DocumentModel
import TestSupport
import Testing

private let database = "projects/p/databases/(default)"

private func parse(_ text: String, idField: String? = nil) throws -> (name: JSONLineParser.Name, fields: Value) {
    var parser = JSONLineParser(database: database, idField: idField)
    let name = try parser.parse(Array(text.utf8).span)
    return (name, .map(try parser.withDocumentBytes { try MapValue(documentBytes: $0) }))
}

private func value(_ text: String) throws -> Value {
    guard case .map(let map) = try parse("{\"v\":\(text)}").fields, let value = map["v"] else {
        throw JSONLineError("no value", at: 0)
    }
    return value
}

private func roundTrip(_ line: String) throws -> String {
    var parser = JSONLineParser(database: database)
    guard case .path(let name) = try parser.parse(Array(line.utf8).span) else { throw JSONLineError("no name", at: 0) }
    var writer = JSONLineWriter(database: database)
    return String(decoding: try parser.withDocumentBytes { try writer.line(name: name, fields: $0) }, as: UTF8.self)
}

@Suite(.timeLimit(.minutes(20)))
struct JSONLineTests {
    @Test(arguments: [
        ("null", Value.null), ("true", .boolean(true)), ("false", .boolean(false)), ("0", .integer(0)),
        ("-0", .integer(0)),
        ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)), ("3.0", .double(3)),
        ("1e2", .double(100)), ("5e-324", .double(.leastNonzeroMagnitude)), ("\"\"", .string("")),
        ("\"\\u00e9\\ud83d\\ude00\\n\"", .string("é😀\n")),
        ("{\"$bytes\":\"aGk=\"}", .bytes(Array("hi".utf8))), ("{\"$bytes\":\"\"}", .bytes([])),
        ("{\"$timestamp\":\"1970-01-01T00:00:00Z\"}", .timestamp(TimestampValue(microseconds: 0))),
        ("{\"$timestamp\":\"1969-12-31T23:59:59.999999999Z\"}", .timestamp(TimestampValue(microseconds: -1))),
        (
            "{\"$timestamp\":\"2000-02-29T12:00:00.5+01:30\"}",
            .timestamp(TimestampValue(microseconds: 951_820_200_500_000))
        ),
        ("{\"$reference\":\"a/b\"}", .reference("\(database)/documents/a/b")),
        (
            "{\"$reference\":\"projects/q/databases/d/documents/a/b\"}",
            .reference("projects/q/databases/d/documents/a/b")
        ),
        ("{\"$reference\":\"projects/a\"}", .reference("\(database)/documents/projects/a")),
        ("{\"$geoPoint\":[52.5,-13]}", .geoPoint(GeoPointValue(latitude: 52.5, longitude: -13))),
        ("[]", .array([])),
        ("[1, \"a\" ,{}]", .array([.integer(1), .string("a"), .map(MapValue())])),
        ("{\"$double\":\"-Infinity\"}", .double(-.infinity)),
    ])
    func `Every type has its text`(text: String, expected: Value) throws {
        try expectEqual(value(text), expected)
    }

    @Test(
        "A canonical line comes back byte for byte",
        arguments: [
            #"{"__name__":"a"}"#,
            #"{"__name__":"a/b/c","z":1}"#,
            #"{"__name__":"a","a":-0.0,"b":1e+300,"c":0.1,"d":{"$double":"NaN"},"#
                + #""e":[{"$vector":[1.0,{"$double":"Infinity"}]},{"$vector":[]}]}"#,
            #"{"__name__":"a","m":{"$map":{"$bytes":1}},"n":{"$a":1,"$b":2},"o":{"$map":{"$map":{}}}}"#,
            #"{"__name__":"a","s":"\"\\/\b\f\n\r\t\u0000\u001f é😀","t":{"$timestamp":"0001-01-01T00:00:00Z"},"#
                + #""u":{"$timestamp":"9999-12-31T23:59:59.999999Z"}}"#,
            #"{"__name__":"a","q":1,"r":{"$reference":"x/y"}}"#,
            #"{"__name__":"a","r":{"$reference":"\#(database)/documents/projects/q/databases/d/documents/x/y"}}"#,
            #"{"__name__":"a","r":{"$reference":"projects/x"}}"#,
        ])
    func canonicalLinesComeBack(line: String) throws {
        let written = try roundTrip(line)
        expectEqual(written, line)
        try expectEqual(roundTrip(written), written)
    }

    @Test
    func `Members come out in the order of their names' bytes, the name first`() throws {
        let line = #"{"b":1,"é":2,"a":{"y":[{"d":1,"c":2}],"x":1},"__name__":"n","B":3}"#
        try expectEqual(roundTrip(line), #"{"__name__":"n","B":3,"a":{"x":1,"y":[{"c":2,"d":1}]},"b":1,"é":2}"#)
    }

    @Test(
        "A bad line says why",
        arguments: [
            ("", "one JSON object"), ("[]", "one JSON object"), ("{", "expected a string"), ("{}x", "text after"),
            (#"{"a":1,}"#, "expected a string"),
            (#"{"a"1}"#, "expected ':'"), (#"{"a":01}"#, "must not begin with 0"), (#"{"a":1.}"#, "digit"),
            (#"{"a":1e}"#, "digit"), (#"{"a":-}"#, "expected a value"),
            (#"{"a":tru}"#, "expected a value"), (#"{"a":9223372036854775808}"#, "more than 64 bits"),
            (#"{"a":1e999}"#, "too large"),
            (#"{"a":1,"a":2}"#, "duplicate"), (#"{"b":1,"a":2,"b":3}"#, "duplicate"), (#"{"a":"\ud800"}"#, "surrogate"),
            (#"{"a":"\x"}"#, "escape"),
            (#"{"a":"\u12"}"#, "hexadecimal"), ("{\"a\":\"\u{1}\"}", "control character"),
            (#"{"a":"x"#, "unterminated"), (#"{"a":[[1]]}"#, "must not directly contain an array"),
            (#"{"":1}"#, "must not be empty"), (#"{"a":{"$timestmap":"x"}}"#, "unknown form $timestmap"),
            (#"{"a":{"$timestamp":"2026-13-01T00:00:00Z"}}"#, "RFC 3339"),
            (#"{"a":{"$timestamp":"2026-02-29T00:00:00Z"}}"#, "RFC 3339"), (#"{"a":{"$bytes":"a"}}"#, "base64"),
            (#"{"a":{"$bytes":"aGl="}}"#, "base64"),
            (#"{"a":{"$geoPoint":[91,0]}}"#, "geoPoint"), (#"{"a":{"$geoPoint":[1]}}"#, "geoPoint"),
            (#"{"a":{"$vector":["x"]}}"#, "number"),
            (#"{"__name__":""}"#, "empty"), (#"{"__name__":1}"#, "string"),
            (#"{"__name__":"a","__name__":"b"}"#, "twice"),
        ])
    func badLinesSayWhy(line: String, reason: String) {
        let error = #expect(throws: JSONLineError.self) { try parse(line) }
        expectEqual(error?.reason.contains(reason), true, "\(String(describing: error))")
    }

    @Test
    func `A reason is short, however long what is wrong is`() {
        let long = String(repeating: "9", count: 100_000)
        for value in ["1e\(long)", long, "{\"$\(long)\":1}", "{\"$double\":\"\(long)\"}"] {
            let error = #expect(throws: JSONLineError.self) { try parse("{\"a\":\(value)}") }
            expect((1...200).contains(error?.reason.utf8.count ?? 0), "\(value.prefix(20))")
        }
    }

    @Test
    func `Nesting is bounded before the stack is`() throws {
        let deep = String(repeating: "{\"a\":", count: 100_000)
        #expect(throws: JSONLineError.self) { try parse(deep) }
        let twenty = String(repeating: "{\"a\":", count: 20) + "1" + String(repeating: "}", count: 20)
        _ = try parse("{\"a\":\(twenty)}")
        #expect(throws: JSONLineError.self) { try parse("{\"a\":{\"a\":\(twenty)}}") }
    }

    @Test
    func `The id comes from __name__ or from the field named`() throws {
        try expectEqual(parse(#"{"__name__":"x/y/z","a":1}"#).name, .path("x/y/z"))
        try expectEqual(parse(#"{"a":1}"#).name, .none)
        let (name, fields) = try parse(#"{"b":2,"isbn":"1-2","a":1}"#, idField: "isbn")
        expectEqual(name, .path("1-2"))
        expectEqual(fields, ["a": 1, "b": 2, "isbn": "1-2"])
        try expectEqual(parse(#"{"isbn":-7}"#, idField: "isbn").name, .path("-7"))
        for bad in [
            #"{"isbn":null}"#, #"{"x":1}"#, #"{"isbn":""}"#, #"{"isbn":"a/b"}"#, #"{"__name__":"n","isbn":"i"}"#,
        ] {
            #expect(throws: JSONLineError.self) { try parse(bad, idField: "isbn") }
        }
    }

    @Test
    func `Invalid UTF-8 is refused where it stands`() throws {
        var parser = JSONLineParser(database: database)
        let bytes = Array("{\"a\":\"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)
        let error = #expect(throws: JSONLineError.self) { _ = try parser.parse(bytes.span) }
        expectEqual(error?.offset, 6)
    }
}
