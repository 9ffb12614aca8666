// Containers used in every order the protocols allow.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

/// Encodes with a closure.
struct Encoding: Encodable {
    let body: (any Encoder) throws -> Void
    init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }
    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

@Suite(.timeLimit(.minutes(20))) struct EncodingContainersTests {
    enum Keys: String, CodingKey { case a, b, c, d }
    let encoder = FirestoreEncoder()

    @Test func `Nested containers may be written to in any order`() throws {
        let fields = try encoder.fields(
            Encoding { encoder in
                var root = encoder.container(keyedBy: Keys.self)
                var first = root.nestedContainer(keyedBy: Keys.self, forKey: .c)
                var second = root.nestedUnkeyedContainer(forKey: .b)
                try first.encode(1, forKey: .b)
                try second.encode(10)
                try root.encode("root", forKey: .a)
                var inner = first.nestedContainer(keyedBy: Keys.self, forKey: .a)
                try second.encode(11)
                try inner.encode(true, forKey: .d)
                try first.encode(2, forKey: .c)
                try inner.encode(Field(v: 3), forKey: .a)
            })
        expectEqual(fields, ["a": "root", "b": [10, 11], "c": ["a": ["a": ["v": 3], "d": true], "b": 1, "c": 2]])
    }

    @Test func `A nested container asked for twice is one map`() throws {
        let fields = try encoder.fields(
            Encoding { encoder in
                var root = encoder.container(keyedBy: Keys.self)
                var first = root.nestedContainer(keyedBy: Keys.self, forKey: .a)
                try first.encode(1, forKey: .a)
                var again = root.nestedContainer(keyedBy: Keys.self, forKey: .a)
                try again.encode(2, forKey: .b)
                var more = encoder.container(keyedBy: Keys.self)
                try more.encode(3, forKey: .d)
            })
        expectEqual(fields, ["a": ["a": 1, "b": 2], "d": 3])
    }

    @Test func `Nested elements stand where they were asked for`() throws {
        let fields = try encoder.fields(
            Encoding { encoder in
                var root = encoder.container(keyedBy: Keys.self)
                var list = root.nestedUnkeyedContainer(forKey: .a)
                try list.encode(0)
                var map = list.nestedContainer(keyedBy: Keys.self)
                try list.encode(2)
                var other = list.nestedContainer(keyedBy: Keys.self)
                expectEqual(list.count, 4)
                try other.encode(String(repeating: "long", count: 100), forKey: .b)
                try map.encode("one", forKey: .a)
                try list.encode(4)
            })
        expectEqual(fields, ["a": [0, ["a": "one"], 2, ["b": .string(String(repeating: "long", count: 100))], 4]])
    }

    class Base: Encodable {
        var base = 1
        enum CodingKeys: CodingKey { case base }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(base, forKey: .base)
        }
    }

    final class Derived: Base {
        enum CodingKeys: CodingKey { case own, unused }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: container.superEncoder())
            try container.encode(2, forKey: .own)
            _ = container.superEncoder(forKey: .unused)
        }
    }

    final class SameContainer: Base {
        enum CodingKeys: CodingKey { case own }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(2, forKey: .own)
            try super.encode(to: encoder)
        }
    }

    @Test func `Super encoders use the key super, or the map of the subclass`() throws {
        try expectEqual(encoder.fields(Derived()), ["own": 2, "super": ["base": 1], "unused": [:]])
        try expectEqual(encoder.fields(SameContainer()), ["base": 1, "own": 2])
    }

    @Test func `Of a key written twice the last value stays`() throws {
        let fields = try encoder.fields(
            Encoding { encoder in
                var root = encoder.container(keyedBy: Keys.self)
                try root.encode(1, forKey: .a)
                try root.encode("between", forKey: .b)
                try root.encode(2, forKey: .a)
            })
        expectEqual(fields, ["a": 2, "b": "between"])
    }

    struct Node: Codable, Equatable {
        var name: String
        var children: [Node]
        var left: [String: Node]
    }

    @Test func `Recursive types lend one container each`() throws {
        func node(_ depth: Int) -> Node {
            depth == 0
                ? Node(name: "leaf", children: [], left: [:])
                : Node(name: "\(depth)", children: [node(depth - 1), node(depth - 1)], left: ["l": node(depth - 1)])
        }
        let tree = node(5)
        let bytes = try encoder.documentBytes(tree)
        try expect(DocumentValidator.validate(fields: bytes.span.bytes).isCanonical)
        try expectEqual(FirestoreDecoder().decode(Node.self, fromDocumentBytes: bytes.span.bytes), tree)
    }

    @Test func `A container that user code keeps is not lent again`() throws {
        final class Keeper { var kept: [KeyedEncodingContainer<Keys>] = [] }
        let keeper = Keeper()
        let keeping = Encoding { encoder in
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(1, forKey: .a)
            keeper.kept.append(container)
        }
        for _ in 0..<3 {
            try expectEqual(encoder.fields(keeping), ["a": 1])
            try expectEqual(
                encoder.fields(
                    Encoding { encoder in
                        var container = encoder.container(keyedBy: Keys.self)
                        try container.encode(keeping, forKey: .c)
                        try container.encode(2, forKey: .b)
                    }), ["b": 2, "c": ["a": 1]])
        }
        keeper.kept = []
        try expectEqual(encoder.fields(keeping), ["a": 1])
    }

    @Test func `Coding paths are those of the values`() throws {
        var paths: [String] = []
        func note(_ path: [any CodingKey]) { paths.append(path.map(\.stringValue).joined(separator: "/")) }
        let inner = Encoding { encoder in
            note(encoder.codingPath)
            var container = encoder.container(keyedBy: Keys.self)
            note(container.codingPath)
            try container.encode(1, forKey: .a)
            var nested = container.nestedContainer(keyedBy: Keys.self, forKey: .b)
            note(nested.codingPath)
            try nested.encode(
                Encoding { encoder in
                    note(encoder.codingPath)
                    var single = encoder.singleValueContainer()
                    try single.encode(1)
                }, forKey: .d)
        }
        _ = try encoder.fields(["x": [inner]])
        expectEqual(paths, ["x/Index 0", "x/Index 0", "x/Index 0/b", "x/Index 0/b/d"])
    }

    @Test func `A keyed container that is used after its value was encoded ends the program with the reason`() async {
        let afterDocument = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            var kept: KeyedEncodingContainer<Keys>?
            let keeping = Encoding { encoder in
                kept = encoder.container(keyedBy: Keys.self)
                try kept?.encode(1, forKey: .a)
            }
            _ = try FirestoreEncoder().documentBytes(keeping)
            try kept?.encode(2, forKey: .b)
        }
        let afterParent = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            var kept: KeyedEncodingContainer<Keys>?
            let keeping = Encoding { encoder in
                var container = encoder.container(keyedBy: Keys.self)
                kept = container.nestedContainer(keyedBy: Keys.self, forKey: .a)
                try container.encode(1, forKey: .b)
            }
            _ = try FirestoreEncoder().documentBytes(keeping)
            try kept?.encode(2, forKey: .b)
        }
        for result in [afterDocument, afterParent] {
            let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            expect(text.contains("was used after the value it was made for had been encoded"), "\(text)")
        }
    }

    @Test func `What code keeps has no path after the document has been encoded`() throws {
        final class Keeper {
            var encoders: [any Encoder] = []
            var containers: [KeyedEncodingContainer<Keys>] = []
            var paths: [String] {
                (encoders.map(\.codingPath) + containers.map(\.codingPath)).map { path in
                    path.map(\.stringValue).joined(separator: "/")
                }
            }
        }
        let keeper = Keeper()
        let inner = Encoding { encoder in
            var container = encoder.container(keyedBy: Keys.self)
            keeper.encoders = [encoder, container.superEncoder(forKey: .b)]
            keeper.containers = [container, container.nestedContainer(keyedBy: Keys.self, forKey: .c)]
            expectEqual(keeper.paths, ["x/y", "x/y/b", "x/y", "x/y/c"])
        }
        _ = try encoder.fields(["x": ["y": inner]])
        expectEqual(keeper.paths, ["", "", "", ""])
        // Another document is in the same memory.
        _ = try encoder.fields(["long": [String(repeating: "z", count: 2_000_000)]])
        expectEqual(keeper.paths, ["", "", "", ""])
        let later = Encoding { _ in expectEqual(keeper.paths, ["", "", "", ""]) }
        _ = try encoder.fields(["p": ["q": ["r": later]]])
    }

    @Test func `Encoding inside encoding`() throws {
        struct Packed: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(Data(try FirestoreEncoder().documentBytes(Field(v: 1))))
            }
        }
        try expectEqual(encoder.fields(Field(v: Packed())), ["v": .bytes(documentBytes(["v": 1]))])
    }

    @Test func `Values see the encoder's userInfo`() throws {
        let key = CodingUserInfoKey(rawValue: "k")!
        encoder.userInfo[key] = "info"
        let fields = try encoder.fields(
            [
                "a": Encoding { encoder in
                    var single = encoder.singleValueContainer()
                    try single.encode(encoder.userInfo[key] as? String)
                }
            ])
        expectEqual(fields, ["a": "info"])
    }
}
