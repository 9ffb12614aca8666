// Values of expressions, as the official emulator has them: operators, conversions, methods, functions.

import DocumentModel
import Expressions
import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct ValueTests {
    /// What an expression comes to, as a text; `error` if it fails.
    static func value(_ expression: String, version: Int = 2) throws -> String {
        let ruleset = try Ruleset(rules("debug(\(expression)) == null", version: version))
        let verdict = ruleset.judge(request())
        return verdict.debugLines.first ?? "error"
    }

    private static let operators: [(String, String)] = [
        ("1 + 1", "2"), ("1 + 1.5", "2.5"), ("9223372036854775807 + 1", "error"), ("7/ 2", "3"), ("-7/ 2", "-3"),
        ("-7 % 3", "-1"), ("7 % 0", "error"), ("7.5 % 2", "1.5"), ("1/ 0.0", "Infinity"),
        ("(-9223372036854775807-1)/ -1", "-9223372036854775808"), ("-9223372036854775808", "-9223372036854775808"),
        ("-(-9223372036854775807-1)", "error"), ("'a' + 'b'", "'ab'"), ("'a' + 1", "error"), ("!1", "error"),
        ("1 == 1.0", "true"), ("[1] == [1.0]", "false"), ("1.0 in [1]", "false"), ("1 in [1]", "true"),
        ("[1].toSet() == [1.0].toSet()", "true"), ("1.0 in [1].toSet()", "true"), ("0.0 == -0.0", "true"),
        ("[0.0] == [-0.0]", "false"), ("(0.0/ 0.0) == (0.0/ 0.0)", "false"), ("null == 1", "false"),
        ("9007199254740993 == 9007199254740992.0", "true"), ("1 < 'a'", "error"), ("true < false", "error"),
        ("'\\uFFFF' < '😀'", "false"), ("b'a' < b'b'", "true"), ("'a' in {'a': 1}", "true"),
        ("1 in {'a': 1}", "error"), ("1 in null", "error"), ("1 < 2 == true", "true"),
        ("true == 1 is int", "false"),
        ("1 is int == true", "true"), ("!true in [false]", "true"), ("1 in [1] == true", "error"),
        ("true || false && false", "true"), ("true ? 1 : 1/ 0", "1"), ("1 ? 1 : 2", "error"),
        ("(1/ 0 == 1) || true", "true"), ("false && 1", "false"), ("1 && true", "error"), ("1 || 1", "error"),
        ("[1, 2][1]", "2"), ("[1, 2][2]", "error"), ("[1, 2][0:1]", "[1]"), ("[1, 2][0:0]", "error"),
        ("[1, 2][1:1]", "[]"), ("[1, 2][2:2]", "error"), ("'abc'[1:]", "'bc'"), ("'abc'[2:1]", "error"),
        ("{'a': 1}.b", "error"), ("{'a': 1}['a']", "1"), ("{1: 1}", "error"), ("{'a': 1, 'a': 2}", "{'a': 2}"),
        ("null.a", "error"), ("'a'.size", "error"), ("unknown", "error"), ("1 is number", "true"),
        ("[].toSet() is set", "false"), ("{'a': 1}.diff({}) is map_diff", "true"), ("1.5 is int", "false"),
    ]

    @Test(arguments: operators)
    func `Operators`(expression: String, expected: String) throws {
        try expectEqual(Self.value(expression), expected)
    }

    private static let texts: [(String, String)] = [
        ("'\\u0041\\x42\\103\\n'.size()", "4"), ("'😀'.size()", "2"), ("' b\\t'.trim()", "'b'"),
        ("'aBÄ'.lower()", "'abÄ'"), ("'aß'.upper()", "'Aß'"), ("'a,b,,'.split(',')", "['a', 'b']"),
        ("''.split(',')", "['']"), ("'abc'.split('')", "['', 'a', 'b', 'c']"), ("'a.b'.split('.')", "['']"),
        ("'abc'.matches('b')", "false"), ("'abc'.matches('a.c')", "true"), ("'a'.matches('a' + '(')", "error"),
        ("'abc'.replace('(b)', '[$1]')", "'a[b]c'"), ("'abc'.replace('', '-')", "'-a-b-c-'"),
        ("'aaa'.replace('a*', 'x')", "'xx'"), ("'aa'.replace('(a)', '$10')", "'a0a0'"),
        ("'ab'.replace('(?P<n>a)', '${n}x')", "'axb'"), ("'ab'.replace('a', '$9')", "error"),
        ("'ab'.replace('a', '$')", "'$b'"), ("'ab'.replace('a', '\\\\$')", "'$b'"),
        ("'ab'.replace('a', '${')", "error"), ("b'\\xff\\xfe'.toBase64()", "'__4='"),
        ("b'\\xff'.toHexString()", "'FF'"), ("b'ä'.size()", "2"), ("'ä'.toUtf8() == b'ä'", "true"),
        ("string(1.0)", "'1.0'"), ("string(100000000.0)", "'1.0E8'"), ("string(0.0001)", "'1.0E-4'"),
        ("string(12345678.9)", "'1.23456789E7'"), ("string(0.001)", "'0.001'"), ("string(-0.0)", "'-0.0'"),
        ("string(null)", "'null'"), ("string(/a/b)", "'/a/b'"),
        ("string((/a/b)[1:1])", "'/'"), ("string([1])", "error"), ("int('+1')", "1"),
        ("int(' 1')", "error"), ("int(-1.9)", "-1"), ("int(0.0/ 0.0)", "0"),
        ("int(1.0/ 0.0)", "9223372036854775807"),
        ("float(' 1 ')", "1.0"), ("float('1f')", "1.0"), ("float('0x1p3')", "8.0"), ("float('inf')", "error"),
        ("float('.5')", "0.5"), ("float('5.')", "5.0"), ("float('1e')", "error"),
        ("float('-Infinity')", "-Infinity"),
        ("float('.')", "error"), ("float('0x1')", "error"), ("bool('true')", "error"), ("int(true)", "error"),
    ]

    @Test(arguments: texts)
    func `Strings, bytes and conversions`(expression: String, expected: String) throws {
        try expectEqual(Self.value(expression), expected)
    }

    private static let collections: [(String, String)] = [
        ("{'b': 1}.get(['a', 'c'], 2)", "2"), ("{'b': 1}.get(['a', 1], 2)", "error"),
        ("[1].concat([2])", "[1, 2]"), ("[1, 2, 1].removeAll([1])", "[2]"), ("[1] + [2]", "error"),
        ("[1, 2].hasAll([1, 1])", "true"), ("[].hasAny([])", "false"), ("[1].hasAny([1.0])", "false"),
        ("[].hasOnly(['a'])", "true"), ("[1, 2].hasOnly([1])", "false"), ("[1].hasAny([1].toSet())", "error"),
        ("[1].toSet().hasAny([1.0])", "true"), ("['a', 1, null].join('-')", "'a-1-null'"),
        ("[[1]].join('')", "error"),
        ("[1, 1.0, 2].toSet().size()", "2"), ("[1].toSet().union([2])", "error"),
        ("[1, 2].toSet().difference([1].toSet())", "set[2]"), ("[1].toSet()[0]", "error"),
        ("{'b': 1, 'a': 2}.keys()", "['a', 'b']"), ("{'a': null}.get('a', 2)", "null"),
        ("{'a': {'b': 1}}.get(['a', 'c'], 2)", "2"), ("{'a': 1}.get([1], 5)", "error"),
        ("{'a': 1}.get('b')", "error"), ("{'a': 1}.diff({'a': 1.0}).affectedKeys().size()", "0"),
        ("{'a': 1}.diff({'a': 2}).changedKeys()", "set['a']"), ("{'a': 1}.diff({'b': 2}).addedKeys()", "set['a']"),
        ("{'a': 1}.diff({'b': 2}).removedKeys()", "set['b']"), ("/a/$(1)/b", "/a/1/b"), ("/a/$(/b/c)", "/a/b/c"),
        ("/a/$([1])", "error"), ("/a%20b", "/a b"), ("(/a/b)[1]", "'b'"), ("(/a/{x})[1]", "error"),
        ("(/a/{x}).bind({'x': 'q'}) == /a/q", "true"), ("(/a/{x=**}).bind({'x': /b/c})", "/a/b/c"),
        ("(/a/{x}).bind({'y': 'q'})", "error"), ("(/a/{x}).bind({})", "/a"), ("path('a//b')", "error"),
        ("(/a/{x}).bind({'x': 'q'}).bind({'x': 'r'})", "error"), ("(/a/{x})[0:1]", "error"),
        ("(/a/{x=**}).bind({'x': /b}).bind({'x': /c})", "error"), ("(/a/{x}).bind({'x': ''})", "error"),
        ("(/a/{x=**}/d).bind({'x': /b/c})[1:3]", "/b/c"), ("(/a/{x=**}/d).bind({'x': /b/c})[3:4]", "/d"),
        ("(/a/{x=**}/d).bind({'x': /b/c})[1:3].x", "error"), ("(/a/{x}/b).bind({'x': 'q'})[1:2].x", "'q'"),
        ("path('')", "error"), ("request.path[3]", "'a'"), ("request.path", "/databases/(default)/documents/a/x"),
        ("resource.__name__ == request.path", "true"), ("resource.id", "'x'"), ("resource.data.n", "1"),
        ("resource.keys()", "['__name__', 'data', 'id']"), ("request.auth.uid", "'alice'"), ("id", "'x'"),
        ("request.resource", "error"), ("request.query", "error"), ("request['method']", "'get'"),
    ]

    @Test(arguments: collections)
    func `Lists, sets, maps and paths`(expression: String, expected: String) throws {
        try expectEqual(Self.value(expression), expected)
    }

    /// As in the official emulator.
    private static let pathTemplates: [(String, String)] = [
        ("path('/a/ b ')", "/a/b"), ("path('a /\\tb\\n/c')", "/a/b/c"), ("path('/a/b c')", "/a/b c"),
        ("path('/a/\u{a0}b\u{2003}')", "/a/b"), ("path('/a/b\u{200b}')", "/a/b\u{200b}"),
        ("path('/a/\u{1}b\u{1c}')", "/a/\u{1}b\u{1c}"), ("path('\u{1}')", "/\u{1}"),
        ("path(' /a')", "error"), ("path(' ')", "error"), ("path('/a/ /c')", "error"), ("path('/')", "error"),
        ("path('//a')", "error"), ("path('a/')", "error"), ("path('/a/b / ')", "error"),
        ("path('/a/%20b%20')", "/a/ b "), ("path('/a/%2F')[1]", "'/'"), ("path('/a/%E9')", "/a/\u{fffd}"),
        ("path('/a/%zz')", "error"), ("path('/a/%')", "error"), ("path('/a/+')", "/a/+"),
        ("path('/a/{x}').bind({'x': 'q'}).x", "'q'"), ("path('{x=*}').bind({'x': 'q'})", "/q"),
        ("path('/a/{ x =**}/b').bind({'x': /c/d})", "/a/c/d/b"), ("path('/a/{if}').bind({'if': 'q'})", "/a/q"),
        ("path('/a/{x}')[1]", "error"), ("path('/{x}/a').x", "error"), ("path('/a/{x}/{x}')", "error"),
        ("path('/a/{x}y')", "error"), ("path('/a/y{x}')", "/a/y{x}"), ("path('/a/%7Bx%7D')", "/a/{x}"),
        ("path('/a/{')", "error"), ("path('/a/}')", "/a/}"), ("path('/a/{}')", "error"),
        ("path('/a/{1x}')", "error"), ("path('/a/{x= **}')", "error"), ("path('/a/{x\u{a0}}')", "error"),
        ("path('/a/{\u{301}}')", "error"), ("path('/a/{x=**')", "error"), ("path('/a/{x=b/c}')", "error"),
    ]

    @Test(arguments: pathTemplates)
    func `Texts are path templates`(expression: String, expected: String) throws {
        try expectEqual(Self.value(expression), expected)
    }

    private static let times: [(String, String)] = [
        ("timestamp.date(2020, 2, 29).dayOfYear()", "60"), ("timestamp.date(2020, 2, 29).dayOfWeek()", "6"),
        ("timestamp.date(2021, 2, 29)", "error"), ("timestamp.date(0, 1, 1)", "error"),
        ("timestamp.value(-1).nanos()", "999000000"), ("timestamp.value(-1).toMillis()", "-1"),
        ("timestamp.value(86399999).time()", "86399s 999000000ns"), ("timestamp.value(99999999999999999)", "error"),
        ("timestamp.value('2020-01-01T00:00:00+01:00')", "2019-12-31T23:00:00Z"), ("timestamp.value('x')", "error"),
        ("timestamp.value(0) - duration.value(1, 'ns')", "1969-12-31T23:59:59.999999999Z"),
        ("timestamp.value(0) - timestamp.value(1)", "0s -1000000ns"), ("timestamp.value(0) + 1", "error"),
        ("duration.value(1, 'w').seconds()", "604800"), ("duration.value(1, 'x')", "error"),
        ("duration.value(-1500, 'ms').nanos()", "-500000000"),
        ("duration.value(9223372036854775807, 'w')", "error"),
        ("duration.time(1, 2, 3, 4)", "3723s 4ns"), ("duration.abs(-duration.value(1, 's'))", "1s 0ns"),
        ("duration.value(60, 's') == duration.value(1, 'm')", "true"), ("duration.value(1, 's') * 2", "error"),
        ("latlng.value(91, 0)", "error"), ("latlng.value(1, 2).latitude()", "1.0"),
        ("latlng.value(0, 0).distance(latlng.value(90, 0)) > 10007557", "true"), ("math.round(2.5)", "3"),
        ("math.round(9007199254740993)", "9007199254740992"),
        ("math.round(9223372036854775807)", "9223372036854775807"), ("math.round(-2.5)", "-2"),
        ("math.round(0.49999999999999994)", "0"), ("math.round(0.0/ 0.0)", "0"),
        ("math.abs(-9223372036854775807 - 1)", "-9223372036854775808"), ("math.ceil(1)", "1.0"),
        ("math.pow(2, 3)", "8.0"), ("math.sqrt(-1)", "NaN"), ("math.isNaN(1)", "false"),
        ("math.isInfinite(1/ 0.0)", "true"), ("math.abs('a')", "error"), ("math.none(1)", "error"),
        ("hashing.md5('a').toHexString()", "'0CC175B9C0F1B6A831C399E269772661'"),
        ("hashing.crc32('abc').toHexString()", "'C2412435'"), ("hashing.crc32c('abc').toHexString()", "'B73F4B36'"),
        ("hashing.sha256(b'a').size()", "32"), ("hashing.md5(1)", "error"),
    ]

    @Test(arguments: times)
    func `Times, durations, places, numbers and hashes`(expression: String, expected: String) throws {
        try expectEqual(Self.value(expression), expected)
    }

    @Test
    func `Every value of a document has its type`() throws {
        let fields: MapValue = [
            "null": nil, "bool": true, "int": 1, "float": 1.5, "string": "a", "bytes": .bytes([1]),
            "timestamp": .timestamp(TimestampValue(seconds: 1, nanoseconds: 0)), "list": [1], "map": ["a": 1],
            "latlng": .geoPoint(GeoPointValue(latitude: 1, longitude: 2)),
            "path": .reference("projects/p/databases/(default)/documents/a/b"),
        ]
        let types = ["bool", "int", "float", "string", "bytes", "timestamp", "list", "map", "latlng", "path"]
        let all = types.map { "resource.data.\($0) is \($0)" }.joined(separator: " && ")
        let path = "resource.data.path == /databases/(default)/documents/a/b && resource.data['null'] == null"
        let ruleset = try Ruleset(rules("\(all) && \(path)"))
        expect(ruleset.judge(request(resource: fields)).isAllowed)
    }

    @Test
    func `A reference to an id that begins with a combining mark is the path of that id`() throws {
        let fields: MapValue = [
            "id": "\u{301}b", "path": .reference("projects/p/databases/(default)/documents/a/\u{301}b"),
        ]
        let ruleset = try Ruleset(rules("resource.data.path == /databases/(default)/documents/a/$(resource.data.id)"))
        expect(ruleset.judge(request(resource: fields)).isAllowed)
    }
}
