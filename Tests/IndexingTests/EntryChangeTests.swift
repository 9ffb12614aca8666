// What a write changes about the index entries of a document: what differs, and no more.

import Basics
import DocumentModel
import Storage
import StoreFormat
import StoreTestSupport
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct EntryChangeTests {
    /// Entries, and those that were written or removed.
    private struct Entries: IndexEntrySink {
        var all: [[UInt8]: [UInt8]] = [:]
        var changed: Set<[UInt8]> = []
        /// How often entries were written or removed.
        var changeCount = 0

        mutating func put(entry key: RawSpan) { put(entry: key, value: key.extracting(0..<0)) }

        mutating func remove(entry key: RawSpan) {
            changeCount += 1
            changed.insert([UInt8](copying: key))
            all[[UInt8](copying: key)] = nil
        }

        mutating func put(entry key: RawSpan, value: RawSpan) {
            changeCount += 1
            changed.insert([UInt8](copying: key))
            all[[UInt8](copying: key)] = [UInt8](copying: value)
        }

        /// Keys that only one of two has, or that have another value in the other.
        func difference(from other: Entries) -> Set<[UInt8]> {
            Set(all.keys).union(other.all.keys).filter { all[$0] != other.all[$0] }
        }
    }

    private struct Numbers: FieldNumbering {
        private var numbers: [[UInt8]: UInt64] = [:]

        mutating func number(of name: RawSpan, under parent: UInt64, database: UInt32) -> UInt64 {
            var key = ByteBuffer()
            FieldNumbers.writeKey(name, under: parent, database: database, into: &key)
            let field = key.copyBytes()
            let number = numbers[field] ?? UInt64(numbers.count) + 1
            numbers[field] = number
            return number
        }
    }

    /// Derives the entries of one document.
    private struct Deriver: ~Copyable {
        let path: String
        /// Nil for the entries of all fields.
        let index: DeclaredIndex?
        var automatic = IndexDerivation(Numbers())
        var declared = DeclaredIndexes()

        init(path: String, _ shape: IndexShape?) {
            self.path = path
            index = shape.map {
                DeclaredIndex(number: 1, database: 1, shape: $0, state: IndexState(phase: .complete))
            }
        }

        /// Brings entries up to date.
        mutating func change(_ entries: inout Entries, from old: MapValue, to new: MapValue) throws {
            var key = ByteBuffer()
            let bytes = Array(path.utf8)
            let parts = DocumentKey.write(bytes.byteSpan, database: 1, into: &key)
            let document = IndexedDocument(
                database: 1, collection: 7, key: key.bytes, parts, path: bytes.byteSpan)
            let (before, after) = (old.documentBytes, new.documentBytes)
            if let index {
                declared.derive(index, document, from: before.byteSpan, to: after.byteSpan, into: &entries)
            } else {
                try automatic.derive(document, from: before.byteSpan, to: after.byteSpan, into: &entries)
            }
        }

        mutating func entries(of fields: MapValue) throws -> Entries {
            var entries = Entries()
            try change(&entries, from: [:], to: fields)
            (entries.changed, entries.changeCount) = ([], 0)
            return entries
        }
    }

    private static func shape(isGroup: Bool, _ parts: (String, IndexShape.Part.Kind)...) throws -> IndexShape {
        IndexShape(
            collectionID: "c", isGroup: isGroup,
            parts: try parts.map { IndexShape.Part(field: try FieldPath($0.0), kind: $0.1) })
    }

    private static func shapes() throws -> [IndexShape?] {
        [
            nil, try shape(isGroup: false, ("t", .contains), ("a", .ascending)),
            try shape(isGroup: true, ("a", .descending), ("t", .contains)), try shape(isGroup: true, ("t", .contains)),
            try shape(isGroup: false, ("a", .ascending), ("b", .descending)),
        ]
    }

    @Test(arguments: UInt64(1)..<9)
    func `A write changes the entries that differ, and no others`(seed: UInt64) throws {
        for shape in try Self.shapes() {
            var random = RandomQueries(seed: seed)
            random.isLong = seed % 2 == 0
            let id = random.isLong ? String(repeating: "i", count: 300) : "1"
            var deriver = Deriver(path: "c/\(id)", shape)
            var fields: MapValue = [:]
            for round in 0..<200 {
                let next = Self.changed(fields, &random)
                let before = try deriver.entries(of: fields)
                let expected = try deriver.entries(of: next)
                var entries = before
                try deriver.change(&entries, from: fields, to: next)
                let place = "seed \(seed), round \(round), \(shape?.properties ?? "all fields"): \(fields) to \(next)"
                expectEqual(entries.all, expected.all, "\(place)")
                expectEqual(entries.changed, before.difference(from: expected), "\(place)")
                expectEqual(entries.changed.count, entries.changeCount, "\(place)")
                fields = next
            }
        }
    }

    /// Fields of which some stay, and an array that is changed in places.
    private static func changed(_ fields: MapValue, _ random: inout RandomQueries) -> MapValue {
        var next = fields
        for name in ["a", "b"] where random.random.generator.oneIn(3) {
            next[name] = random.random.generator.oneIn(4) ? nil : random.value()
        }
        if random.random.generator.oneIn(4) {
            next["m"] = .map(["x": random.value(), "t": .array([random.value()].filter { !$0.isArray })])
        }
        guard random.random.generator.oneIn(2) else { return next }
        var elements: [Value] = []
        if case .array(let present)? = fields["t"] { elements = present }
        for _ in 0..<random.random.generator.below(3) {
            let value = random.random.generator.oneIn(3) ? twin(of: elements.last) : random.value()
            if !value.isArray { elements.append(value) }
        }
        if !elements.isEmpty, random.random.generator.oneIn(2) {
            elements.remove(at: random.random.generator.below(elements.count))
        }
        next["t"] = random.random.generator.oneIn(10) ? 3 : .array(Array(elements.suffix(12)))
        return next
    }

    /// A value with the same key as another one, if there is one.
    private static func twin(of value: Value?) -> Value {
        switch value {
        case .integer(let number)?: .double(Double(number))
        case .double(0)?: .integer(0)
        case .string(let text)? where text.utf8.count > 220: .string(text + "!")
        case let value?: value
        case nil: 1
        }
    }

    @Test
    func `A document that comes or goes changes the entry of an element once, however often it is in the array`() throws
    {
        let elements: [Value] = [1, 1, 1.0, "a", "a", .null, .null]
        let fields: MapValue = ["a": 1, "t": .array(elements), "m": ["t": .array(elements)]]
        for (shape, count) in [(nil, 2 + 2 + 2 * 3), (try Self.shape(isGroup: true, ("t", .contains)), 3)] {
            var deriver = Deriver(path: "c/1", shape)
            var entries = Entries()
            try deriver.change(&entries, from: [:], to: fields)
            expect(entries.all.count == count && entries.changeCount == count)
            try deriver.change(&entries, from: fields, to: [:])
            expect(entries.all.isEmpty && entries.changeCount == 2 * count)
        }
    }

    @Test
    func `Entries of the elements of an array stay while other fields change`() throws {
        let elements = (0..<100).map { Value.integer($0) }
        let fields: MapValue = ["a": 1, "b": 1, "t": .array(elements)]
        var changed = fields
        changed["b"] = 2
        var longer = fields
        longer["t"] = .array(elements.dropFirst() + [.integer(100)])
        var moved = fields
        moved["a"] = 2
        for (next, changes) in [(changed, 0), (longer, 2), (moved, 200)] {
            var deriver = Deriver(path: "c/1", try Self.shape(isGroup: false, ("t", .contains), ("a", .ascending)))
            var entries = try deriver.entries(of: fields)
            try deriver.change(&entries, from: fields, to: next)
            expectEqual(entries.changed.count, changes)
        }
        // The array as a whole has a key of which only the first 220 bytes are kept.
        longer["t"] = .array(elements + [.integer(100)])
        var all = Deriver(path: "c/1", nil)
        var entries = try all.entries(of: fields)
        try all.change(&entries, from: fields, to: longer)
        expectEqual(entries.changed.count, 1)
    }
}

extension Value {
    fileprivate var isArray: Bool {
        if case .array = self { true } else { false }
    }
}
