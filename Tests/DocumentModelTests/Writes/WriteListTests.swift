// Writes on the wire: round trips through a list, and what a list refuses.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WriteListTests {
    static let database = try! DatabaseName("projects/p/databases/d")
    static let prefix = "projects/p/databases/d/documents/"

    static func list(_ build: (inout WriteList) throws -> Void) rethrows -> WriteList {
        var list = WriteList(database: database)
        try build(&list)
        return list
    }

    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: [("c/a", true), ("c/__id7__", true), ("c/__x__", false), ("c", false), ("__c__/a", false)])
    func `References in elements of transforms are those that a document may hold`(
        path: String, isLegal: Bool
    ) throws {
        let element = EncodedValue(canonical: Value.reference(Self.prefix + path).wireBytes)
        for operation in [
            FieldTransform.Operation.appendMissingElements([element]), .removeAllFromArray([element]),
        ] {
            var writer = ByteBuffer()
            FieldTransform(path: try FieldPath("a"), operation: operation).encode(into: &writer)
            expectEqual((try? FieldTransform(wire: writer.bytes)) != nil, isLegal, "\(path)")
        }
    }

    @Test
    func `Every kind of write reads back as it was written`() throws {
        let path = try FieldPath("a.b")
        let fields = (["a": .map(["b": .integer(1)]), "z": .null] as MapValue).documentBytes
        let transforms: [FieldTransform] = [
            FieldTransform(path: path, operation: .requestTime),
            FieldTransform(path: path, operation: .increment(.integer(-1))),
            FieldTransform(path: path, operation: .maximum(.double(1.5))),
            FieldTransform(path: path, operation: .minimum(.double(0))),
            FieldTransform(path: path, operation: .appendMissingElements([EncodedValue(.null)])),
            FieldTransform(path: path, operation: .removeAllFromArray([])),
        ]
        let name = Self.bytes(Self.prefix + "users/a")
        let list = try Self.list { list in
            try list.update(name.span.bytes, fields: fields.span.bytes)
            try list.update(
                name.span.bytes, fields: fields.span.bytes, mask: DocumentMask(paths: [path]),
                precondition: .exists(true), transforms: transforms)
            try list.update(
                name.span.bytes, fields: [UInt8]().span.bytes, mask: DocumentMask(paths: []),
                precondition: .exists(false))
            try list.delete(
                name.span.bytes, precondition: .updateTime(TimestampValue(seconds: 5, nanoseconds: 1000)))
            try list.verify(name.span.bytes, precondition: .exists(false))
        }
        var writer = ByteBuffer()
        list.encode(field: 2, into: &writer)
        var again = WriteList(database: Self.database)
        var reader = WireReader(writer.bytes)
        while let tag = try reader.nextTag() { try again.append(wire: try reader.span(tag)) }
        expectEqual(again.count, 5)
        for (left, right) in zip(list.writes, again.writes) {
            expectEqual(left.kind, right.kind)
            expectEqual(left.mask, right.mask)
            expectEqual(left.precondition, right.precondition)
            expectEqual(left.transforms, right.transforms)
            expectEqual([UInt8](copying: list.name(of: left)), [UInt8](copying: again.name(of: right)))
            expectEqual([UInt8](copying: list.fields(of: left)), [UInt8](copying: again.fields(of: right)))
            expectEqual([UInt8](copying: again.path(of: right)), Self.bytes("users/a"))
        }
    }

    /// One `Write` message as the test builds it.
    static func wire(_ build: (inout ByteBuffer) -> Void) -> [UInt8] {
        var writer = ByteBuffer()
        build(&writer)
        return writer.copyBytes()
    }

    static func document(_ name: String, _ fields: MapValue = [:]) -> (inout ByteBuffer) -> Void {
        { writer in
            writer.withLengthPrefix(field: 1) { writer in
                writer.appendField(1, string: name)
                fields.encodeDocument(into: &writer)
            }
        }
    }

    static func error(of wire: [UInt8]) -> RequestError? {
        var list = WriteList(database: database)
        do {
            try list.append(wire: wire.byteSpan)
            return nil
        } catch {
            expect(list.isEmpty && list.bytes.isEmpty, "a failed write must leave no trace")
            return error
        }
    }

    @Test(arguments: [
        "", "users/a", "projects/p/databases/d/documents", prefix + "users", prefix + "users/a/posts",
        prefix + "users/__a__", prefix + "users/..", "projects/p/databases/other/documents/users/a",
        "projects/o/databases/d/documents/users/a", "projects/p/databases/dd/documents/users/a",
    ])
    func `Names that cannot be written are refused`(name: String) {
        let update = Self.wire(Self.document(name))
        expectEqual(Self.error(of: update)?.code, .invalidArgument)
        let delete = Self.wire { $0.appendField(2, string: name) }
        expectEqual(Self.error(of: delete)?.code, .invalidArgument)
        let verify = Self.wire { $0.appendField(5, string: name) }
        expectEqual(Self.error(of: verify)?.code, .invalidArgument)
        let transform = Self.wire { $0.withLengthPrefix(field: 6) { $0.appendField(1, string: name) } }
        expectEqual(Self.error(of: transform)?.code, .invalidArgument)
    }

    @Test
    func `Parts that do not belong together are refused`() throws {
        let name = Self.prefix + "users/a"
        let mask: (inout ByteBuffer) -> Void = { $0.withLengthPrefix(field: 3) { $0.appendField(1, string: "a") } }
        let transform: (inout ByteBuffer) -> Void = { writer in
            writer.withLengthPrefix(field: 7) { writer in
                writer.appendField(1, string: "a")
                writer.appendField(2, varint: 1)
            }
        }
        expectEqual(Self.error(of: Self.wire { _ in })?.message, "A write must have an operation.")
        let maskedDelete = Self.wire { writer in
            writer.appendField(2, string: name)
            mask(&writer)
        }
        expectEqual(Self.error(of: maskedDelete)?.code, .invalidArgument)
        let transformedDelete = Self.wire { writer in
            writer.appendField(2, string: name)
            transform(&writer)
        }
        expectEqual(Self.error(of: transformedDelete)?.code, .invalidArgument)
        let maskedName = Self.wire { writer in
            Self.document(name)(&writer)
            writer.withLengthPrefix(field: 3) { $0.appendField(1, string: "__name__") }
        }
        expectEqual(Self.error(of: maskedName)?.code, .invalidArgument)
        let empty = Self.wire { writer in writer.withLengthPrefix(field: 6) { $0.appendField(1, string: name) } }
        expectEqual(Self.error(of: empty)?.message, "The list of FieldTransform must not be empty.")
        let both = Self.wire { writer in
            writer.withLengthPrefix(field: 6) { writer in
                writer.appendField(1, string: name)
                writer.withLengthPrefix(field: 2) { writer in
                    writer.appendField(1, string: "b")
                    writer.appendField(2, varint: 1)
                }
            }
            transform(&writer)
        }
        expectEqual(Self.error(of: both)?.message, "a transform must not specify a update transform.")
        let verify = Self.wire { $0.appendField(5, string: Self.prefix + "users/a") }
        expectEqual(Self.error(of: verify)?.message, "a verify must contain a precondition")
        let legal = Self.wire { writer in
            Self.document(name)(&writer)
            mask(&writer)
            transform(&writer)
        }
        expectNil(Self.error(of: legal))
    }

    @Test(arguments: [
        wire { $0.appendField(1, string: "a") },
        wire { $0.appendField(2, varint: 1) },
        wire { writer in
            writer.appendField(1, string: "a")
            writer.appendField(2, varint: 2)
        },
        wire { writer in
            writer.appendField(1, string: "a")
            writer.appendField(3, bytes: Value.string("1").wireBytes)
        },
        wire { writer in
            writer.appendField(1, string: "a")
            writer.appendField(4, bytes: Value.null.wireBytes)
        },
        wire { writer in
            writer.appendField(1, string: "a")
            writer.appendField(6, bytes: wire { $0.appendField(1, bytes: [UInt8]()) })
        },
        wire { writer in
            writer.appendField(1, string: "a b")
            writer.appendField(2, varint: 1)
        },
    ])
    func `Transforms without sense are refused`(transform: [UInt8]) {
        let update = Self.wire { writer in
            Self.document(Self.prefix + "users/a")(&writer)
            writer.appendField(7, bytes: transform)
        }
        expectEqual(Self.error(of: update)?.code, .invalidArgument)
    }

    @Test
    func `Documents that other fields interrupt, or that are not canonical, are stored canonically`() throws {
        let scattered = Self.wire { writer in
            writer.withLengthPrefix(field: 1) { writer in
                (["b": 1] as MapValue).encodeDocument(into: &writer)
                writer.appendField(1, string: Self.prefix + "users/a")
                (["a": 2] as MapValue).encodeDocument(into: &writer)
                writer.appendField(77, varint: 1)
                (["b": 3] as MapValue).encodeDocument(into: &writer)
            }
        }
        var list = WriteList(database: Self.database)
        try list.append(wire: scattered.byteSpan)
        let fields = [UInt8](copying: list.fields(of: list.writes[0]))
        expectEqual(fields, (["a": 2, "b": 3] as MapValue).documentBytes)
    }

    @Test(arguments: [0, 1])
    func `A document is refused exactly above the largest size, and the name counts`(excess: Int) throws {
        // users 6, the id 2, 16 for the name; field a 2, the text 1; 32 for the document.
        let overhead = 6 + 2 + 16 + 2 + 1 + 2 + 1 + 32
        let half = (Limits.documentBytes - overhead) / 2
        let fields: MapValue = [
            "a": .string(String(repeating: "x", count: half)),
            "b": .string(String(repeating: "x", count: Limits.documentBytes - overhead - half + excess)),
        ]
        let failure = Self.error(of: Self.wire(Self.document(Self.prefix + "users/a", fields)))
        expectEqual(failure == nil, excess == 0)
        expect(excess == 0 || failure?.message.hasPrefix("The document is larger than") == true)
    }

    @Test
    func `One document takes 500 transforms in a commit, over all its writes, and not one more`() throws {
        let name = Self.bytes(Self.prefix + "users/a")
        let other = Self.bytes(Self.prefix + "users/b")
        let many = Array(repeating: FieldTransform(path: try FieldPath("a"), operation: .requestTime), count: 250)
        var list = WriteList(database: Self.database)
        for target in [name, other, name, other] {
            try list.update(target.byteSpan, fields: [UInt8]().byteSpan, transforms: many)
        }
        try list.checkTransformLimit()
        try list.update(name.byteSpan, fields: [UInt8]().byteSpan, transforms: Array(many.prefix(1)))
        #expect(throws: RequestError.self) { try list.checkTransformLimit() }
        let tooMany = many + many + many.prefix(1)
        #expect(throws: RequestError.self) {
            try list.update(name.byteSpan, fields: [UInt8]().byteSpan, transforms: tooMany)
        }
    }

    @Test
    func `A document written twice is found`() throws {
        var list = WriteList(database: Self.database)
        try list.delete(Self.bytes(Self.prefix + "users/a").byteSpan)
        try list.delete(Self.bytes(Self.prefix + "users/b").byteSpan)
        expectNil(list.firstRepeatedName())
        try list.verify(Self.bytes(Self.prefix + "users/a").byteSpan, precondition: .exists(true))
        expectEqual(list.firstRepeatedName(), Self.prefix + "users/a")
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `Damaged writes are refused or read, never trap`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for _ in 0..<300 {
            var bytes = Self.wire { writer in
                Self.document(Self.prefix + "users/a", random.fields())(&writer)
                writer.withLengthPrefix(field: 3) { $0.appendField(1, string: "a.b") }
                writer.withLengthPrefix(field: 4) { $0.appendField(2, timestamp: random.timestamp()) }
                for field in [3, 6] {
                    writer.withLengthPrefix(field: 7) { writer in
                        writer.appendField(1, string: "c")
                        writer.appendField(field, bytes: random.value().wireBytes)
                    }
                }
            }
            for _ in 0..<1 + random.generator.below(3) {
                let position = random.generator.below(bytes.count)
                switch random.generator.below(3) {
                case 0: bytes[position] ^= 1 << UInt8(random.generator.below(8))
                case 1: bytes.remove(at: position)
                default: bytes.insert(UInt8(random.generator.below(256)), at: position)
                }
            }
            var list = WriteList(database: Self.database)
            do {
                try list.append(wire: bytes.byteSpan)
                let validity = try DocumentValidator.validate(fields: list.fields(of: list.writes[0]))
                expect(validity.isCanonical, "seed \(seed)")
            } catch let error as RequestError {
                expectEqual(error.code, .invalidArgument, "seed \(seed)")
            }
        }
    }
}
