package import Basics
package import DocumentModel

/// A field transform as `update_transforms` takes it.
package struct EncodedTransform: Sendable, Equatable {
    /// The field's path in the server's notation.
    package var path: String
    /// The oneof field of the `FieldTransform` message that follows its path, tag included.
    package var operation: [UInt8]

    package init(path: String, operation: [UInt8]) {
        self.path = path
        self.operation = operation
    }
}

/// The writes of a `CommitRequest` or a `BatchWriteRequest`, encoded as they are added: the bytes are the request.
///
/// The writes apply to documents of one database in the order in which they are added. Document fields are copied once.
/// The two requests have the same field numbers for the database and the writes.
package struct CommitWrites: Sendable {
    private typealias Field = FieldNumber.CommitRequest

    /// `CommitRequest` without the transaction.
    package private(set) var bytes: [UInt8]
    /// How many writes there are.
    package private(set) var count = 0
    private let databaseByteCount: Int

    package init(database: DatabaseName) {
        var writer = ByteBuffer(capacity: database.utf8.count + 16)
        writer.appendField(Field.database, bytes: database.utf8)
        bytes = writer.copyBytes()
        databaseByteCount = bytes.count
    }

    package var isEmpty: Bool { count == 0 }

    /// Forgets the writes and keeps the room.
    package mutating func removeAll() {
        bytes.removeLast(bytes.count - databaseByteCount)
        count = 0
    }

    /// Sets a document, or with a mask some of its fields.
    ///
    /// - Parameters:
    ///   - name: the full resource name.
    ///   - fields: `fields` entries of a Document, with their tags; canonical ones spare the server work.
    ///   - mask: the paths to change, in the server's notation; `nil` replaces the document. A path that is not in
    ///     `fields` is deleted. Empty and `nil` differ.
    package mutating func set(
        _ name: String, fields: RawSpan, mask: [String]? = nil, precondition: Precondition? = nil,
        transforms: [EncodedTransform] = []
    ) {
        if mask == nil, precondition == nil, transforms.isEmpty { return replace(name, fields) }
        var writer = ByteBuffer(capacity: fields.byteCount + name.utf8.count + 64)
        writer.withLengthPrefix(field: Field.writes) { writer in
            writer.withLengthPrefix(field: FieldNumber.Write.update) { writer in
                writer.appendField(FieldNumber.Document.name, string: name)
                writer.append(fields)
            }
            if let mask {
                writer.withLengthPrefix(field: FieldNumber.Write.updateMask) { writer in
                    for path in mask { writer.appendField(FieldNumber.DocumentMask.fieldPaths, string: path) }
                }
            }
            if let precondition { Self.append(precondition, to: &writer) }
            for transform in transforms {
                writer.withLengthPrefix(field: FieldNumber.Write.updateTransforms) { writer in
                    writer.appendField(FieldNumber.DocumentTransform.FieldTransform.fieldPath, string: transform.path)
                    writer.append(transform.operation)
                }
            }
        }
        add(writer)
    }

    /// Sets a document, or with a mask some of its fields.
    package mutating func set(
        _ name: String, fields: [UInt8], mask: [String]? = nil, precondition: Precondition? = nil,
        transforms: [EncodedTransform] = []
    ) {
        unsafe set(name, fields: fields.span.bytes, mask: mask, precondition: precondition, transforms: transforms)
    }

    /// Adds a write that only replaces a document: its lengths are known, so that nothing is written elsewhere first.
    private mutating func replace(_ name: String, _ fields: RawSpan) {
        var head = ByteBuffer(capacity: 32)
        Self.appendHead(nameByteCount: name.utf8.count, fieldsByteCount: fields.byteCount, to: &head)
        bytes.append(contentsOf: head.bytes)
        name.withUTF8Span { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: fields)
        count += 1
    }

    /// Adds a write that is encoded already: one `writes` field of a CommitRequest, tag and length included.
    package mutating func append(encoded write: RawSpan) {
        bytes.append(contentsOf: write)
        count += 1
    }

    /// Writes a set into a buffer of the caller's, for ``append(encoded:)``: one `writes` field.
    ///
    /// - Returns: the range of the name in the buffer.
    package static func appendSet(name: RawSpan, fields: RawSpan, to writer: inout ByteBuffer) -> Range<Int> {
        appendHead(nameByteCount: name.byteCount, fieldsByteCount: fields.byteCount, to: &writer)
        writer.append(name)
        let nameEnd = writer.count
        writer.append(fields)
        return nameEnd - name.byteCount..<nameEnd
    }

    /// What a `writes` field that only replaces a document has before the document's name.
    private static func appendHead(nameByteCount: Int, fieldsByteCount: Int, to writer: inout ByteBuffer) {
        let documentBytes = 1 + ByteBuffer.varintSize(UInt64(nameByteCount)) + nameByteCount + fieldsByteCount
        writer.appendTag(field: Field.writes, .lengthDelimited)
        writer.appendVarint(UInt64(1 + ByteBuffer.varintSize(UInt64(documentBytes)) + documentBytes))
        writer.appendTag(field: FieldNumber.Write.update, .lengthDelimited)
        writer.appendVarint(UInt64(documentBytes))
        writer.appendTag(field: FieldNumber.Document.name, .lengthDelimited)
        writer.appendVarint(UInt64(nameByteCount))
    }

    /// Deletes a document; one that does not exist is fine without a precondition.
    package mutating func delete(_ name: String, precondition: Precondition? = nil) {
        appendNamed(FieldNumber.Write.delete, name, precondition)
    }

    /// Changes nothing, but lets the commit fail unless the precondition holds.
    package mutating func verify(_ name: String, precondition: Precondition) {
        appendNamed(FieldNumber.Write.verify, name, precondition)
    }

    private mutating func appendNamed(_ field: Int, _ name: String, _ precondition: Precondition?) {
        var writer = ByteBuffer(capacity: name.utf8.count + 64)
        writer.withLengthPrefix(field: Field.writes) { writer in
            writer.appendField(field, string: name)
            if let precondition { Self.append(precondition, to: &writer) }
        }
        add(writer)
    }

    private static func append(_ precondition: Precondition, to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: FieldNumber.Write.currentDocument) { precondition.encode(into: &$0) }
    }

    private mutating func add(_ writer: borrowing ByteBuffer) {
        unsafe writer.bytes.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        count += 1
    }

    /// The finished request.
    package func request(transaction: [UInt8] = []) -> [UInt8] {
        guard !transaction.isEmpty else { return bytes }
        var writer = ByteBuffer(capacity: transaction.count + 16)
        writer.appendField(Field.transaction, bytes: transaction)
        return bytes + writer.copyBytes()
    }
}
