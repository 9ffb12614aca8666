// Finding fields in place, and taking `Document` messages apart.

import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DocumentBytesTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Every field of random documents is found, at every depth`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<200 {
            let fields = random.fields(depth: 4)
            let bytes = fields.documentBytes
            try check(fields, prefix: [], in: bytes)
            let absent = try FieldPath(segments: ["no such field"])
            expectNil(value(at: absent, in: bytes))
        }
    }

    private func value(at path: FieldPath, in bytes: [UInt8], by index: FieldIndex? = nil) -> [UInt8]? {
        guard let found = DocumentBytes.value(at: path, in: bytes.span.bytes, by: index) else { return nil }
        return [UInt8](copying: found)
    }

    private func check(_ map: MapValue, prefix: [String], in bytes: [UInt8]) throws {
        for (key, value) in map.entries {
            // The sentinel key of a vector cannot be in a path.
            guard value.vectorElements == nil else { continue }
            let path = try FieldPath(segments: prefix + [key])
            expectEqual(self.value(at: path, in: bytes), value.wireBytes, "\(path)")
            if case .map(let inner) = value {
                try check(inner, prefix: prefix + [key], in: bytes)
            } else {
                let below = try FieldPath(utf8Segments: path.utf8Segments + [[UInt8(ascii: "x")]])
                expectNil(self.value(at: below, in: bytes))
            }
        }
    }

    @Test func `An index finds the fields that a walk finds, and walks each large map once`() throws {
        let names = (0..<300).map { "n\(3 * $0)" }
        let inner = MapValue(Dictionary(uniqueKeysWithValues: names.map { ($0, Value.string("\($0) in the map")) }))
        var outer = Dictionary(uniqueKeysWithValues: names.map { ($0, Value.string($0)) })
        outer["large"] = .map(inner)
        outer["small"] = ["x": 1]
        let bytes = MapValue(outer).documentBytes
        let absent = (0..<300).flatMap { ["n\(3 * $0 + 1)", "large.n\(3 * $0 + 2)"] }
        let others = ["large", "small", "small.x", "small.y", "a", "z", "large.a", "large.z", "n0.x"]
        let index = FieldIndex()
        for text in names + names.map({ "large.\($0)" }) + absent + others {
            let path = try FieldPath(text)
            expectEqual(value(at: path, in: bytes, by: index), value(at: path, in: bytes), "\(text)")
        }
        expectEqual(index.mapCount, 2)
    }

    @Test func `An index finds fields that are not in order, and does no harm to bytes that are none`() throws {
        var bytes: [UInt8] = []
        for number in (0..<200).reversed() { bytes += (["n\(number)": 1] as MapValue).documentBytes }
        let index = FieldIndex()
        for number in 0..<201 {
            expectEqual(value(at: try FieldPath("n\(number)"), in: bytes, by: index) != nil, number < 200)
        }
        let noise = [UInt8](repeating: 0xFF, count: 5_000)
        expectNil(value(at: try FieldPath("a"), in: noise, by: FieldIndex()))
    }

    @Test(arguments: [5, 6] as [UInt64])
    func `Looking into malformed bytes does no harm`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let paths = try ["a", "b.c", "value.a.b"].map { try FieldPath($0) }
        for _ in 0..<3000 {
            var bytes = random.fields(depth: 3).documentBytes
            guard !bytes.isEmpty else { continue }
            bytes[random.generator.below(bytes.count)] = UInt8(truncatingIfNeeded: random.generator.next())
            bytes.removeLast(random.generator.below(bytes.count))
            let copy = bytes
            for path in paths {
                let count = DocumentBytes.value(at: path, in: copy.span.bytes)?.byteCount ?? 0
                expect(count <= copy.count)
            }
        }
    }
}

/// Records every path that it gets.
private struct PathCollector: DocumentVisitor {
    var path: [String] = []
    var visited: [([String], [UInt8])] = []

    mutating func visit(name: RawSpan, value: RawSpan, depth: Int) -> Bool {
        path.removeLast(path.count - depth)
        path.append(String(repairingUTF8: name))
        visited.append((path, [UInt8](copying: value)))
        return path != ["skip"]
    }

    mutating func leave(depth: Int) { path.removeLast(path.count - depth - 1) }
}

@Suite(.timeLimit(.minutes(20))) struct DocumentVisitorTests {
    @Test(arguments: [1, 2] as [UInt64])
    func `A visit reports every field of random documents in canonical order`(seed: UInt64) {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<200 {
            let fields = random.fields(depth: 4)
            let bytes = fields.documentBytes
            var collector = PathCollector()
            DocumentBytes.visit(bytes.span.bytes, with: &collector)
            let expected = flatten(fields, prefix: [])
            expectEqual(collector.visited.map(\.0), expected.map(\.0))
            expectEqual(collector.visited.map(\.1), expected.map { $0.1.wireBytes })
        }
    }

    @Test
    func `A visitor can decline what is inside a map`() {
        let fields: MapValue = ["skip": ["a": 1], "take": ["a": 1]]
        let bytes = fields.documentBytes
        var collector = PathCollector()
        DocumentBytes.visit(bytes.span.bytes, with: &collector)
        expectEqual(collector.visited.map(\.0), [["skip"], ["take"], ["take", "a"]])
    }

    private func flatten(_ map: MapValue, prefix: [String]) -> [([String], Value)] {
        map.entries.flatMap { key, value -> [([String], Value)] in
            guard case .map(let inside) = value, value.vectorElements == nil else { return [(prefix + [key], value)] }
            return [(prefix + [key], value)] + flatten(inside, prefix: prefix + [key])
        }
    }
}
