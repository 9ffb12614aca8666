// Writes of a program that the server has not acknowledged.

internal import Basics
internal import DocumentModel

/// The identity under which a batch is sent: the server applies a batch with the same identity once.
package struct BatchIdentity: Hashable, Sendable {
    package var sessionHigh: UInt64
    package var sessionLow: UInt64
    package var sequence: UInt64

    package init(sessionHigh: UInt64, sessionLow: UInt64, sequence: UInt64) {
        self.sessionHigh = sessionHigh
        self.sessionLow = sessionLow
        self.sequence = sequence
    }
}

/// A batch of the mutation queue.
///
///     | format, 1 | local time, 8 | session, 16 | sequence, 8 | length | user | base values, varint
///       | write, varint | transform, varint | flags, 1 | length | value |, for each base value
///     | request ... |
///
/// Batches of format 1 have no user. Those of format 3 are from before their user was known.
package struct LocalBatch: Sendable {
    /// The value of a field when a transform of it was written, on which the local result is based. So a change of the
    /// server's document does not apply an increment twice.
    struct Base: Sendable, Equatable {
        var write: Int
        var transform: Int
        /// Nil if the field was absent, or the document was not known.
        var value: EncodedValue?
        /// Whether the value was the result of other pending writes.
        var isOverPending: Bool
    }

    /// The position in the queue.
    package let number: UInt64
    package let identity: BatchIdentity
    /// Whose batch it is; empty for nobody's.
    package private(set) var user: String
    /// Whether the batch was written before its user was known: it becomes that of the first user who is known, in
    /// whatever process. Until then `user` is that of the process before.
    package private(set) var isUnclaimed: Bool
    /// A `CommitRequest`.
    package let request: [UInt8]
    /// When the program wrote, in microseconds since 1970.
    let localMicroseconds: UInt64
    /// In the order of their writes.
    var bases: [Base] = []
    /// Empty if the request breaks a rule: the server will reject it.
    let list: WriteList
    /// The paths of the written documents below `documents`, each once.
    let paths: [[UInt8]]
    /// The writes of each document, as indexes of the list; empty if there is one write.
    private let writesOfPath: [[UInt8]: [Int]]

    private static let format: UInt8 = 2
    private static let formatWithoutUser: UInt8 = 1
    private static let formatOfUnclaimed: UInt8 = 3
    private static let presentFlag: UInt8 = 1
    private static let overPendingFlag: UInt8 = 2

    init(
        number: UInt64, identity: BatchIdentity, user: String, isUnclaimed: Bool, request: [UInt8],
        localMicroseconds: UInt64, database: DatabaseName
    ) {
        self.number = number
        self.identity = identity
        self.user = user
        self.isUnclaimed = isUnclaimed
        self.request = request
        self.localMicroseconds = localMicroseconds
        let list = Self.read(request, database)
        var paths: [[UInt8]] = []
        var writesOfPath: [[UInt8]: [Int]] = [:]
        for (index, write) in list.writes.enumerated() {
            let path = [UInt8](copying: list.path(of: write))
            if list.count > 1 { writesOfPath[path, default: []].append(index) }
            if list.count == 1 || writesOfPath[path]?.count == 1 { paths.append(path) }
        }
        self.list = list
        self.paths = paths
        self.writesOfPath = writesOfPath
    }

    /// The batch as that of the first user who is known.
    func claimed(by user: String) -> LocalBatch {
        var batch = self
        batch.user = user
        batch.isUnclaimed = false
        return batch
    }

    /// The writes of a document, as indexes of the list in their order; empty for a document that the batch does not
    /// write.
    func writes(of path: [UInt8]) -> [Int] {
        if list.count > 1 { return writesOfPath[path] ?? [] }
        return paths.first == path ? Self.onlyWrite : []
    }

    private static let onlyWrite = [0]

    /// The values on which the transforms of a write are based.
    func bases(of write: Int) -> ArraySlice<Base> {
        bases[bases.partitioningIndex { $0.write >= write }...].prefix { $0.write == write }
    }

    private static func read(_ request: [UInt8], _ database: DatabaseName) -> WriteList {
        var list = WriteList(database: database)
        do {
            var reader = WireReader(request.byteSpan)
            while let tag = try reader.nextTag() {
                if tag.fieldNumber == FieldNumber.CommitRequest.writes {
                    try list.append(wire: try reader.span(tag))
                } else {
                    try reader.skip(tag)
                }
            }
            return list
        } catch {
            return WriteList(database: database)
        }
    }

    var hasTransforms: Bool { list.writes.contains { !$0.transforms.isEmpty } }

    // MARK: Storage

    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: request.count + 64)
        writer.append(byte: isUnclaimed ? Self.formatOfUnclaimed : Self.format)
        writer.append(littleEndian: localMicroseconds)
        writer.append(littleEndian: identity.sessionHigh)
        writer.append(littleEndian: identity.sessionLow)
        writer.append(littleEndian: identity.sequence)
        writer.appendVarint(UInt64(user.utf8.count))
        writer.append(utf8: user)
        writer.appendVarint(UInt64(bases.count))
        for base in bases {
            writer.appendVarint(UInt64(base.write))
            writer.appendVarint(UInt64(base.transform))
            let presentFlag = base.value == nil ? 0 : Self.presentFlag
            writer.append(byte: presentFlag | (base.isOverPending ? Self.overPendingFlag : 0))
            writer.appendVarint(UInt64(base.value?.bytes.count ?? 0))
            if let value = base.value { writer.append(value.bytes) }
        }
        writer.append(request)
        return writer.copyBytes()
    }

    /// Reads a batch of the queue.
    /// - Throws: DATA_LOSS for bytes that are none.
    init(number: UInt64, stored: RawSpan, database: DatabaseName) throws(RequestError) {
        do throws(InvalidDocument) {
            var reader = WireReader(stored)
            let format = stored.byteCount > 0 ? stored[byteAt: 0] : 0
            guard [Self.format, Self.formatWithoutUser, Self.formatOfUnclaimed].contains(format) else {
                throw InvalidDocument(.invalidTag, offset: 0)
            }
            reader.position = 1
            let time = try reader.fixed64()
            let identity = BatchIdentity(
                sessionHigh: try reader.fixed64(), sessionLow: try reader.fixed64(), sequence: try reader.fixed64())
            let user = format == Self.formatWithoutUser ? "" : String(repairingUTF8: try reader.lengthDelimited())
            var bases: [Base] = []
            for _ in 0..<(try reader.varint()) {
                let write = Int(truncatingIfNeeded: try reader.varint())
                let transform = Int(truncatingIfNeeded: try reader.varint())
                let flags = UInt8(truncatingIfNeeded: try reader.varint())
                let value = try reader.lengthDelimited()
                bases.append(
                    Base(
                        write: write, transform: transform,
                        value: flags & Self.presentFlag != 0 ? EncodedValue(copying: value) : nil,
                        isOverPending: flags & Self.overPendingFlag != 0))
            }
            let request = [UInt8](copying: stored.extracting(reader.position..<stored.byteCount))
            self.init(
                number: number, identity: identity, user: user, isUnclaimed: format == Self.formatOfUnclaimed,
                request: request, localMicroseconds: time, database: database)
            self.bases = bases
        } catch {
            throw RequestError(.dataLoss, "A pending write in the cache is damaged.")
        }
    }
}
