import Basics
import DocumentModel
import TestSupport
import Testing

@testable import ManagedExport

@Suite(.timeLimit(.minutes(20))) struct EntityTests {
    private static let database = try! DatabaseName(GoldenExport.database)

    /// A document as it was read.
    private struct Found {
        var path: String
        var fields: MapValue
        var bytes: [UInt8]
        var reader: EntityReader
    }

    private static func read(
        _ entity: [UInt8], database: DatabaseName = EntityTests.database, mapsReferences: Bool = false
    ) throws -> Found {
        var reader = EntityReader(database: database, mapsReferences: mapsReferences)
        var fields = ByteBuffer()
        let path = try reader.read(entity.byteSpan, into: &fields)
        let bytes = fields.copyBytes()
        return Found(
            path: String(decoding: path, as: UTF8.self), fields: try MapValue(documentBytes: bytes.byteSpan),
            bytes: bytes, reader: reader)
    }

    private static func entity(_ path: String, _ fields: [UInt8]) throws -> [UInt8] {
        var output = ByteBuffer()
        let writer = EntityWriter(database: database)
        try writer.append(path: Array(path.utf8).byteSpan, fields: fields.byteSpan, to: &output)
        return output.copyBytes()
    }

    // MARK: The emulator's bytes

    @Test
    func `The emulator's entities are read, and written again byte for byte`() throws {
        var log = LevelDBLogReader(GoldenExport.data)
        let entities = log.records().records
        expectEqual(entities.count, GoldenExport.documents.count)
        for (entity, document) in zip(entities, GoldenExport.documents) {
            let found = try Self.read(entity)
            expectEqual(found.path, document.path)
            expectEqual(found.fields, document.fields, "\(found.fields)")
            expectEqual(found.bytes, document.fields.documentBytes)
            let written = try Self.entity(document.path, document.fields.documentBytes)
            let digits = Hexadecimal.text(written.byteSpan)
            expectEqual(written, entity, "\(digits)")
        }
    }

    // MARK: Round trips

    @Test(arguments: [.random(in: 0 ... .max), 1, 2, 3] as [UInt64])
    func `Random documents of every type come back byte for byte`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        random.database = GoldenExport.database
        for round in 0..<400 {
            let fields = random.fields(depth: 5).documentBytes
            let path = String(random.documentName().dropFirst(GoldenExport.database.count + 11))
            guard !path.contains("__id0__") else { continue }
            let entity = try Self.entity(path, fields)
            let found = try Self.read(entity)
            try #require(found.path == path, "seed \(seed), round \(round)")
            try #require(found.bytes == fields, "seed \(seed), round \(round): \(found.fields)")
        }
    }

    @Test
    func `The deepest nesting, long strings and many elements come back`() throws {
        var random = RandomDocuments(seed: 4)
        let documents: [MapValue] = [
            ["deep": random.nested(levels: 20)],
            [
                "long": .string(String(repeating: "x", count: 300_000)),
                "twice": .bytes(Array(repeating: 7, count: 200)),
            ],
            ["many": .array((0..<20_000).map { .integer($0) })],
            ["vectors": .array([.vector([1, 2])]), "none": .vector([])],
        ]
        for fields in documents {
            let found = try Self.read(try Self.entity("c/d", fields.documentBytes))
            expectEqual(found.fields, fields)
        }
    }

    // MARK: What other programs write

    /// The parts of an entity, as the cloud or Datastore may write them.
    private struct Draft: ~Copyable {
        var buffer = ByteBuffer()

        init(app: String = "s~p", namespace: String? = nil, kind: String = "c", id: Int64? = nil, name: String? = "d") {
            buffer.withLengthPrefix(field: EntityField.key) { key in
                key.appendField(ReferenceField.app, string: app)
                if let namespace { key.appendField(ReferenceField.namespace, string: namespace) }
                key.withLengthPrefix(field: ReferenceField.path) { path in
                    path.appendTag(field: PathElementField.element, .startGroup)
                    path.appendField(PathElementField.kind, string: kind)
                    if let id { path.appendField(PathElementField.id, int64: id) }
                    if let name { path.appendField(PathElementField.name, string: name) }
                    path.appendTag(field: PathElementField.element, .endGroup)
                }
            }
        }

        mutating func property(
            _ name: String, meaning: Int? = nil, multiple: Bool = false, list: Int = EntityField.property,
            _ value: (inout ByteBuffer) -> Void
        ) {
            buffer.withLengthPrefix(field: list) { property in
                if let meaning { property.appendField(PropertyField.meaning, int64: Int64(meaning)) }
                property.appendField(PropertyField.name, string: name)
                property.appendField(PropertyField.multiple, boolean: multiple)
                property.withLengthPrefix(field: PropertyField.value, value)
            }
        }

        consuming func bytes() -> [UInt8] { buffer.copyBytes() }
    }

    @Test
    func `Both lists count for every type, in any order`() throws {
        var draft = Draft()
        draft.property("z", multiple: true) { $0.appendField(PropertyValueField.integer, int64: 1) }
        draft.property("b", list: EntityField.rawProperty) { $0.appendField(PropertyValueField.boolean, boolean: true) }
        draft.property("z", multiple: true) { $0.appendField(PropertyValueField.integer, int64: 2) }
        draft.property("a", meaning: Meaning.emptyArray, list: EntityField.rawProperty) { _ in }
        draft.property("t", meaning: Meaning.text) { $0.appendField(PropertyValueField.string, string: "long") }
        draft.property("e", meaning: Meaning.emptyArray, multiple: true) { _ in }
        let found = try Self.read(draft.bytes())
        let expected: MapValue = [
            "a": .array([]), "b": .boolean(true), "e": .array([]), "t": "long", "z": .array([1, 2]),
        ]
        expectEqual(found.fields, expected)
        expectEqual(found.reader.key, EntityKey(project: "p", database: "(default)", path: Array("c/d".utf8)))
        expectEqual(found.reader.conversions, ConversionCounts())
    }

    @Test
    func `Types of Datastore become the nearest type, with a count`() throws {
        var draft = Draft()
        for (name, meaning) in [("category", 1), ("link", 2), ("email", 8), ("phone", 11), ("blobKey", 17)] {
            draft.property(name, meaning: meaning) { $0.appendField(PropertyValueField.string, string: name) }
        }
        draft.property("rating", meaning: 13) { $0.appendField(PropertyValueField.integer, int64: 4) }
        draft.property("short", meaning: 16) { $0.appendField(PropertyValueField.string, bytes: [0xFF, 0]) }
        draft.property("user") { value in
            value.appendTag(field: PropertyValueField.user, .startGroup)
            value.appendField(PropertyValueField.userEmail, string: "ada@example.com")
            value.appendField(10, string: "example.com")
            value.appendTag(field: PropertyValueField.user, .endGroup)
        }
        let embedded = Draft(kind: "inner", id: 3, name: nil).bytes()
        draft.property("embedded", meaning: Meaning.map) {
            $0.appendField(PropertyValueField.string, bytes: embedded)
        }
        let found = try Self.read(draft.bytes())
        let expected: MapValue = [
            "category": "category", "link": "link", "email": "email", "phone": "phone", "blobKey": "blobKey",
            "rating": 4, "short": .bytes([0xFF, 0]), "user": "ada@example.com", "embedded": .map([:]),
        ]
        expectEqual(found.fields, expected)
        let converted: Set<ConvertedType> = [
            .category, .link, .email, .phoneNumber, .blobKey, .rating, .byteString, .user, .embeddedKey,
        ]
        for type in ConvertedType.allCases {
            expectEqual(found.reader.conversions[type], converted.contains(type) ? 1 : 0, "\(type)")
        }
    }

    @Test
    func `What has no nearest type is refused by name`() throws {
        func problem(_ draft: consuming Draft) -> String {
            let bytes = draft.bytes()
            do {
                _ = try Self.read(bytes)
                return "none"
            } catch {
                return "\(error)"
            }
        }
        expect(problem(Draft(namespace: "team")).contains("namespace team"))
        expect(problem(Draft(name: nil)).contains("incomplete"))
        expect(problem(Draft(name: "a/b")).contains("slash"))
        var index = Draft()
        index.property("i", meaning: Meaning.indexValue) { $0.appendField(PropertyValueField.integer, int64: 1) }
        expect(problem(index).contains("property i"))
        var twice = Draft()
        for _ in 0..<2 { twice.property("t") { $0.appendField(PropertyValueField.integer, int64: 1) } }
        expect(problem(twice).contains("several times"))
        var mixed = Draft()
        mixed.property("m", multiple: true) { _ in }
        mixed.property("m") { _ in }
        expect(problem(mixed).contains("an array and a single value"))
        var inner = Draft()
        var map = ByteBuffer()
        map.withLengthPrefix(field: EntityField.property) { $0.appendField(PropertyField.name, string: "x") }
        let bytes = map.copyBytes() + [0x7a, 0x05, 0x1a]
        inner.property("outer", meaning: Meaning.map) { $0.appendField(PropertyValueField.string, bytes: bytes) }
        expect(problem(inner).contains("property outer"))
        let noKey = [UInt8]()
        #expect(throws: EntityProblem.self) { try Self.read(noKey) }
    }

    @Test
    func `An entity that is too large for the format takes no more memory than one may have`() throws {
        let name = String(repeating: "n", count: 1_500)
        let fields: MapValue = ["map": .map([name: .array(Array(repeating: .null, count: 300_000))])]
        let size = try Self.entity("c/d", fields.documentBytes).count
        expect(size > LogFragment.recordBytesMax && size < LogFragment.recordBytesMax + 4_096)
    }

    @Test
    func `References keep their project, or name the target if they are mapped`() throws {
        let fields: MapValue = [
            "own": .reference("\(GoldenExport.database)/documents/c/x"),
            "other": .reference("projects/other/databases/(default)/documents/c/x"),
        ]
        let entity = try Self.entity("c/d", fields.documentBytes)
        let target = try DatabaseName(project: "q", database: "second")
        let kept = try Self.read(entity, database: target)
        expectEqual(kept.fields, fields)
        expectEqual(kept.reader.conversions.foreignReferences, 2)
        let mapped = try Self.read(entity, database: target, mapsReferences: true)
        expectEqual(mapped.fields["own"], .reference("projects/q/databases/second/documents/c/x"))
        expectEqual(mapped.fields["other"], fields["other"])
        expectEqual(mapped.reader.conversions.foreignReferences, 1)
    }

    @Test
    func `Entities with changed or missing bytes are read or refused, and never harm`() throws {
        var log = LevelDBLogReader(GoldenExport.data)
        for entity in log.records().records {
            for end in entity.indices { _ = try? Self.read(Array(entity[..<end])) }
            for index in entity.indices {
                for change in [0x01, 0x80, 0x08, 0xFF] as [UInt8] {
                    var changed = entity
                    changed[index] ^= change
                    if let found = try? Self.read(changed) {
                        _ = try? DocumentValidator.validate(fields: found.bytes.byteSpan)
                    }
                }
            }
        }
        // Maps in maps, deeper than any document.
        var nested: [UInt8] = []
        for _ in 0..<2_000 {
            var buffer = ByteBuffer()
            buffer.withLengthPrefix(field: EntityField.rawProperty) { property in
                property.appendField(PropertyField.meaning, int64: Int64(Meaning.map))
                property.appendField(PropertyField.name, string: "m")
                property.withLengthPrefix(field: PropertyField.value) {
                    $0.appendField(PropertyValueField.string, bytes: nested)
                }
            }
            nested = buffer.copyBytes()
        }
        let key = Draft().bytes()
        #expect(throws: EntityProblem.self) { try Self.read(key + nested) }
        // Groups in groups.
        #expect(throws: EntityProblem.self) { try Self.read(key + [UInt8](repeating: 0x0B, count: 100_000)) }
    }
}
