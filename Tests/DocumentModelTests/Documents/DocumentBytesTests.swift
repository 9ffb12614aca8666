// Finding fields in place, and taking `Document` messages apart.

import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct DocumentBytesTests {
    @Test("Every field of random documents is found, at every depth", arguments: [1, 2, 3] as [UInt64])
    func allFields(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<200 {
            let fields = random.fields(depth: 4)
            let bytes = fields.documentBytes
            try check(fields, prefix: [], in: bytes)
            let absent = try FieldPath(segments: ["no such field"])
            #expect(value(at: absent, in: bytes) == nil)
        }
    }

    private func value(at path: FieldPath, in bytes: [UInt8]) -> [UInt8]? {
        guard let found = DocumentBytes.value(at: path, in: bytes.span.bytes) else { return nil }
        return [UInt8](copying: found)
    }

    private func check(_ map: MapValue, prefix: [String], in bytes: [UInt8]) throws {
        for (key, value) in map.entries {
            // The sentinel key of a vector cannot be in a path.
            guard value.vectorElements == nil else { continue }
            let path = try FieldPath(segments: prefix + [key])
            #expect(self.value(at: path, in: bytes) == value.wireBytes, "\(path)")
            if case .map(let inner) = value {
                try check(inner, prefix: prefix + [key], in: bytes)
            } else {
                let below = try path.appending("x")
                #expect(self.value(at: below, in: bytes) == nil)
            }
        }
    }

    @Test("Looking into malformed bytes does no harm", arguments: [5, 6] as [UInt64])
    func malformed(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let paths = try ["a", "b.c", "value.a.b"].map { try FieldPath($0) }
        for _ in 0..<3000 {
            var bytes = random.fields(depth: 3).documentBytes
            guard !bytes.isEmpty else { continue }
            bytes[random.generator.below(bytes.count)] = UInt8(truncatingIfNeeded: random.generator.next())
            bytes.removeLast(random.generator.below(bytes.count))
            let copy = bytes
            for path in paths {
                let count = DocumentBytes.withField(path: path, in: copy.span.bytes) { $0?.byteCount ?? 0 }
                #expect(count <= copy.count)
            }
        }
    }

    @Test("A Document message gives its parts")
    func view() throws {
        let fields: MapValue = ["a": 1, "b": "x"]
        var writer = WireWriter()
        writer.appendField(1, string: "the name")
        fields.encodeDocument(into: &writer)
        writer.appendField(3, timestamp: TimestampValue(seconds: 1, nanoseconds: 0))
        writer.appendField(4, timestamp: TimestampValue(seconds: 2, nanoseconds: 5))
        let bytes = writer.copyBytes()
        let view = try DocumentView(bytes.span.bytes)
        #expect(String(repairingUTF8: view.name) == "the name")
        #expect([UInt8](copying: view.fields) == fields.documentBytes)
        let parts = (view.isContiguous, view.createTime?.seconds, view.updateTime?.seconds)
        #expect(parts == (true, 1, 2))
    }

    @Test("Entries with other fields between them are told, and rewritten")
    func scattered() throws {
        let first: MapValue = ["a": 1]
        let second: MapValue = ["b": 2]
        var writer = WireWriter()
        first.encodeDocument(into: &writer)
        writer.appendField(1, string: "late name")
        second.encodeDocument(into: &writer)
        let bytes = writer.copyBytes()
        let view = try DocumentView(bytes.span.bytes)
        let isContiguous = view.isContiguous
        #expect(!isContiguous)
        #expect(try !DocumentValidator.validate(fields: view.fields).isCanonical)
        var rewritten = WireWriter()
        try DocumentCanonicalizer.canonicalize(fields: view.fields, into: &rewritten)
        let expected: MapValue = ["a": 1, "b": 2]
        #expect(rewritten.copyBytes() == expected.documentBytes)
    }

    @Test("A Document message without fields has none")
    func empty() throws {
        let bytes: [UInt8] = []
        let view = try DocumentView(bytes.span.bytes)
        let counts = (view.name.byteCount, view.fields.byteCount, view.isContiguous)
        #expect(counts == (0, 0, true))
    }
}

/// Writes down every path it is told of.
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

@Suite(.timeLimit(.minutes(5))) struct DocumentVisitorTests {
    @Test("A visit tells every field of random documents in canonical order", arguments: [1, 2] as [UInt64])
    func visitsAll(seed: UInt64) {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<200 {
            let fields = random.fields(depth: 4)
            let bytes = fields.documentBytes
            var collector = PathCollector()
            DocumentBytes.visit(bytes.span.bytes, with: &collector)
            let expected = flatten(fields, prefix: [])
            #expect(collector.visited.map(\.0) == expected.map(\.0))
            #expect(collector.visited.map(\.1) == expected.map { $0.1.wireBytes })
        }
    }

    @Test("A visitor can decline what is inside a map")
    func declines() {
        let fields: MapValue = ["skip": ["a": 1], "take": ["a": 1]]
        let bytes = fields.documentBytes
        var collector = PathCollector()
        DocumentBytes.visit(bytes.span.bytes, with: &collector)
        #expect(collector.visited.map(\.0) == [["skip"], ["take"], ["take", "a"]])
    }

    private func flatten(_ map: MapValue, prefix: [String]) -> [([String], Value)] {
        map.entries.flatMap { key, value -> [([String], Value)] in
            guard case .map(let inside) = value, value.vectorElements == nil else { return [(prefix + [key], value)] }
            return [(prefix + [key], value)] + flatten(inside, prefix: prefix + [key])
        }
    }
}
