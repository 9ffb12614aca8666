// Messages to JSON and back.

import Basics
import DocumentModel
import FirestoreJSON
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct JSONMessageTests {
    private static let parameters = ParameterReader()
    private static let listing = Schema.shared.message("google.firestore.v1.ListDocumentsRequest")

    private func wire(_ json: String, _ type: String = "Value") throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        let bytes = Array(json.utf8)
        try reader.append(bytes.byteSpan, Schema.shared.message("google.firestore.v1.\(type)"), to: &output)
        return output.copyBytes()
    }

    private func json(_ wire: [UInt8], _ type: String = "Value", isPretty: Bool = false) throws -> String {
        var output = ByteBuffer()
        let writer = JSONMessageWriter(isPretty: isPretty)
        try writer.append(wire.byteSpan, Schema.shared.message("google.firestore.v1.\(type)"), to: &output)
        return String(repairingUTF8: output.bytes)
    }

    private func encoded(_ value: Value) -> [UInt8] {
        var writer = ByteBuffer()
        value.encode(into: &writer)
        return writer.copyBytes()
    }

    @Test(arguments: [
        (Value.null, #"{"nullValue":null}"#), (.boolean(false), #"{"booleanValue":false}"#),
        (.integer(.min), #"{"integerValue":"-9223372036854775808"}"#), (.integer(0), #"{"integerValue":"0"}"#),
        (.double(0.1), #"{"doubleValue":0.1}"#), (.double(3), #"{"doubleValue":3}"#),
        (.double(-0.0), #"{"doubleValue":-0}"#),
        (.double(1e300), #"{"doubleValue":1e+300}"#), (.double(.nan), #"{"doubleValue":"NaN"}"#),
        (.double(.infinity), #"{"doubleValue":"Infinity"}"#), (.double(-.infinity), #"{"doubleValue":"-Infinity"}"#),
        (.timestamp(TimestampValue(seconds: 0, nanoseconds: 0)), #"{"timestampValue":"1970-01-01T00:00:00Z"}"#),
        (
            .timestamp(TimestampValue(seconds: -1, nanoseconds: 500_000_000)),
            #"{"timestampValue":"1969-12-31T23:59:59.500Z"}"#
        ),
        (.timestamp(TimestampValue(microseconds: 1)), #"{"timestampValue":"1970-01-01T00:00:00.000001Z"}"#),
        (.string("a\"\\/\u{8}\n\r\t\u{c}\u{1f}\u{7f}é😀"), #"{"stringValue":"a\"\\/\b\n\r\t\f\u001f"# + "\u{7f}é😀\"}"),
        (.bytes([0, 1, 0xFE, 0xFF]), #"{"bytesValue":"AAH+/w=="}"#), (.bytes([]), #"{"bytesValue":""}"#),
        (
            .reference("projects/p/databases/d/documents/c/d"),
            #"{"referenceValue":"projects/p/databases/d/documents/c/d"}"#
        ),
        (.geoPoint(GeoPointValue(latitude: -1.5, longitude: 2)), #"{"geoPointValue":{"latitude":-1.5,"longitude":2}}"#),
        (.array([]), #"{"arrayValue":{}}"#),
        (.array([.null, .integer(1)]), #"{"arrayValue":{"values":[{"nullValue":null},{"integerValue":"1"}]}}"#),
        (.map(MapValue([])), #"{"mapValue":{}}"#),
        (.map(MapValue([("k", .boolean(true))])), #"{"mapValue":{"fields":{"k":{"booleanValue":true}}}}"#),
    ])
    func `Every type of value has its JSON, both ways`(value: Value, text: String) throws {
        try expectEqual(json(encoded(value)), text)
        let back = try wire(text)
        try expectEqual(json(back), text)
        let read = try Value(wire: back.byteSpan)
        if case .double(let number) = value, number.isNaN { return }
        expectEqual(read, value)
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `Random documents come back from JSON with the same bytes`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for round in 0..<300 {
            let fields = random.fields(depth: 5)
            var writer = ByteBuffer()
            Value.map(fields).encode(into: &writer)
            let bytes = writer.copyBytes()
            for isPretty in [false, true] {
                let text = try json(bytes, isPretty: isPretty)
                let back = try wire(text)
                expectEqual(back, bytes, "seed \(seed), round \(round): \(text)")
            }
        }
    }

    @Test(arguments: [
        (#"{"integerValue": 42}"#, Value.integer(42)), (#"{"integerValue":"42.0"}"#, .integer(42)),
        (#"{"integerValue":1e3}"#, .integer(1000)),
        (#"{"integerValue":9007199254740993}"#, .integer(9_007_199_254_740_993)),
        (#"{"integerValue":9007199254740993.0}"#, .integer(9_007_199_254_740_993)),
        (#"{"integerValue":"-90071992547409930e-1"}"#, .integer(-9_007_199_254_740_993)),
        (#"{"integerValue":9.223372036854775807E+18}"#, .integer(.max)), (#"{"integerValue":0.0e9}"#, .integer(0)),
        (#"{"integer_value":"-0"}"#, .integer(0)),
        (#"{"doubleValue":"1.5e2"}"#, .double(150)),
        (#"{"doubleValue":12345678901234567890}"#, .double(12_345_678_901_234_567_168)),
        (#"{"doubleValue":-0}"#, .double(-0.0)), (#"{"bytesValue":"_-8"}"#, .bytes([0xFF, 0xEF])),
        (#"{"bytesValue":"/+8="}"#, .bytes([0xFF, 0xEF])),
        (
            #"{"timestampValue":"2020-01-01T01:00:00+01:00"}"#,
            .timestamp(TimestampValue(seconds: 1_577_836_800, nanoseconds: 0))
        ),
        (#"{"nullValue":"NULL_VALUE"}"#, .null), (#"{"nullValue":0}"#, .null),
        (#"{"booleanValue":"true"}"#, .boolean(true)), (#"{"booleanValue": "false"}"#, .boolean(false)),
        (#" { "stringValue" : "\u0041\uD83D\uDE00" } "#, .string("A😀")),
        (#"{"string\u0056alue":"x","integerValue":null}"#, .string("x")),
    ])
    func `The lenient forms of the mapping are taken`(text: String, value: Value) throws {
        let bytes = try wire(text)
        let read = try Value(wire: bytes.byteSpan)
        expectEqual(read, value)
    }

    @Test(arguments: [
        (
            #"{"integerValue":"1","stringValue":"a"}"#, "Value",
            "Invalid value at 'string_value' (oneof), oneof field 'value_type' is already set."
        ),
        (#"{"stringValu":"a"}"#, "Value", "Unknown name \"stringValu\": Cannot find field."),
        (
            #"{"where":{"fieldFilter":{"feld":1}}}"#, "StructuredQuery",
            "Unknown name \"feld\" at 'where.field_filter': Cannot find field."
        ),
        (
            #"{"fields":{"a":{"integerValue":1.5}}}"#, "Document",
            "Invalid value at 'fields[\"a\"].integer_value': \"1.5\" is not a 64-bit integer."
        ),
        (#"{"integerValue":"9223372036854775808"}"#, "Value", "is not a 64-bit integer."),
        (#"{"integerValue":9223372036854775807.5}"#, "Value", "is not a 64-bit integer."),
        (#"{"integerValue":1e19}"#, "Value", "is not a 64-bit integer."),
        (#"{"integerValue":1e99999999999999999999}"#, "Value", "is not a 64-bit integer."),
        (#"{"integerValue":1e-9223372036854775808}"#, "Value", "is not a 64-bit integer."),
        (#"{"limit":"1e-9223372036854775808"}"#, "StructuredQuery", "is not a 32-bit integer."),
        (#"{"integerValue":true}"#, "Value", "expected a value (byte 16) at 'integer_value'."),
        (#"{"doubleValue":"inf"}"#, "Value", "is not a double."),
        (#"{"doubleValue":1e999}"#, "Value", "is not a double."),
        (#"{"booleanValue":"TRUE"}"#, "Value", "Invalid value at 'boolean_value': \"TRUE\" is not true or false."),
        (#"{"booleanValue":1}"#, "Value", "expected true or false (byte 16) at 'boolean_value'."),
        (#"{"bytesValue":"a"}"#, "Value", "is not base64."),
        (#"{"timestampValue":"yesterday"}"#, "Value", "is not an RFC 3339 timestamp."),
        (
            #"{"limit":2147483648}"#, "StructuredQuery",
            "Invalid value at 'limit': \"2147483648\" is not a 32-bit integer."
        ),
        (
            #"{"orderBy":[{"direction":"UP"}]}"#, "StructuredQuery",
            "Invalid value at 'order_by[0].direction': \"UP\" is not a value of"
        ),
        (#"{"limit":1,"limit":2}"#, "StructuredQuery", "The field 'limit' is set twice."),
        (#"{"from":{}}"#, "StructuredQuery", "expected '['"), (#"[]"#, "Value", "expected '{'"),
        (#"{"stringValue":"a"} x"#, "Value", "unexpected text after the value"),
        (#"{"stringValue":"\ud800"}"#, "Value", "lone surrogate"),
        (#"{"stringValue":"a"#, "Value", "unterminated string"), (#"{"a""#, "Value", "expected ':'"),
        (#"{"arrayValue":{"values":[null]}}"#, "Value", "expected '{'"), ("{", "Value", "expected a string"),
    ])
    func `Errors say what and where`(text: String, type: String, message: String) {
        let error = #expect(throws: RequestError.self) { try wire(text, type) }
        expectEqual(error?.code, .invalidArgument)
        expectEqual(error?.message.contains(message), true, "\(error?.message ?? "")")
    }

    @Test func `Numbers of many digits are read exactly`() throws {
        let zeros = String(repeating: "0", count: 100_000)
        for (text, value) in [
            ("12.\(zeros)", 12), ("-1\(zeros.prefix(900))e-900", -1), ("0.\(zeros.prefix(900))12e902", 12),
            ("\(Int64.max).\(zeros)", Int64.max), ("-0.\(zeros)", 0),
        ] {
            let bytes = try wire(#"{"integerValue":"\#(text)"}"#)
            try expectEqual(Value(wire: bytes.byteSpan), .integer(value), "\(text.prefix(40))")
        }
        for text in ["1.\(zeros)1", "1\(zeros)", "1.\(zeros)e-1"] {
            #expect(throws: RequestError.self) { try wire(#"{"integerValue":\#(text)}"#) }
        }
    }

    /// A character may have any number of bytes.
    @Test(arguments: ["x", "\u{301}"])
    func `Errors repeat only the beginning of what is wrong`(character: String) {
        let long = String(repeating: character, count: 10_000)
        for text in [
            #"{"\#(long)":1}"#, #"{"integerValue":"\#(long)"}"#, #"{"mapValue":{"fields":{"\#(long)":{"a":1}}}}"#,
        ] {
            let error = #expect(throws: RequestError.self) { try wire(text, "Value") }
            expect(error?.message.utf8.count ?? 0 < 500, "\(error?.message.prefix(80) ?? "")")
        }
    }

    @Test func `Limits are single numbers in JSON, and enumerations names`() throws {
        let text = #"{"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"}],"limit":3,"offset":2}"#
        try expectEqual(json(try wire(text, "StructuredQuery"), "StructuredQuery"), text)
        try expectEqual(json([0x08, 0x63], "StructuredQuery.UnaryFilter"), #"{"op":99}"#)
    }

    @Test func `Loose values and durations of explain are written`() throws {
        // ExplainMetrics {1 plan_summary {1 indexes_used: {"a": 1.5}}, 2 execution_stats {1 results 2, 3 duration
        // 1.5s}}
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 1) { plan in
            plan.withLengthPrefix(field: 1) { index in
                for (key, field) in [("a", 2), ("b", 6)] {
                    index.withLengthPrefix(field: 1) { entry in
                        entry.appendField(1, string: key)
                        entry.withLengthPrefix(field: 2) { value in
                            if field == 2 { value.appendField(2, double: 1.5) }
                            if field == 6 {
                                value.withLengthPrefix(field: 6) {
                                    $0.withLengthPrefix(field: 1) { $0.appendField(4, boolean: true) }
                                }
                            }
                        }
                    }
                }
            }
        }
        writer.withLengthPrefix(field: 2) { stats in
            stats.appendField(1, int64: 2)
            stats.withLengthPrefix(field: 3) { duration in
                duration.appendField(1, int64: 1)
                duration.appendField(2, int64: 500_000_000)
            }
        }
        let text =
            #"{"planSummary":{"indexesUsed":[{"a":1.5,"b":[true]}]},"#
            + #""executionStats":{"resultsReturned":"2","executionDuration":"1.500s"}}"#
        try expectEqual(json(writer.copyBytes(), "ExplainMetrics"), text)
    }

    @Test func `Nesting has an end on both ways`() throws {
        let deep = String(repeating: #"{"arrayValue":{"values":["#, count: 300)
        #expect(throws: RequestError.self) { try wire(deep) }
        var bytes: [UInt8] = [0x58, 0x00]
        for _ in 0..<300 {
            var outer = ByteBuffer()
            outer.withLengthPrefix(field: 9) { $0.appendField(1, bytes: bytes) }
            bytes = outer.copyBytes()
        }
        let wrapped = bytes
        #expect(throws: InvalidDocument.self) { try json(wrapped) }
    }

    @Test func `Fields of one kind that stand apart on the wire are one array`() throws {
        var writer = ByteBuffer()
        writer.appendField(1, string: "a")
        writer.appendField(2, string: "token")
        writer.appendField(1, string: "b")
        try expectEqual(
            json(writer.copyBytes(), "ListCollectionIdsResponse"),
            #"{"collectionIds":["a","b"],"nextPageToken":"token"}"#)
    }

    @Test(arguments: [
        (
            [Parameter("mask.fieldPaths", "a"), Parameter("page_size", "3"), Parameter("mask.field_paths", "b.c")],
            #"{"mask":{"fieldPaths":["a","b.c"]},"pageSize":3}"#
        ),
        (
            [Parameter("transaction", "AAE"), Parameter("showMissing", "true")],
            #"{"transaction":"AAE=","showMissing":true}"#
        ),
        (
            [Parameter("readTime", "2020-01-01T00:00:00.500000007Z"), Parameter("orderBy", "a desc")],
            #"{"readTime":"2020-01-01T00:00:00.500000007Z","orderBy":"a desc"}"#
        ),
    ])
    func `Query parameters are fields`(parameters: [Parameter], text: String) throws {
        var output = ByteBuffer()
        try Self.parameters.append(parameters, Self.listing, to: &output)
        try expectEqual(json(output.copyBytes(), "ListDocumentsRequest"), text)
    }

    @Test(arguments: [
        ([Parameter("pagesize", "1")], "Unknown name \"pagesize\": Cannot bind query parameter."),
        ([Parameter("pageSize", "x")], "is not a 32-bit integer"),
        ([Parameter("mask", "x")], "Cannot bind query parameter"),
        ([Parameter("mask.", "x")], "Cannot bind query parameter"),
        ([Parameter("pageSize.value", "1")], "Cannot bind query parameter"),
        ([Parameter("pageSize", "1"), Parameter("pageSize", "2")], "given twice"),
        (
            [Parameter("transaction", "AAE"), Parameter("readTime", "2020-01-01T00:00:00Z")],
            "oneof field 'consistency_selector' twice"
        ),
        ([Parameter("readTime", "now")], "is not an RFC 3339 timestamp"),
        ([Parameter("transaction", "*")], "is not base64"),
        ([Parameter("showMissing", "yes")], "is not true or false"),
    ])
    func `Query parameters that do not fit are refused`(parameters: [Parameter], message: String) {
        let error = #expect(throws: RequestError.self) {
            var output = ByteBuffer()
            try Self.parameters.append(parameters, Self.listing, to: &output)
        }
        expect(error?.code == .invalidArgument && error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test func `Timestamps and wrappers may be objects if the reader accepts that`() throws {
        let json =
            #"{"from":[{"collectionId":"c"}],"limit":{"value":3},"startAt":{"values":[{"timestampValue":"#
            + #"{"seconds":"1","nanos":2000}}]}}"#
        #expect(throws: RequestError.self) { try wire(json, "StructuredQuery") }
        var reader = JSONMessageReader()
        reader.acceptsMessageForms = true
        var output = ByteBuffer()
        try reader.append(
            Array(json.utf8).byteSpan, Schema.shared.message("google.firestore.v1.StructuredQuery"), to: &output)
        let query = try StructuredQuery(wire: output.bytes)
        expectEqual(query.limit, 3)
        expectEqual(query.startAt?.values, [EncodedValue(.timestamp(TimestampValue(seconds: 1, nanoseconds: 2000)))])
        output.reset()
        #expect(throws: RequestError.self) {
            try reader.append(
                Array(#"{"limit":{"valu":3}}"#.utf8).byteSpan,
                Schema.shared.message("google.firestore.v1.StructuredQuery"), to: &output)
        }
    }

    @Test func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("JSONMessage", over: 20) { JSONMessageCheck.violation($0.byteSpan) }
    }
}
