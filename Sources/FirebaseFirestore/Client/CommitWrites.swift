// The writes of one commit, encoded as they are added: the finished bytes are the request. Document fields are copied
// once, from where the encoder left them, and never rebuilt.
//
//   CommitRequest: 1 database, 2 writes*, 3 transaction (added at sending)
//   Write:         1 update{1 name, 2 fields*} | 2 delete | 5 verify, 3 update_mask, 4 current_document,
//                  7 update_transforms*

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

/// Writes in the order in which they apply, to documents of one database. A value; cheap to make, grows as needed.
package struct CommitWrites: Sendable {
    /// `CommitRequest` without the transaction.
    package private(set) var bytes: [UInt8]
    /// How many writes there are.
    package private(set) var count = 0
    private let databaseByteCount: Int

    package init(database: DatabaseName) {
        var writer = WireWriter(capacity: database.utf8.count + 16)
        writer.appendField(1, bytes: database.utf8)
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
    ///   - fields: `fields` entries of a Document, tag 0x12 each; canonical ones spare the server work.
    ///   - mask: the paths to change, in the server's notation; `nil` replaces the document. A path that is not in
    ///     `fields` is deleted. Empty and `nil` differ.
    package mutating func set(
        _ name: String, fields: RawSpan, mask: [String]? = nil, precondition: Precondition? = nil,
        transforms: [EncodedTransform] = []
    ) {
        var writer = WireWriter(capacity: fields.byteCount + name.utf8.count + 64)
        writer.withLengthPrefix(field: 2) { writer in
            writer.withLengthPrefix(field: 1) { writer in
                writer.appendField(1, string: name)
                writer.append(fields)
            }
            if let mask {
                writer.withLengthPrefix(field: 3) { writer in
                    for path in mask { writer.appendField(1, string: path) }
                }
            }
            if let precondition { Self.append(precondition, to: &writer) }
            for transform in transforms {
                writer.withLengthPrefix(field: 7) { writer in
                    writer.appendField(1, string: transform.path)
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
        set(name, fields: fields.span.bytes, mask: mask, precondition: precondition, transforms: transforms)
    }

    /// Adds a write that is encoded already: one `writes` field of a CommitRequest, tag and length included.
    package mutating func append(encoded write: RawSpan) {
        write.withUnsafeBytes { bytes.append(contentsOf: $0) }
        count += 1
    }

    /// Deletes a document; one that does not exist is fine without a precondition.
    package mutating func delete(_ name: String, precondition: Precondition? = nil) {
        appendNamed(2, name, precondition)
    }

    /// Changes nothing, but lets the commit fail unless the precondition holds.
    package mutating func verify(_ name: String, precondition: Precondition) {
        appendNamed(5, name, precondition)
    }

    private mutating func appendNamed(_ field: Int, _ name: String, _ precondition: Precondition?) {
        var writer = WireWriter(capacity: name.utf8.count + 64)
        writer.withLengthPrefix(field: 2) { writer in
            writer.appendField(field, string: name)
            if let precondition { Self.append(precondition, to: &writer) }
        }
        add(writer)
    }

    private static func append(_ precondition: Precondition, to writer: inout WireWriter) {
        writer.withLengthPrefix(field: 4) { writer in
            switch precondition {
            case .exists(let exists): writer.appendField(1, boolean: exists)
            case .updateTime(let time): writer.appendField(2, timestamp: time)
            }
        }
    }

    private mutating func add(_ writer: borrowing WireWriter) {
        writer.bytes.withUnsafeBytes { bytes.append(contentsOf: $0) }
        count += 1
    }

    /// The finished request.
    package func request(transaction: [UInt8] = []) -> [UInt8] {
        guard !transaction.isEmpty else { return bytes }
        var writer = WireWriter(capacity: transaction.count + 16)
        writer.appendField(3, bytes: transaction)
        return bytes + writer.copyBytes()
    }
}
