// A piece of the copy of a database, on its way from the source of a move to its target.
//
//     | format 1 | from length | from | to length | to | length of the items | item | item | ...
//
//     range        1 | from length | from | to length | to |      keys without space and database; no `to`: to the end.
//                                                                 What follows names all documents of the source there.
//     document     2 | path length | path | create time, 8 | update time, 8 | fields length | fields |
//     unchanged    3 | path length | path |                       the target has it
//     deleted      4 | path length | path |
//     declaration  5 | length | indexes | length | shape | ... | overrides |
//     settings     6 | length | settings |                        see `DatabaseSettings`
//     result       7 | session, 16 | sequence | oldest pending | length | encoded result |
//     own          8 | version of the release, 8 | create time, 8 |    the last item of the last chunk
//
// `from` and `to` are progress (`CopyPosition`) before and after the chunk. Lengths and counts are varints, numbers of
// 8 bytes are little-endian. Names and contents travel, and never a number of a database, a collection or a field.

internal import Basics
internal import DocumentModel
internal import Indexing

/// A piece of the copy of a database.
package struct MoveChunk: Sendable {
    /// For ``DocumentStore/applyMove(chunk:to:generation:completion:)``. Empty if there is nothing to send now.
    package let bytes: [UInt8]
    /// Documents in it, deleted ones among them.
    package let documents: Int
    /// The target has all that was visible a moment ago, except for some hundred documents at most.
    package let isCaughtUp: Bool
    /// After it the target owns the database.
    package let isLast: Bool
    /// How far the copy is after it.
    package let position: MovePosition
}

/// How far a copy is, for people.
package struct MovePosition: Equatable, Sendable {
    /// Documents sent since the copy began; one that changes counts again.
    package let documentsSent: Int
    /// Documents known to be left: about, while all are walked over.
    package let documentsLeft: Int
}

/// Writes the items of a chunk.
struct MoveChunkWriter: ~Copyable {
    private var items = ByteBuffer(capacity: 64 << 10)
    private(set) var documents = 0
    private(set) var isLast = false

    static let format: UInt8 = 1

    enum Item: UInt8 {
        case range = 1
        case document, unchanged, deleted, declaration, settings, result, own
    }

    /// Bytes of the items so far.
    var byteCount: Int { items.count }

    mutating func append(rangeFrom from: [UInt8], to: [UInt8]) {
        items.append(byte: Item.range.rawValue)
        items.append(counted: from.byteSpan)
        items.append(counted: to.byteSpan)
    }

    mutating func append(
        document path: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan
    ) {
        documents += 1
        items.append(byte: Item.document.rawValue)
        items.append(counted: path)
        items.append(littleEndian: createMicroseconds)
        items.append(littleEndian: updateMicroseconds)
        items.append(counted: fields)
    }

    mutating func append(unchanged path: RawSpan) {
        items.append(byte: Item.unchanged.rawValue)
        items.append(counted: path)
    }

    mutating func append(deleted path: RawSpan) {
        documents += 1
        items.append(byte: Item.deleted.rawValue)
        items.append(counted: path)
    }

    mutating func append(_ declaration: IndexDeclaration) {
        var bytes = ByteBuffer(capacity: 1_024)
        bytes.appendVarint(UInt64(declaration.indexes.count))
        var shape = ByteBuffer(capacity: 256)
        for index in declaration.indexes {
            shape.reset()
            index.append(to: &shape)
            bytes.append(counted: shape.bytes)
        }
        FieldOverride.append(declaration.fieldOverrides, to: &bytes)
        items.append(byte: Item.declaration.rawValue)
        items.append(counted: bytes.bytes)
    }

    mutating func append(_ settings: DatabaseSettings) {
        var bytes = ByteBuffer(capacity: 64)
        settings.append(to: &bytes)
        items.append(byte: Item.settings.rawValue)
        items.append(counted: bytes.bytes)
    }

    mutating func append(_ result: RememberedResult) {
        items.append(byte: Item.result.rawValue)
        items.append(littleEndian: result.identifier.sessionHigh)
        items.append(littleEndian: result.identifier.sessionLow)
        items.appendVarint(result.identifier.sequence)
        items.appendVarint(result.identifier.oldestPending)
        items.append(counted: result.encodedResult.byteSpan)
    }

    /// The target is to own the database; nothing may follow.
    mutating func appendOwn(releaseMicroseconds: UInt64, createMicroseconds: UInt64) {
        isLast = true
        items.append(byte: Item.own.rawValue)
        items.append(littleEndian: releaseMicroseconds)
        items.append(littleEndian: createMicroseconds)
    }

    /// The bytes of the chunk.
    ///
    /// - Parameters:
    ///   - from: the progress before the chunk.
    ///   - to: the progress after it.
    func bytes(from: [UInt8], to: [UInt8]) -> [UInt8] {
        var chunk = ByteBuffer(capacity: items.count + from.count + to.count + 32)
        chunk.append(byte: Self.format)
        chunk.append(counted: from.byteSpan)
        chunk.append(counted: to.byteSpan)
        chunk.append(counted: items.bytes)
        return chunk.copyBytes()
    }
}

/// One item of a chunk, in place.
struct MoveItem: ~Escapable {
    let kind: MoveChunkWriter.Item
    /// Of a document; the first key of a range.
    let path: RawSpan
    /// The fields of a document, the key after a range, an encoded result, or what the kind says.
    let payload: RawSpan
    /// Of a document, or of the database.
    let createMicroseconds: UInt64
    /// Of a document, or the version of the release.
    let updateMicroseconds: UInt64
    /// Of a result.
    let identifier: RequestIdentifier?

    @_lifetime(copy path, copy payload)
    fileprivate init(
        _ kind: MoveChunkWriter.Item, path: RawSpan, payload: RawSpan, createMicroseconds: UInt64 = 0,
        updateMicroseconds: UInt64 = 0, identifier: RequestIdentifier? = nil
    ) {
        self.kind = kind
        self.path = path
        self.payload = payload
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.identifier = identifier
    }
}

/// Reads a chunk, item by item.
struct MoveChunkReader: ~Escapable {
    /// The progress before the chunk.
    let from: RawSpan
    /// The progress after it.
    let to: RawSpan
    private var reader: WireReader

    /// - Throws: `INVALID_ARGUMENT` if it is not a chunk of this format.
    @_lifetime(copy chunk)
    init(_ chunk: RawSpan) throws(RequestError) {
        reader = WireReader(chunk)
        guard chunk.byteCount > 0, chunk[byteAt: 0] == MoveChunkWriter.format else { throw .malformedChunk }
        reader.position = 1
        do throws(InvalidDocument) {
            from = try reader.lengthDelimited()
            to = try reader.lengthDelimited()
            let byteCount = try reader.varint()
            guard byteCount == UInt64(reader.remaining) else { throw InvalidDocument(.truncated, offset: 0) }
        } catch {
            throw .malformedChunk
        }
    }

    /// The next item, or nil at the end.
    /// - Throws: `INVALID_ARGUMENT` if it is malformed.
    @_lifetime(copy self)
    mutating func next() throws(RequestError) -> MoveItem? {
        if reader.isAtEnd { return nil }
        guard let kind = MoveChunkWriter.Item(rawValue: reader.bytes[byteAt: reader.position]) else {
            throw .malformedChunk
        }
        reader.position += 1
        do throws(InvalidDocument) { return try item(kind) } catch { throw .malformedChunk }
    }

    @_lifetime(copy self)
    private mutating func item(_ kind: MoveChunkWriter.Item) throws(InvalidDocument) -> MoveItem {
        let nothing = reader.bytes.extracting(0..<0)
        switch kind {
        case .range:
            let from = try reader.lengthDelimited()
            return MoveItem(kind, path: from, payload: try reader.lengthDelimited())
        case .document:
            let path = try documentPath()
            let created = try reader.fixed64()
            let updated = try reader.fixed64()
            return MoveItem(
                kind, path: path, payload: try reader.lengthDelimited(), createMicroseconds: created,
                updateMicroseconds: updated)
        case .unchanged, .deleted: return MoveItem(kind, path: try documentPath(), payload: nothing)
        case .declaration, .settings:
            return MoveItem(kind, path: nothing, payload: try reader.lengthDelimited())
        case .result:
            let high = try reader.fixed64()
            let low = try reader.fixed64()
            let sequence = try reader.varint()
            let oldest = try reader.varint()
            let identifier = RequestIdentifier(
                sessionHigh: high, sessionLow: low, sequence: sequence, oldestPending: oldest)
            return MoveItem(kind, path: nothing, payload: try reader.lengthDelimited(), identifier: identifier)
        case .own:
            let released = try reader.fixed64()
            return MoveItem(
                kind, path: nothing, payload: nothing, createMicroseconds: try reader.fixed64(),
                updateMicroseconds: released)
        }
    }

    /// Reads a document's path, which has at least two segments.
    @_lifetime(copy self)
    private mutating func documentPath() throws(InvalidDocument) -> RawSpan {
        let start = reader.position
        let path = try reader.lengthDelimited()
        guard path.firstOffset(of: RelativePath.slash) ?? 0 > 0, path[byteAt: path.byteCount - 1] != RelativePath.slash
        else { throw InvalidDocument(.truncated, offset: start) }
        return path
    }
}

extension IndexDeclaration {
    /// Reads the payload of an item `declaration`; nil if it is something else.
    init?(moved bytes: RawSpan) {
        var reader = WireReader(bytes)
        guard let count = try? reader.varint(), count <= UInt64(Self.entriesMax) else { return nil }
        var indexes: [IndexShape] = []
        for _ in 0..<count {
            guard let shape = try? reader.lengthDelimited(), let index = IndexShape(shape) else { return nil }
            indexes.append(index)
        }
        guard let overrides = FieldOverride.list(&reader) else { return nil }
        self.init(indexes: indexes, fieldOverrides: overrides)
    }
}

extension RequestError {
    static let malformedChunk = RequestError(
        .invalidArgument, "The source of a move sends something that this version does not read.")
}
