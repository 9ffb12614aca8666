// The validator: every rule by a table, canonical form and size on random documents, and bytes from nowhere.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DocumentValidatorTests {
    typealias Result = DocumentValidator.Result

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Canonical bytes of random documents pass, are canonical and have the published size`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for round in 0..<400 {
            let fields = random.fields(depth: random.generator.below(6))
            let bytes = fields.documentBytes
            let result = try DocumentValidator.validate(fields: bytes.span.bytes)
            expectEqual(
                result, Result(isCanonical: true, size: PublishedSize.fields(fields)), "seed \(seed), round \(round)")
            try expectEqual(MapValue(documentBytes: bytes.span.bytes), fields)
            var copied = ByteBuffer()
            try DocumentCanonicalizer.canonicalize(fields: bytes.span.bytes, into: &copied)
            expectEqual(copied.copyBytes(), bytes)
        }
    }

    @Test(arguments: [4, 5, 6] as [UInt64])
    func `Irregular bytes pass and are rewritten to the canonical ones`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for round in 0..<400 {
            let fields = random.fields(depth: random.generator.below(5))
            let bytes = random.irregularDocumentBytes(of: fields)
            let result = try DocumentValidator.validate(fields: bytes.span.bytes)
            var rewritten = ByteBuffer()
            try DocumentCanonicalizer.canonicalize(fields: bytes.span.bytes, into: &rewritten)
            let (canonical, expected) = (rewritten.copyBytes(), fields.documentBytes)
            expectEqual(canonical, expected, "seed \(seed), round \(round)")
            expectEqual(result.isCanonical, bytes == expected, "seed \(seed), round \(round)")
            expect(result.size >= PublishedSize.fields(fields), "seed \(seed), round \(round)")
            try expectEqual(MapValue(documentBytes: bytes.span.bytes).documentBytes, expected)
        }
    }

    @Test(arguments: [7, 8] as [UInt64])
    func `Irregular single values are rewritten to the canonical ones`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<1000 {
            let value = random.value(depth: 2)
            let bytes = random.irregularValueBytes(of: value)
            let result = try DocumentValidator.validate(value: bytes.span.bytes)
            var rewritten = ByteBuffer()
            try DocumentCanonicalizer.canonicalize(value: bytes.span.bytes, into: &rewritten)
            let canonical = rewritten.copyBytes()
            expectEqual(canonical, value.wireBytes, "seed \(seed): \(value)")
            expectEqual(result.isCanonical, bytes == canonical)
        }
    }

    @Test(arguments: [21, 22, 23] as [UInt64])
    func `Mutated bytes are refused or valid through and through, and never trap`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        var refused = 0
        for _ in 0..<3000 {
            var bytes = random.fields(depth: 3).documentBytes
            for _ in 0..<1 + random.generator.below(3) where !bytes.isEmpty {
                let at = random.generator.below(bytes.count)
                switch random.generator.below(3) {
                case 0: bytes[at] = UInt8(truncatingIfNeeded: random.generator.next())
                case 1: bytes.remove(at: at)
                default: bytes.insert(random.generator.pick([0, 1, 0x0a, 0x12, 0x7f, 0x80, 0xff]), at: at)
                }
            }
            let copy = bytes
            do throws(InvalidDocument) {
                let result = try DocumentValidator.validate(fields: copy.span.bytes)
                var rewritten = ByteBuffer()
                try DocumentCanonicalizer.canonicalize(fields: copy.span.bytes, into: &rewritten)
                try expect(DocumentValidator.validate(fields: rewritten.bytes).isCanonical, "seed \(seed)")
                try expectEqual(MapValue(documentBytes: copy.span.bytes).documentBytes, rewritten.copyBytes())
                if result.isCanonical { expectEqual(rewritten.copyBytes(), copy, "seed \(seed)") }
            } catch {
                refused += 1
            }
        }
        expect(refused > 100)
    }

    @Test
    func `A document cut at any byte is refused, or valid up to an entry's end`() throws {
        var random = RandomDocuments(seed: 31)
        let fields = random.fields(depth: 3, countMax: 12)
        let bytes = fields.documentBytes
        var ends: Set<Int> = [0]
        for count in 1...fields.count { ends.insert(MapValue(fields.entries.prefix(count)).documentBytes.count) }
        for count in bytes.indices {
            let cut = Array(bytes[..<count])
            let passes = (try? DocumentValidator.validate(fields: cut.span.bytes)) != nil
            expectEqual(passes, ends.contains(count))
        }
    }

    // MARK: Rules

    static let rules: [(String, Value, InvalidDocument.Reason?)] = [
        ("f", .string(String(repeating: "x", count: 1_048_487)), nil),
        ("f", .string(String(repeating: "x", count: 1_048_488)), .stringTooLong),
        ("f", .bytes([UInt8](repeating: 0, count: 1_048_487)), nil),
        ("f", .bytes([UInt8](repeating: 0, count: 1_048_488)), .bytesTooLong),
        ("", 1, .fieldNameEmpty),
        (String(repeating: "x", count: 1500), 1, nil),
        (String(repeating: "x", count: 1501), 1, .fieldNameTooLong),
        ("____", 1, nil),
        ("_____", 1, .fieldNameReserved),
        ("__name__", 1, .fieldNameReserved),
        ("__type__", 1, .fieldNameReserved),
        ("f", ["__x__": 1], .fieldNameReserved),
        ("f", [["a"]], .arrayInArray),
        ("f", [["a": ["b"]]], nil),
        ("f", .timestamp(TimestampValue(seconds: Limits.earliestSecond, nanoseconds: 0)), nil),
        ("f", .timestamp(TimestampValue(seconds: Limits.earliestSecond - 1, nanoseconds: 0)), .timestampOutOfRange),
        ("f", .timestamp(TimestampValue(seconds: Limits.latestSecond, nanoseconds: 999_999_000)), nil),
        ("f", .timestamp(TimestampValue(seconds: Limits.latestSecond + 1, nanoseconds: 0)), .timestampOutOfRange),
        ("f", .timestamp(TimestampValue(seconds: 0, nanoseconds: -1000)), .timestampOutOfRange),
        ("f", .timestamp(TimestampValue(seconds: 0, nanoseconds: 1_000_000_000)), .timestampOutOfRange),
        ("f", .geoPoint(GeoPointValue(latitude: 90.1, longitude: 0)), .geoPointOutOfRange),
        ("f", .geoPoint(GeoPointValue(latitude: 0, longitude: -180.1)), .geoPointOutOfRange),
        ("f", .geoPoint(GeoPointValue(latitude: .nan, longitude: 0)), .geoPointOutOfRange),
        ("f", .reference("projects/p/databases/d/documents/c/d"), nil),
        ("f", .reference("projects/p/databases/d/documents/c"), .invalidReference),
        ("f", .reference("projects/p/databases/d/documents"), .invalidReference),
        ("f", .reference("c/d"), .invalidReference),
        ("f", .reference(""), .invalidReference),
        ("f", .reference("projects/p/databases/d/documents/c/__x__"), .invalidReference),
        ("f", .vector([]), nil),
        ("f", .vector([Double](repeating: 1, count: 2048)), nil),
        ("f", .vector([Double](repeating: 1, count: 2049)), .vectorTooLong),
        ("f", ["__type__": "__vector__"], .invalidVector),
        ("f", ["__type__": "__other__", "value": []], .invalidVector),
        ("f", ["__type__": "__vector__", "value": [1]], .invalidVector),
        ("f", ["__type__": "__vector__", "value": 1.5], .invalidVector),
        ("f", ["__type__": "__vector__", "value": [1.5], "x": 1], .invalidVector),
        ("f", ["__type__": 1, "value": [1.5]], .invalidVector),
    ]

    @Test(arguments: rules.indices)
    func `Every rule of stored documents`(index: Int) {
        let (name, value, reason) = Self.rules[index]
        expectEqual(problem(MapValue([(name, value)])), reason)
    }

    @Test
    func `Maps and arrays nest twenty levels deep and no further`() {
        var random = RandomDocuments(seed: 41)
        expectNil(problem(["f": random.nested(levels: 20)]))
        expectEqual(problem(["f": random.nested(levels: 21)]), .nestedTooDeeply)
    }

    static let malformedValues: [([UInt8], InvalidDocument.Reason)] = [
        ([], .valueTypeMissing),
        ([0xa0, 0x1f, 0x01], .valueTypeMissing),
        ([0x9a, 0x01, 0x01, 0x61], .pipelineValue),
        ([0xa2, 0x01, 0x00], .pipelineValue),
        ([0xaa, 0x01, 0x00], .pipelineValue),
        ([0xb2, 0x01, 0x00], .pipelineValue),
        ([0x0a, 0x00], .wrongWireType),
        ([0x11, 0, 0, 0, 0, 0, 0, 0, 0], .wrongWireType),
        ([0x8a, 0x01, 0x02, 0x61], .truncated),
        ([0x8a, 0x01, 0x01, 0xff], .invalidUTF8),
        ([0x8a, 0x01], .truncated),
        ([0x8a], .truncated),
        ([0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], .varintTooLong),
        ([0x19, 0, 0, 0], .truncated),
        ([0x0b], .groupNotSupported),
        ([0x52, 0x02, 0x0a, 0x00], .wrongWireType),
        ([0x42, 0x02, 0x08, 0x00], .wrongWireType),
        ([0x32, 0x02, 0x08, 0x00], .wrongWireType),
        ([0x4a, 0x02, 0x08, 0x00], .wrongWireType),
        ([0x32, 0x02, 0x0a, 0x00], .valueTypeMissing),
        ([0x32, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0x61], .valueTypeMissing),
        ([0x32, 0x06, 0x0a, 0x04, 0x12, 0x02, 0x58, 0x00], .fieldNameEmpty),
    ]

    @Test(arguments: malformedValues.indices)
    func `Malformed values are refused for the right reason`(index: Int) {
        let (bytes, reason) = Self.malformedValues[index]
        do throws(InvalidDocument) {
            _ = try DocumentValidator.validate(value: bytes.span.bytes)
            Issue.record("accepted \(bytes)")
        } catch {
            expectEqual(error.reason, reason)
        }
    }

    @Test
    func `Queries may refer to names that cannot be stored`() throws {
        for name in ["c/__x__", "__c__/a", "c\u{0}/__id-9223372036854775808__"] {
            let bytes = Value.reference("projects/p/databases/d/documents/\(name)").wireBytes
            _ = try DocumentValidator.validate(value: bytes.span.bytes, rules: .query)
        }
        let nonsense = Value.reference("c/d").wireBytes
        #expect(throws: InvalidDocument.self) {
            try DocumentValidator.validate(value: nonsense.span.bytes, rules: .query)
        }
    }

    static let refusedInRequests: [(MapValue, InvalidDocument.Reason)] = [
        (["f": [.vector([1])]], .vectorInArray),
        (["f": [1, ["m": 1], .vector([1])]], .vectorInArray),
        (["m": ["f": [.vector([1])]]], .vectorInArray),
        (["f": [["m": [.vector([1])]]]], .vectorInArray),
        (["f": .vector([1, .nan])], .vectorWithNaN),
        (["r": .reference("projects/p/databases/d/documents/c/__id0__")], .invalidReference),
        (["r": .reference("projects/p/databases/d/documents/__id7__/a")], .invalidReference),
    ]

    @Test(arguments: refusedInRequests.indices)
    func `Requests cannot write what earlier versions stored; stored documents stay valid`(index: Int) throws {
        let (fields, reason) = Self.refusedInRequests[index]
        let bytes = fields.documentBytes
        _ = try DocumentValidator.validate(fields: bytes.span.bytes, rules: .stored)
        do throws(InvalidDocument) {
            _ = try DocumentValidator.validate(fields: bytes.span.bytes, rules: .request)
            Issue.record("accepted \(fields)")
        } catch {
            expectEqual(error.reason, reason)
        }
    }

    @Test(
        arguments: [
            ["f": .vector([])], ["f": .vector([.infinity, -0.0])], ["f": [["v": .vector([1])]]],
            ["f": [1], "v": .vector([1])], ["f": [["m": 1]], "v": ["m": .vector([1])]],
        ] as [MapValue])
    func `Vectors that requests may write`(fields: MapValue) throws {
        let bytes = fields.documentBytes
        _ = try DocumentValidator.validate(fields: bytes.span.bytes, rules: .request)
    }

    @Test
    func `Errors name the field, through maps and arrays`() {
        let fields: MapValue = [
            "a": 1, "b": ["c-d": [1, ["e": .timestamp(TimestampValue(seconds: .max, nanoseconds: 0))]]], "z": 1,
        ]
        let bytes = fields.documentBytes
        do throws(InvalidDocument) {
            _ = try DocumentValidator.validate(fields: bytes.span.bytes)
            Issue.record("accepted")
        } catch {
            expectEqual(error.fieldPath, "b.`c-d`[1].e")
            expectEqual(error.reason, .timestampOutOfRange)
        }
    }

    @Test
    func `Deep irregular nesting takes time in proportion to its size`() throws {
        // A trailing unknown field on every level: a walk that tried each level twice would take 2^20 steps here.
        var bytes: [UInt8] = [0x58, 0x00]
        for _ in 0..<20 {
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 6) { writer in
                writer.withLengthPrefix(field: 1) { writer in
                    writer.appendField(2, bytes: bytes)
                    writer.appendField(1, string: "k")
                }
            }
            writer.appendField(500, varint: 1)
            bytes = writer.copyBytes()
        }
        let copy = bytes
        try expect(!DocumentValidator.validate(value: copy.span.bytes).isCanonical)
    }

    @Test
    func `The published example of a document's size`() throws {
        let fields: MapValue = [
            "type": "Personal", "done": false, "priority": 1, "description": "Learn Cloud Firestore",
        ]
        let bytes = fields.documentBytes
        let size = try DocumentValidator.validate(fields: bytes.span.bytes).size
        let name = "projects/p/databases/(default)/documents/users/jeff/tasks/my_task_id"
        let nameSize = try name.withUTF8Span { DocumentSize.name(try ResourceNameView($0)) }
        expectEqual(nameSize, 44)
        expectEqual(DocumentSize.document(nameSize: nameSize, fieldsSize: size), 147)
        let numeric = "projects/p/databases/(default)/documents/users/__id5__"
        let numericSize = try numeric.withUTF8Span { DocumentSize.name(try ResourceNameView($0)) }
        expectEqual(numericSize, 6 + 8 + 16)
    }

    private func problem(_ fields: MapValue) -> InvalidDocument.Reason? {
        let bytes = fields.documentBytes
        do throws(InvalidDocument) {
            _ = try DocumentValidator.validate(fields: bytes.span.bytes)
            return nil
        } catch {
            return error.reason
        }
    }
}

/// The published size of fields, computed on trees.
enum PublishedSize {
    static func fields(_ map: MapValue) -> Int {
        map.entries.reduce(0) { $0 + $1.key.utf8.count + 1 + value($1.value) }
    }

    static func value(_ value: Value) -> Int {
        if let elements = value.vectorElements { return 8 * elements.count }
        switch value {
        case .null, .boolean: return 1
        case .integer, .double, .timestamp: return 8
        case .string(let text): return text.utf8.count + 1
        case .bytes(let bytes): return bytes.count
        case .geoPoint: return 16
        case .array(let elements): return elements.reduce(0) { $0 + Self.value($1) }
        case .map(let map): return fields(map) + 32
        case .reference(let name):
            let segments = name.split(separator: "/").dropFirst(5)
            return segments.enumerated().reduce(16) { size, segment in
                let id = segment.element
                let isNumeric =
                    segment.offset % 2 == 1 && id.hasPrefix("__id") && id.hasSuffix("__")
                    && Int64(id.dropFirst(4).dropLast(2)) != nil
                return size + (isNumeric ? 8 : id.utf8.count + 1)
            }
        }
    }
}
