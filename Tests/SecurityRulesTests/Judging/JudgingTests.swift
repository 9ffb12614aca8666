// Judgements: paths, documents, limits, what a verdict has.

import DocumentModel
import Expressions
import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct JudgingTests {
    private static let below = "/databases/$(database)/documents"

    @Test(arguments: [
        (1, "/a/{x}", "ADDDD"), (1, "/{x=**}", "AAAAA"), (1, "/a/{x=**}", "AAADA"), (1, "/a/{x}/{y=**}", "DAADA"),
        (1, "/{y=**} { match /b/{x}", "DDDDD"), (1, "/a/*", "DDDDD"), (1, "/{x=*}/1", "ADDAD"),
        (2, "/a/{x}/{y=**}", "AAADA"), (2, "/a/1/{y=**}", "AAADA"), (2, "/{y=**}/b/{x}", "DADDD"),
        (2, "/{y=**} { match /b/{x}", "DADDD"), (2, "/{x=**}", "AAAAA"), (2, "/**", "DDDDD"),
        (2, "/'a'/1", "DDDDD"),
    ])
    func `Paths fit patterns as the emulator has it: a/1, a/1/b/2, a/1/b/2/c/3, x/1, a/1/c/1`(
        version: Int, pattern: String, expected: String
    ) throws {
        let end = String(repeating: "}", count: pattern.count { $0 == "{" } - pattern.count { $0 == "}" })
        let text = """
            rules_version = '\(version)';
            service cloud.firestore { match /databases/{d}/documents { match \(pattern) { allow get; } \(end) } }
            """
        let ruleset = try Ruleset(text)
        let paths = ["a/1", "a/1/b/2", "a/1/b/2/c/3", "x/1", "a/1/c/1"]
        let found = paths.map { path in
            ruleset.judge(request(path: path.split(separator: "/").map(String.init))).isAllowed ? "A" : "D"
        }
        expectEqual(found.joined(), expected)
    }

    @Test(arguments: [
        ("request.auth != null", true), ("request.auth.uid == 'alice'", true), ("true", true),
        ("request.auth.token.admin == true || resource.data.n == 1", true), ("id == 'x'", false),
        ("resource.data.n == 1", false), ("request.time != null", false), ("request != null", false),
        ("request.path != null", false), ("request.auth != null && id != 'y'", false),
        ("!exists(/databases/$(database)/documents/a/y)", false), ("debug(request.auth) != null", false),
        ("resource.data.n == 2 || request.auth != null", false),
    ])
    func `A verdict for a document holds for its collection if it rests on the caller alone`(
        condition: String, isSo: Bool
    ) throws {
        let verdict = try Ruleset(rules(condition)).judge(request())
        expect(verdict.isAllowed && verdict.allowsSiblings == isSo)
        try expect(!Ruleset(rules("!(\(condition))")).judge(request()).allowsSiblings)
    }

    @Test(arguments: [
        (1, "/a/{x}", true), (1, "/{x=**}", true), (1, "/a/1", false), (1, "/{x}/1", false), (2, "/a/{x}", true),
        (2, "/{x=**}", true), (2, "/a/{x=**}", true), (2, "/a/1/{x=**}", false), (2, "/{x=**}/1", false),
        (2, "/{x=**}/a/{y}", true), (2, "/a { match /{x}", true), (2, "/{x} { match /1", false),
    ])
    func `A verdict does not hold for the collection if the path of its rule names the document`(
        version: Int, pattern: String, isSo: Bool
    ) throws {
        let end = String(repeating: "}", count: pattern.count { $0 == "{" } - pattern.count { $0 == "}" })
        let text = """
            rules_version = '\(version)';
            service cloud.firestore { match /databases/{d}/documents { match \(pattern) { allow get; } \(end) } }
            """
        let verdict = try Ruleset(text).judge(request(path: ["a", "1"]))
        expect(verdict.isAllowed && verdict.allowsSiblings == isSo)
    }

    @Test(arguments: UInt64(1)..<9)
    func `Of many blocks those that fit a path are looked at, in the order of the text`(seed: UInt64) throws {
        func rules(_ patterns: [String]) -> String {
            let blocks = patterns.map { "match \($0) { allow get: if false; }" }.joined(separator: "\n")
            return "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents {\n\(blocks)\n} }"
        }
        var random = SeededGenerator(seed: seed)
        let known = [
            "/a/{x}", "/a/1", "/b/{x}", "/{c}/{x}", "/{c}/1", "/{x=**}", "/%C3%A9/{x}", "/e%CC%81/{x}", "/a/{x}/b/{y}",
        ]
        let patterns = (0..<40).map { _ in random.pick(known) }
        let ruleset = try Ruleset(rules(patterns))
        let alone = try Dictionary(uniqueKeysWithValues: known.map { ($0, try Ruleset(rules([$0]))) })
        for path in [["a", "1"], ["b", "2"], ["é", "1"], ["e\u{301}", "1"], ["a", "1", "b", "1"], ["none", "1"]] {
            let expected = patterns.indices.filter { place in
                !(alone[patterns[place]]?.judge(request(path: path)).statements.isEmpty ?? true)
            }
            expectEqual(ruleset.judge(request(path: path)).statements.map(\.index), expected, "\(path)")
        }
    }

    @Test
    func `Wildcards have the values of their segments`() throws {
        let text = """
            rules_version = '2';
            service cloud.firestore { match /databases/{database}/documents {
              match /a/{id} { match /{rest=**} {
                allow get: if id == 'x' && rest == /b/y && database == '(default)';
              } }
            } }
            """
        let ruleset = try Ruleset(text)
        expect(ruleset.judge(request(path: ["a", "x", "b", "y"])).isAllowed)
        expect(!ruleset.judge(request(path: ["a", "x", "b", "z"])).isAllowed)
    }

    @Test(arguments: RulesRequest.Method.allCases)
    func `read and write stand for their operations`(method: RulesRequest.Method) throws {
        let isRead = method == .get || method == .list
        let path = method == .list ? ["a"] : ["a", "x"]
        try expectEqual(Ruleset(rules("true", methods: "read")).judge(request(method, path: path)).isAllowed, isRead)
        try expect(Ruleset(rules("true", methods: "write")).judge(request(method, path: path)).isAllowed != isRead)
        try expect(Ruleset(rules("true", methods: method.rawValue)).judge(request(method, path: path)).isAllowed)
    }

    @Test
    func `A verdict names the statement that decided and why the others did not`() throws {
        let text = """
            rules_version = '2';
            service cloud.firestore { match /databases/{d}/documents { match /a/{id} {
              allow get: if false;
              allow get: if resource.data.missing == 1;
              allow get: if true;
              allow get: if id == 'x';
              allow list: if true;
            } } }
            """
        let ruleset = try Ruleset(text)
        let verdict = ruleset.judge(request())
        expectEqual(verdict.deciding?.index, 2)
        let lines = ruleset.explanation(of: verdict)
        expectEqual(lines.count, 3)
        expect(lines[0].hasPrefix("line 3 is false"))
        expect(lines[1].hasPrefix("line 4 fails in resource.data.missing: Property missing is undefined"))
        expect(lines[2].hasPrefix("line 5 allows"))
        let denied = ruleset.judge(request(path: ["b", "x"]))
        expect(denied.deciding == nil && denied.statements.isEmpty)
    }

    @Test
    func `Documents are read by get and exists, and a missing one is an error or false`() throws {
        let path = "\(Self.below)/users/$(request.auth.uid)"
        let get = try Ruleset(rules("get(\(path)).data.role == 'admin'"))
        expect(get.judge(request(), ["users/alice": ["role": "admin"]]).isAllowed)
        expect(!get.judge(request(), [:]).isAllowed)
        let exists = try Ruleset(rules("exists(\(path))"))
        expect(exists.judge(request(), ["users/alice": [:]]).isAllowed)
        expect(!exists.judge(request(), [:]).isAllowed)
        let other = try Ruleset(rules("exists(/databases/other/documents/users/alice) || exists(/users/alice)"))
        expect(!other.judge(request(), ["users/alice": [:]]).isAllowed)
        let verdict = get.judge(request(), [:])
        expectEqual(verdict.reads, [DocumentRead(DocumentAddress(["users", "alice"]), .before)])
    }

    @Test
    func `getAfter and existsAfter see the commit; without one they see the database`() throws {
        let documents = TestDocuments(["b/y": ["n": 1], "b/z": ["n": 1]])
        documents.after = ["b/y": ["n": 2], "b/z": nil]
        let ruleset = try Ruleset(
            rules(
                "getAfter(\(Self.below)/b/y).data.n == 2 && get(\(Self.below)/b/y).data.n == 1"
                    + " && !existsAfter(\(Self.below)/b/z) && getAfter(\(Self.below)/b/z) == null"))
        expect(ruleset.judge(request(.update, new: ["n": 2]), access: documents).isAllowed)
        let reading = try Ruleset(rules("getAfter(\(Self.below)/b/y).data.n == 1"))
        expect(reading.judge(request(.get), access: documents).isAllowed)
    }

    @Test
    func `A judgement asks for all documents that it needs, and is made again`() throws {
        let names = ["u1", "u2", "u3"]
        let condition = names.map { "exists(\(Self.below)/b/\($0))" }.joined(separator: " || ")
        let ruleset = try Ruleset(rules(condition))
        let documents = TestDocuments(["b/u3": [:]])
        documents.pending = ["b/u1", "b/u2", "b/u3"]
        let first = ruleset.judge(request(), access: documents)
        let needed = names.map { DocumentRead(DocumentAddress(["b", $0]), .before) }
        expectEqual(first.decision, .needs(needed))
        documents.pending = []
        expect(ruleset.judge(request(), access: documents).isAllowed)
    }

    @Test
    func `A document that does not matter is not waited for`() throws {
        let documents = TestDocuments()
        documents.pending = ["b/y"]
        let yes = try Ruleset(rules("exists(\(Self.below)/b/y) || true"))
        expect(yes.judge(request(), access: documents).isAllowed)
        let no = try Ruleset(rules("exists(\(Self.below)/b/y) && false"))
        expectEqual(no.judge(request(), access: documents).decision, .denied)
    }

    @Test
    func `The document of the request is read only if a rule asks for it`() throws {
        let documents = TestDocuments(["a/x": ["n": 1]])
        var unread = request()
        unread.resource = .unread
        try expect(Ruleset(rules("request.auth != null")).judge(unread, access: documents).isAllowed)
        expect(documents.accesses.isEmpty)
        try expect(Ruleset(rules("resource.data.n == 1")).judge(unread, access: documents).isAllowed)
        expectEqual(documents.accesses.count, 1)
    }

    @Test
    func `Ten different accesses are allowed for a document; repeats are free, and exists and get count twice`() throws
    {
        func isAllowed(_ calls: [String]) throws -> Bool {
            let condition = calls.map { "!\($0)" }.joined(separator: " && ")
            return try Ruleset(rules(condition)).judge(request()).isAllowed
        }
        func exists(_ index: Int) -> String { "exists(\(Self.below)/b/d\(index))" }
        try expect(isAllowed((0..<10).map(exists)))
        try expect(!isAllowed((0..<11).map(exists)))
        try expect(isAllowed((0..<30).map { exists($0 % 10) }))
        try expect(isAllowed((0..<10).flatMap { [exists($0), "existsAfter(\(Self.below)/b/d\($0))"] }))
        let read = "(get(\(Self.below)/a/x).data.n == 2)"
        let documents: [String: MapValue] = ["a/x": ["n": 1]]
        for (count, isAllowed) in [(9, true), (10, false)] {
            let condition = ((0..<count).map(exists) + [read]).map { "!\($0)" }.joined(separator: " && ")
            try expectEqual(Ruleset(rules(condition)).judge(request(), documents).isAllowed, isAllowed)
        }
    }

    @Test
    func `A ledger counts the accesses of all writes of a commit`() throws {
        let calls = (0..<8).map { "!exists(\(Self.below)/b/$(id + '\($0)'))" }.joined(separator: " && ")
        let ruleset = try Ruleset(rules(calls))
        let ledger = AccessLedger()
        let verdicts = ["x", "x", "y", "z"].map { id in
            ruleset.judge(request(.update, path: ["a", id], new: [:]), access: TestDocuments(), ledger: ledger)
                .isAllowed
        }
        expectEqual(verdicts, [true, true, true, false])
    }

    @Test
    func `A judgement that is made again counts its accesses once more from the beginning`() throws {
        let ledger = AccessLedger(max: 2)
        let paths = ["u", "v", "w"].map { "\(Self.below)/b/\($0)" }
        let ruleset = try Ruleset(rules("exists(\(paths[0])) || exists(\(paths[1])) && exists(\(paths[2]))"))
        let documents = TestDocuments(["b/u": [:]])
        documents.pending = ["b/u"]
        let first = ruleset.judge(request(), access: documents, ledger: ledger)
        expectEqual(first.decision, .needs([DocumentRead(DocumentAddress(["b", "u"]), .before)]))
        documents.pending = []
        expect(ruleset.judge(request(), access: documents, ledger: ledger).isAllowed)
        // One access is counted, one is left.
        let other = try Ruleset(rules("!exists(\(Self.below)/c/\(1))"))
        expect(other.judge(request(), access: documents, ledger: ledger).isAllowed)
        let third = try Ruleset(rules("!exists(\(Self.below)/c/\(2))"))
        expect(!third.judge(request(), access: documents, ledger: ledger).isAllowed)
    }

    @Test
    func `A thousand expressions are evaluated for a request, over all of its statements`() throws {
        func list(_ count: Int) -> String {
            "[" + Array(repeating: "1", count: count).joined(separator: ",") + "] is list"
        }
        try expect(Ruleset(rules(list(990))).judge(request()).isAllowed)
        try expect(!Ruleset(rules("\(list(1_100)) || true")).judge(request()).isAllowed)
        try expect(Ruleset(rules("true || \(list(1_100))")).judge(request()).isAllowed)
        let two = rules("\(list(600)) && false; allow get: if \(list(600))")
        try expect(!Ruleset(two).judge(request()).isAllowed)
    }

    @Test
    func `Work on large values is bounded`() throws {
        let text = Value.string(String(repeating: "a", count: 1 << 17))
        func isAllowed(times count: Int) throws -> Bool {
            let condition = "resource.data.s.replace('a', 'bb').size() > 0"
            let ruleset = try Ruleset(rules(Array(repeating: condition, count: count).joined(separator: " && ")))
            return ruleset.judge(request(resource: ["s": text])).isAllowed
        }
        // The condition is true: what denies is the budget.
        try expect(isAllowed(times: 1))
        try expect(!isAllowed(times: 30))
    }

    @Test
    func `A wildcard of a long path is paid for each time that it is read`() throws {
        let text = Value.string(Array(repeating: "a", count: 40_000).joined(separator: "/"))
        func isAllowed(times count: Int) throws -> Bool {
            let parts = Array(repeating: "p.x is path", count: count).joined(separator: " && ")
            let function = "function holds(s) { let p = (/a/{x=**}).bind({'x': path(s)}); return \(parts); }"
            return try Ruleset(rules("holds(resource.data.s)", functions: function))
                .judge(request(resource: ["s": text])).isAllowed
        }
        try expect(isAllowed(times: 1))
        try expect(!isAllowed(times: 40))
    }

    /// Each takes seconds for a text of 1 MiB, or for a document of as many bytes.
    @Test(arguments: [
        "!resource.data.s.matches('.*a.{900}x')", "!resource.data.s.matches(resource.data.p)",
        "resource.data.s.replace('a(.*x)?', '').size() == 0",
        "resource.data.s.split('a(.*x)?').size() == 1",
    ])
    func `A pattern that is made to be slow judges short texts alone`(condition: String) throws {
        let ruleset = try Ruleset(rules(condition))
        func isAllowed(_ count: Int) -> Bool {
            let text = String(repeating: "a", count: count)
            let fields: MapValue = ["s": .string(text), "p": .string("(a|aa)*a(a|aa){400}x")]
            return ruleset.judge(request(resource: fields)).isAllowed
        }
        expect(isAllowed(1_000))
        expect(!isAllowed(1 << 20))
    }

    @Test(arguments: ["resource.data.p", "resource.data.q"])
    func `Compiling a pattern is paid for by the size of its program`(pattern: String) throws {
        // The first one is too large; the other one has a program of 27,000 instructions.
        let fields: MapValue = ["s": "", "p": "\\pL{100}", "q": "(\\pN|\\pL){20}"]
        func isAllowed(times count: Int) throws -> Bool {
            let parts = (0..<count).map { "'a'.matches(\(pattern) + '\($0)')" }.joined(separator: " || ")
            return try Ruleset(rules("\(parts) || true")).judge(request(resource: fields)).isAllowed
        }
        try expect(isAllowed(times: 2))
        try expect(!isAllowed(times: 20))
    }

    @Test(arguments: ["resource.data.z == 1", "resource.data['z'] == 1", "resource.data.get('z', 0) == 1"])
    func `Looking for a field is paid for with the size of its document`(part: String) throws {
        var fields: MapValue = [:]
        for index in 100_000..<200_000 { fields["f\(index)"] = .null }
        fields["z"] = 1
        func isAllowed(times count: Int) throws -> Bool {
            let parts = Array(repeating: part, count: count).joined(separator: ", ")
            return try Ruleset(rules("[\(parts)].hasOnly([true])")).judge(request(resource: fields)).isAllowed
        }
        try expect(isAllowed(times: 20))
        try expect(!isAllowed(times: 120))
    }

    /// Sets compare values of one hash with each other, so the hash has to count all parts of a value.
    @Test(arguments: [RulesEquality.Mode.member, .contained])
    func `Similar values have different hashes in sets and lists`(mode: RulesEquality.Mode) throws {
        let common = Value.string(String(repeating: "a", count: 20))
        let lists = (0..<2_000).map { Value.array([common, common, common, common, .integer(Int64($0))]) }
        let maps = (0..<2_000).map { Value.map(["common": common, "list": lists[$0]]) }
        let points = (0..<2_000).map { Value.geoPoint(GeoPointValue(latitude: 1, longitude: Double($0) / 20)) }
        // All of them are the same as a double.
        let integers = (-500..<500).map { Value.integer(1 << 62 + $0) }
        for values in [lists, maps, points, integers] {
            expectEqual(Set(values.map { OperandKey(Operand($0), mode).hashValue }).count, values.count)
        }
        let same: [(Value, Value)] = [(1, 1.0), (0, -0.0), (.integer(1 << 62), .double(0x1p62)), (0.5, 0.5)]
        for (left, right) in same {
            expectEqual(OperandKey(Operand(left), mode).hashValue, OperandKey(Operand(right), mode).hashValue)
        }
    }

    /// If they were compared with each other, each of these would take minutes.
    @Test(arguments: [
        ("resource.data.l.hasOnly([1])", false), ("resource.data.l.hasAll([1])", false),
        ("resource.data.l.hasAny([0.0/ 0.0, 1])", false), ("[1].hasAny(resource.data.l)", false),
        ("resource.data.l.removeAll([0.0/ 0.0]).size() == 60000", true), ("resource.data.l.toSet().size() == 1", true),
        ("resource.data.m.hasOnly([1])", false), ("[1].removeAll(resource.data.m) == [1]", true),
    ])
    func `Values that equal nothing are not compared with each other`(condition: String, isAllowed: Bool) throws {
        let numbers = Value.array(Array(repeating: .double(.nan), count: 60_000))
        let maps = Value.array(Array(repeating: ["n": .double(.nan)], count: 30_000))
        let verdict = try Ruleset(rules(condition)).judge(request(resource: ["l": numbers, "m": maps]))
        expectEqual(verdict.isAllowed, isAllowed)
    }

    /// Each takes tens of milliseconds for 90,000 numbers, or for as many fields.
    @Test(arguments: [
        "resource.data.l.hasAll(resource.data.l)", "resource.data.keys().hasAll(resource.data.keys())",
        "resource.data.diff(resource.data).affectedKeys().size() == 0 && resource.data.values().hasAny([0])",
        "resource.data.l.join('').size() > 0 && resource.data.l.toSet().size() > 0 && 0 in resource.data.l.toSet()",
    ])
    func `Elements and entries are paid for, however small they are`(condition: String) throws {
        let ruleset = try Ruleset(rules(condition))
        func verdict(_ count: Int) -> Verdict {
            var fields: MapValue = ["l": .array((0..<count).map { .integer(Int64($0)) })]
            for index in 0..<count { fields["f\(index)"] = 0 }
            return ruleset.judge(request(resource: fields))
        }
        expect(verdict(10_000).isAllowed)
        expect(verdict(10_000).work > 10_000 * 2 * Evaluation.elementWork >> 10)
        expect(!verdict(90_000).isAllowed)
    }

    @Test
    func `The difference of two maps has each key once`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<200 {
            func map() -> [String: Int64] {
                let keys = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                    "k\(Int.random(in: 0..<15, using: &generator))"
                }
                return Dictionary(keys.map { ($0, Int64.random(in: 0...1, using: &generator)) }) { first, _ in first }
            }
            let (new, old) = (map(), map())
            func operands(_ map: [String: Int64]) -> OperandMap {
                OperandMap(map.map { (key: $0.key, value: .integer($0.value)) })
            }
            let difference = MapDifference(of: operands(new), to: operands(old))
            expectEqual(difference.added, new.keys.filter { old[$0] == nil }.sorted())
            expectEqual(difference.removed, old.keys.filter { new[$0] == nil }.sorted())
            let common = new.keys.filter { old[$0] != nil }
            expectEqual(difference.changed, common.filter { old[$0] != new[$0] }.sorted())
            expectEqual(difference.unchanged, common.filter { old[$0] == new[$0] }.sorted())
        }
    }

    @Test
    func `A value that has one part many times is paid for each time, an empty one too`() throws {
        let names = "abcdefg".map { String($0) }
        let lists = zip(names, names.dropFirst()).map { inner, outer in
            "let \(outer) = [\(Array(repeating: inner, count: 10).joined(separator: ", "))];"
        }
        func isAllowed(levels: Int) throws -> Bool {
            let variables = (["let a = [];"] + lists.prefix(levels)).joined(separator: " ")
            let name = names[levels]
            let function = "function same() { \(variables) return \(name) == \(name); }"
            return try Ruleset(rules("same()", functions: function)).judge(request()).isAllowed
        }
        try expect(isAllowed(levels: 3))
        // A million empty lists.
        try expect(!isAllowed(levels: 6))
    }

    /// A text of 1 MiB has half a million of them.
    @Test(arguments: [
        "path(resource.data.s) is path", "p[0] == 'a'", "p[0:2] is path", "string(p) != ''", "/x/$(p) is path",
        "p == p", "[p].hasOnly([p])",
    ])
    func `Paths are paid for by their segments`(part: String) throws {
        let text = Value.string(String(repeating: "a/", count: 20_000) + "a")
        func isAllowed(times count: Int) throws -> Bool {
            let parts = Array(repeating: part, count: count).joined(separator: ", ")
            let function = "function all() { let p = path(resource.data.s); return [\(parts)].hasOnly([true]); }"
            return try Ruleset(rules("all()", functions: function)).judge(request(resource: ["s": text])).isAllowed
        }
        try expect(isAllowed(times: 2))
        try expect(!isAllowed(times: 40))
    }

    @Test
    func `Looking for a value in a set is paid for with the size of the value`() throws {
        let text = Value.string(String(repeating: "a", count: 1 << 17))
        func isAllowed(times count: Int) throws -> Bool {
            let part = "resource.data in [1].toSet()"
            let parts = Array(repeating: part, count: count).joined(separator: ", ")
            return try Ruleset(rules("[\(parts)].hasOnly([false])")).judge(request(resource: ["s": text])).isAllowed
        }
        try expect(isAllowed(times: 10))
        try expect(!isAllowed(times: 60))
    }

    @Test(arguments: [
        ("resource.data.l.toSet().size() == 8000", true), ("resource.data.l.hasAll(resource.data.l)", true),
        ("resource.data.l[0] in resource.data.l.removeAll([resource.data.l[0]])", false),
    ])
    func `Sets and lists of many values are within the budget`(condition: String, isAllowed: Bool) throws {
        // The values differ in their last part alone.
        let common = Value.string(String(repeating: "a", count: 20))
        let lists = (0..<8_000).map { Value.array([common, common, common, common, .integer(Int64($0))]) }
        let verdict = try Ruleset(rules(condition)).judge(request(resource: ["l": .array(lists)]))
        expectEqual(verdict.isAllowed, isAllowed)
    }

    @Test
    func `Coverage has the values of conditions, as the emulator writes them`() throws {
        let ruleset = try Ruleset(rules("resource.data.n == 1 || resource.data.missing"))
        let coverage = ExpressionCoverage(expressions: ruleset.tree.count)
        _ = ruleset.judge(request(), access: TestDocuments(), coverage: coverage)
        _ = ruleset.judge(request(resource: ["n": 2]), access: TestDocuments(), coverage: coverage)
        let json = ruleset.coverageJSON(coverage, name: "firestore.rules")
        expect(json.contains("\"name\":\"firestore.rules\""))
        expect(json.contains("{\"value\":{\"boolValue\":true},\"count\":1}"))
        expect(json.contains("\"causeMessage\":\"Property missing is undefined on object.\""))
        let lines = ruleset.coverageLines(coverage)
        expectEqual(lines.first, "line 4: 1 true, 0 false, 1 failed: resource.data.n == 1 || resource.data.missing")
        expect(lines.contains("line 4: 1 true, 1 false, 0 failed: resource.data.n == 1"))
    }
}
