// Functions on values of every type.

import DocumentModel
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FunctionTests {
    /// A field that no row has.
    private static let absent = Expression.field("nothing")
    private static let nan = Expression.value(.double(.nan))
    /// Fails when it is evaluated.
    private static let failing = Expression.call("divide", 1, 0)

    /// Evaluates all cases in one pipeline; a nil is absent.
    private func check(_ cases: [(Expression, Value?)]) throws {
        let harness = try Harness()
        for (index, (expression, expected)) in cases.enumerated() {
            let value = try harness.value(expression)
            let isSame = value.map { value in expected.map { $0.wireBytes == value.wireBytes } ?? false }
            expect(isSame ?? (expected == nil), "case \(index): \(String(describing: value)) for \(expression)")
        }
    }

    private func checkFailures(_ expressions: [Expression]) throws {
        let harness = try Harness()
        for expression in expressions {
            let answer = harness.failure(expression)
            expectEqual(answer.status, .invalidArgument, "\(expression): \(answer.text)")
            expect(!answer.text.isEmpty)
        }
    }

    @Test
    func `Equality holds between values of all types; absent equals no value`() throws {
        try check([
            (.call("equal", 1, 1), true), (.call("equal", 1.0, 1), true), (.call("equal", -1.0, 1), false),
            (.call("equal", Self.nan, Self.nan), true), (.call("equal", nil, nil), true),
            (.call("equal", nil, Self.absent), false), (.call("equal", "1", 1), false),
            (.call("equal", .value(.integer(1 << 53 + 1)), .value(.double(0x1p53))), false),
            (.call("not_equal", nil, 1), true), (.call("not_equal", [1, 2], [1, 2.0]), false),
            (.call("equal", .map([("a", 1)]), .value(.map(["a": 1.0]))), true),
            (.call("equal_any", 2, [1, 2.0]), true), (.call("equal_any", nil, [1, nil]), true),
            (.call("equal_any", 1, nil), .null), (.call("not_equal_any", 3, [1, 2]), true),
        ])
    }

    @Test
    func `The order relates values of one type class only`() throws {
        try check([
            (.call("greater_than", 1, 0.0), true), (.call("greater_than", 1, 1), false),
            (.call("greater_than", "foo", 0), false), (.call("less_than", "foo", 0), false),
            (.call("less_than", Self.nan, 0), false), (.call("less_than", 0, Self.nan), false),
            (.call("greater_than", nil, nil), false), (.call("less_than", nil, 1), false),
            (.call("less_than", Self.absent, 1), false), (.call("greater_than_or_equal", 1, 1.0), true),
            (.call("less_than_or_equal", nil, nil), true), (.call("less_than_or_equal", "a", "b"), true),
            (.call("less_than", [1, 2], [1, 3]), true), (.call("cmp", 4.6, 4.5), 1), (.call("cmp", "a", "a"), 0),
            (.call("cmp", 1, "a"), -1), (.call("cmp", nil, 1), .null),
        ])
    }

    @Test
    func `Logic has three values, and an operand that decides wins over one that fails`() throws {
        try check([
            (.call("and", true, true), true), (.call("and", true, nil), .null), (.call("and", false, nil), false),
            (.call("and", Self.failing, false), false), (.call("or", false, nil), .null),
            (.call("or", Self.failing, true), true), (.call("or", Self.absent, true), true),
            (.call("xor", true, true, true), true), (.call("xor", true, nil), .null),
            (.call("nor", false, false), true), (.call("nor", false, true), false), (.call("not", false), true),
            (.call("not", nil), .null), (.call("conditional", true, 1, Self.failing), 1),
            (.call("conditional", nil, 1, 2), 2),
            (.call("switch_on", false, "a", true, "b", "c"), "b"), (.call("switch_on", false, "a", "c"), "c"),
        ])
        try checkFailures([
            .call("and", true, 1), .call("or", Self.failing, false), .call("not", "x"),
            .call("switch_on", false, "a"), .call("conditional", 1, 2, 3),
        ])
    }

    @Test
    func `Absent, null and failed values are three different things`() throws {
        try check([
            (.call("exists", Self.absent), false), (.call("exists", nil), true), (.call("is_absent", nil), false),
            (.call("is_absent", Self.absent), true), (.call("if_absent", Self.absent, 1), 1),
            (.call("if_absent", nil, 1), .null), (.call("if_null", nil, 1), 1), (.call("if_null", Self.absent, 1), 1),
            (.call("if_null", 2, 1), 2),
            (.call("coalesce", Self.absent, nil, "x", Self.failing), "x"), (.call("coalesce", Self.absent), nil),
            (.call("is_error", Self.failing), true), (.call("is_error", Self.absent), false),
            (.call("if_error", Self.failing, "caught"), "caught"), (.call("if_error", 1, Self.failing), 1),
            (.call("maximum", 4.2, 4.5, nil), 4.5), (.call("minimum", 1979, "a", Self.absent), 1979),
            (.call("maximum", nil), .null), (.call("maximum", .list([1, 3, 2])), 3),
            (.call("minimum", .list([])), .null), (Self.absent, nil),
        ])
        try checkFailures([Self.failing, .call("error", "asked for")])
    }

    @Test
    func `Integers stay integers, and overflows fail`() throws {
        let most = Expression.value(.integer(.max))
        let least = Expression.value(.integer(.min))
        try check([
            (.call("add", 1960, 4.5), 1964.5), (.call("add", 1, 2, 3), 6), (.call("subtract", 1960, 1900), 60),
            (.call("multiply", 4.5, 10), 45.0), (.call("divide", 7, 2), 3), (.call("divide", 7.0, 2), 3.5),
            (.call("divide", 1.0, 0), .double(.infinity)), (.call("mod", -7, 2), -1), (.call("mod", 5.5, 2), 1.5),
            (.call("mod", least, -1), 0), (.call("add", nil, 1), .null), (.call("add", Self.absent, 1), .null),
            (.call("abs", -3), 3), (.call("abs", -3.5), 3.5), (.call("ceil", 4.2), 5.0), (.call("ceil", 4), 4),
            (.call("floor", -4.2), -5.0), (.call("sqrt", 16), 4.0), (.call("pow", 2, 10), 1024.0),
            (.call("exp", 0), 1.0), (.call("ln", 1), 0.0), (.call("log", 8, 2), 3.0), (.call("log10", 1000), 3.0),
        ])
        try checkFailures([
            .call("add", most, 1), .call("subtract", least, 1), .call("multiply", most, 2), .call("divide", least, -1),
            .call("abs", least), .call("mod", 1, 0), .call("sqrt", -1), .call("ln", 0), .call("log", 1, 1),
            .call("pow", -1, 0.5), .call("pow", 0, -1), .call("exp", 1000), .call("add", "a", 1), .call("add", [1], 1),
        ])
    }

    @Test
    func `Numbers are rounded to places before and after the point`() throws {
        try check([
            (.call("round", 4.5), 5.0), (.call("round", -2.5), -3.0), (.call("round", 4.2, 1), 4.2),
            (.call("round", 1.005, 2), 1.01), (.call("round", 1250, -2), 1300), (.call("round", -1250, -2), -1300),
            (.call("trunc", 4.7), 4.0), (.call("trunc", 4.7, 1), 4.7), (.call("trunc", 4.76, 1), 4.7),
            (.call("trunc", 1299, -2), 1200), (.call("round", 5, 3), 5), (.call("round", 5, -30), 0),
            (.call("round", .value(.double(.infinity)), 2), .double(.infinity)), (.call("round", 1e300, 5), 1e300),
            (.call("round", 15.0, -1), 20.0), (.call("trunc", 1e300, -400), 0.0),
        ])
        try checkFailures([.call("round", .value(.integer(.max)), -3), .call("round", 1.5, 0.5), .call("trunc", "x")])
    }

    @Test
    func `Maps are built, read and changed`() throws {
        let map = Expression.map([("a", 1), ("b", nil)])
        try check([
            (.call("map", "x", 1, "y", Self.absent), ["x": 1]), (.call("map_get", map, "a"), 1),
            (.call("map_get", map, "c"), nil), (.call("map_get", 5, "c"), nil), (.call("get_field", map, "b"), .null),
            (.call("map_get", Self.absent, "c"), .null), (.call("map_get", nil, "c"), .null),
            (.call("map_set", map, "a", 2, "c", 3), ["a": 2, "b": nil, "c": 3]),
            (.call("map_set", map, "a", Self.absent, "c", 3), ["b": nil, "c": 3]),
            (.call("map_set", map, "a", Self.absent, "a", 3), ["a": 3, "b": nil]),
            (.call("map_remove", map, "a"), ["b": nil]),
            (.call("map_merge", map, .map([("b", 2)])), ["a": 1, "b": 2]),
            (.call("map_keys", map), ["a", "b"]), (.call("map_values", map), [1, nil]),
            (.call("map_entries", .map([("a", 1)])), [["k": "a", "v": 1]]), (.call("map_keys", nil), .null),
            (.map([("sum", .call("add", 1, 1))]), ["sum": 2]),
        ])
        try checkFailures([
            .call("map", "x"), .call("map", 1, 2), .call("map_keys", 1), .call("map_set", map, 1, 2),
        ])
    }

    @Test
    func `Types have names, values have sizes, names have parts`() throws {
        let name = Value.reference("projects/p/databases/d/documents/users/jeff/tasks/my_task_id")
        try check([
            (.call("type", 1), "int64"), (.call("type", 1.0), "float64"), (.call("type", nil), "null"),
            (.call("type", Self.absent), nil), (.call("type", .value(.vector([1, 2]))), "vector"),
            (.call("type", .map([("a", 1)])), "map"), (.call("type", .list([1])), "array"),
            (.call("type", .value(.geoPoint(GeoPointValue(latitude: 1, longitude: 2)))), "geo_point"),
            (.call("is_type", 1, "number"), true), (.call("is_type", 1, "float64"), false),
            (.call("storage_size", "abc"), 4), (.call("storage_size", 1), 8),
            (.call("storage_size", .list([1, "a"])), 10),
            (.call("storage_size", .value(name)), 44), (.call("document_id", .value(name)), "my_task_id"),
            (.call("collection_id", .value(name)), "tasks"),
            (.call("parent", .value(name)), .reference("projects/p/databases/d/documents/users/jeff")),
            (.call("parent", .call("parent", .value(name))), .null),
            // An id that begins with a combining mark.
            (.call("document_id", .value(.reference("projects/p/databases/d/documents/c/\u{301}x"))), "\u{301}x"),
        ])
        try checkFailures([
            .call("is_type", 1, "integer"), .call("document_id", "a/b"), .call("parent", "a/b"),
            .call("parent", .value(.reference("projects/p/databases/d/documents"))),
        ])
    }

    @Test
    func `Strings are measured and built by code points`() throws {
        let text = Expression.value(.string("añb😀"))
        try check([
            (.call("char_length", text), 4), (.call("byte_length", text), 8), (.call("length", text), 4),
            (.call("length", .list([1, 2])), 2), (.call("length", .map([("a", 1)])), 1),
            (.call("string_concat", "a", "b", "c"), "abc"), (.call("concat", [1], [2]), [1, 2]),
            (.call("string_concat", "a", nil), .null), (.call("to_upper", "añ"), "AÑ"), (.call("to_lower", "AB"), "ab"),
            (.call("trim", "  a b "), "a b"), (.call("ltrim", "xxay", "xy"), "ay"), (.call("rtrim", "a\n"), "a"),
            (.call("trim", "\u{3000}\u{85}\u{b} a\u{200b}\u{2003}\r\n"), "a\u{200b}"),
            (.call("rtrim", "aéxéy", "éy"), "aéx"),
            (.call("string_reverse", text), "😀bña"), (.call("reverse", text), "😀bña"),
            (.call("reverse", .list([1, "a"])), ["a", 1]), (.call("reverse", .value(.bytes([1, 2]))), .bytes([2, 1])),
            (.call("string_repeat", "ab", 2), "abab"),
            (.call("string_repeat", "añ", 5), "añañañañañ"), (.call("string_repeat", "ab", 6), "abababababab"),
            (.call("string_repeat", "ab", 0), ""), (.call("string_repeat", "", .value(.integer(.max))), ""),
            (.call("substring", "Crime and Punishment", 10), "Punishment"), (.call("substring", text, 1, 2), "ñb"),
            (.call("substring", text, -1), "😀"), (.call("substring", text, 9), ""),
            (.call("substring", text, .value(.integer(.min)), 1), "a"),
            (.call("split", "a b  c", " "), ["a", "b", "", "c"]), (.call("split", "a,b"), ["a", "b"]),
            (.call("split", .value(.bytes([1, 0, 2])), .value(.bytes([0]))), .array([.bytes([1]), .bytes([2])])),
            (.call("split", .value(.bytes([1, 2])), .value(.bytes([]))), .array([.bytes([1]), .bytes([2])])),
            (.call("split", "ab", ""), ["a", "b"]), (.call("join", ["a", nil, "b"], "-"), "a-b"),
            (.call("join", ["a", nil], "-", "?"), "a-?"),
        ])
        try checkFailures([
            .call("char_length", 1), .call("string_repeat", "a", -1), .call("join", [1], ","),
            .call("substring", "a", 0, -1),
        ])
        try expectEqual(
            Harness().failure(.call("string_repeat", "ab", .value(.integer(.max)))).status, .resourceExhausted)
    }

    @Test
    func `Strings are searched literally, by patterns of like, and by regular expressions`() throws {
        try check([
            (.call("starts_with", "The End", "The"), true), (.call("ends_with", "The End", "nd"), true),
            (.call("string_contains", "aaab", "aab"), true), (.call("string_index_of", "ñab", "b"), 2),
            (.call("string_index_of", "a", "b"), -1), (.call("string_replace_all", "aXbX", "X", "YY"), "aYYbYY"),
            (.call("string_replace_one", "aXbX", "X", ""), "abX"), (.call("string_replace_all", "ab", "", "x"), "ab"),
            (.call("like", "The Guide", "%Gu_de"), true), (.call("like", "a.b", "a_c"), false),
            (.call("like", "100%", "100\\%"), true), (.call("like", "axb", "a.b"), false),
            (.call("regex_contains", "the end", "e.d"), true), (.call("regex_match", "the end", "e.d"), false),
            (.call("regex_match", "the end", "t.*"), true), (.call("regex_find", "a1b22", "[0-9]+"), "1"),
            (.call("regex_find", "a", "b"), .null), (.call("regex_find", "k=v", "k=(.)"), "v"),
            (.call("regex_find_all", "a1b22", "[0-9]+"), ["1", "22"]),
        ])
        try checkFailures([.call("regex_contains", "a", "("), .call("regex_find", "a", "(a)(b)")])
    }

    @Test
    func `Arrays are read by position and searched by value`() throws {
        let array = Expression.list([1, "a", nil, 1.0])
        try check([
            (.call("array_contains", array, 1.0), true), (.call("array_contains", array, nil), true),
            (.call("array_contains", nil, 1), .null), (.call("array_contains_any", array, [7, "a"]), true),
            (.call("array_contains_all", array, [1, "b"]), false),
            (.call("array_contains_all", array, [1, "a"]), true),
            (.call("array_length", array), 4), (.call("array_concat", .list([1]), .list([2]), .list([3])), [1, 2, 3]),
            (.call("array_reverse", .list([1, 2])), [2, 1]), (.call("array_get", array, 1), "a"),
            (.call("array_get", array, -1), 1.0), (.call("array_get", array, 4), nil), (.call("offset", array, 0), 1),
            (.call("array_first", array), 1), (.call("array_last", .list([1, 2])), 2),
            (.call("array_first", .list([])), nil),
            (.call("array_first_n", array, 2), [1, "a"]), (.call("array_last_n", [1, 2, 3], 2), [2, 3]),
            (.call("array_slice", [1, 2, 3, 4], 1, 2), [2, 3]), (.call("array_slice", [1, 2, 3], -2), [2, 3]),
            (.call("array_slice", [1, 2], .value(.integer(.min)), 1), [1]),
            (.call("array_index_of", array, 1), 0), (.call("array_index_of", array, 1, "last"), 3),
            (.call("array_index_of", array, 9), -1), (.call("array_index_of_all", array, 1), [0, 3]),
            (.call("array", 1, Self.absent, .call("add", 1, 1)), [1, nil, 2]),
        ])
        try checkFailures([
            .call("array_length", "a"), .call("array_first_n", [1], -1), .call("array_get", [1], "x"),
            .call("array_contains", 5, 1),
        ])
    }

    @Test
    func `Vectors have lengths and distances, and arrays have their first elements in order`() throws {
        let vector = Expression.value(.vector([3, 4]))
        let other = Expression.value(.vector([1, 0]))
        try check([
            (.call("vector_length", vector), 2), (.call("dot_product", vector, other), 3.0),
            (.call("euclidean_distance", vector, .value(.vector([0, 0]))), 5.0),
            (.call("cosine_distance", vector, vector), 0.0), (.call("cosine_distance", vector, nil), .null),
            (.call("maximum_n", .list([1, 3, nil, 2]), 2), [3, 2]),
            (.call("minimum_n", .list(["b", "a"]), 5), ["a", "b"]),
        ])
        try checkFailures([
            .call("vector_length", .list([1, 2])), .call("dot_product", vector, .value(.vector([1]))),
            .call("maximum_n", .list([1]), -1),
        ])
    }

    @Test
    func `Times are converted, shifted and compared in units`() throws {
        let time = Expression.value(.timestamp(TimestampValue(microseconds: 735_998_460_654_321)))
        func at(_ microseconds: Int64) -> Value { .timestamp(TimestampValue(microseconds: microseconds)) }
        try check([
            (.call("timestamp_to_unix_micros", time), 735_998_460_654_321),
            (.call("timestamp_to_unix_millis", time), 735_998_460_654),
            (.call("timestamp_to_unix_seconds", .value(at(-1))), -1),
            (.call("unix_seconds_to_timestamp", 1), at(1_000_000)),
            (.call("unix_millis_to_timestamp", -1), at(-1_000)), (.call("unix_micros_to_timestamp", 7), at(7)),
            (.call("timestamp_add", .value(at(0)), "day", 1), at(86_400_000_000)),
            (.call("timestamp_subtract", .value(at(0)), "hour", 1), at(-3_600_000_000)),
            (.call("timestamp_diff", time, .value(at(0)), "second"), 735_998_460),
            (.call("timestamp_diff", .value(at(0)), .value(at(1_500_000)), "second"), -1),
        ])
        let most = Expression.value(.integer(.max))
        try checkFailures([
            .call("unix_seconds_to_timestamp", most), .call("unix_micros_to_timestamp", most),
            .call("timestamp_add", time, "day", most), .call("timestamp_add", time, "year", 1),
            .call("timestamp_to_unix_seconds", 5), .call("timestamp_subtract", time, "day", .value(.integer(.min))),
        ])
    }
}
