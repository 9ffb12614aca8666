// Writes on the wire: round trips through a list, and what a list refuses.

import DocumentModel
import Testing

@Suite("Write lists")
struct WriteListTests {
    static let database = try! DatabaseName("projects/p/databases/d")
    static let prefix = "projects/p/databases/d/documents/"

    static func list(_ build: (inout WriteList) throws -> Void) rethrows -> WriteList {
        var list = WriteList(database: database)
        try build(&list)
        return list
    }

    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("Every kind of write reads back as it was written")
    func roundTrip() throws {
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
        var writer = WireWriter()
        list.encode(field: 2, into: &writer)
        var again = WriteList(database: Self.database)
        var reader = WireReader(writer.bytes)
        while let tag = try reader.nextTag() { try again.append(wire: try reader.span(tag)) }
        #expect(again.count == 5)
        for (left, right) in zip(list.writes, again.writes) {
            #expect(left.kind == right.kind)
            #expect(left.mask == right.mask)
            #expect(left.precondition == right.precondition)
            #expect(left.transforms == right.transforms)
            #expect([UInt8](copying: list.name(of: left)) == [UInt8](copying: again.name(of: right)))
            #expect([UInt8](copying: list.fields(of: left)) == [UInt8](copying: again.fields(of: right)))
            #expect([UInt8](copying: again.path(of: right)) == Self.bytes("users/a"))
        }
    }
}
