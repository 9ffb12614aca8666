package import Basics
import DocumentModel

/// Writes `ListenResponse` messages; each call appends one message.
package enum ListenResponseWriter {
    private typealias Field = FieldNumber.ListenResponse

    /// A name in two parts: what all names of a database share, and the path below it.
    package struct Name: ~Escapable {
        let prefix: RawSpan
        let path: RawSpan

        /// - Parameters:
        ///   - prefix: the documents root with a slash at its end; may be empty.
        ///   - path: the rest of the resource name.
        @_lifetime(copy prefix, copy path)
        package init(prefix: RawSpan, path: RawSpan) {
            self.prefix = prefix
            self.path = path
        }
    }

    /// A change of the state of targets.
    ///
    /// - Parameters:
    ///   - targets: empty for all targets of the stream.
    ///   - cause: why the server removes the targets.
    ///   - time: the version that the client has seen all changes up to. It is sent as the read time and in the token.
    package static func append(
        _ kind: ListenResponse.TargetChange.Kind, targets: [Int32], cause: StatusMessage? = nil,
        at time: UInt64? = nil, to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.TargetChange
        writer.withLengthPrefix(field: Field.targetChange) { change in
            change.writeIfSet(Inner.targetChangeType, int64: Int64(kind.rawValue))
            change.appendTargets(Inner.targetIds, targets)
            if let cause { change.withLengthPrefix(field: Inner.cause) { cause.encode(into: &$0) } }
            guard let time else { return }
            change.withLengthPrefix(field: Inner.resumeToken) { ResumeToken(microseconds: time).encode(into: &$0) }
            change.appendField(Inner.readTime, WireTimestamp(time))
        }
    }

    /// A document that matches targets, or has stopped to match some.
    ///
    /// - Parameters:
    ///   - fields: the `fields` entries, with their tags.
    ///   - targets: the targets that it matches now.
    ///   - removed: those that it matched before.
    package static func appendChange(
        _ name: borrowing Name, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        targets: [Int32], removed: [Int32], to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.DocumentChange
        let start = beginMessage(Field.documentChange, &writer)
        writer.appendDocument(
            field: Inner.document, namePrefix: name.prefix, path: name.path, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
        writer.appendTargets(Inner.targetIds, targets)
        writer.appendTargets(Inner.removedTargetIds, removed)
        writer.endLength(at: start)
    }

    /// The same with a document that ``appendDocument(_:fields:createMicroseconds:updateMicroseconds:to:)`` wrote.
    package static func appendChange(
        document: RawSpan, targets: [Int32], removed: [Int32], to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.DocumentChange
        writer.reserve(document.byteCount + 32 + (targets.count + removed.count) * 10)
        let start = beginMessage(Field.documentChange, &writer)
        writer.append(document)
        writer.appendTargets(Inner.targetIds, targets)
        writer.appendTargets(Inner.removedTargetIds, removed)
        writer.endLength(at: start)
    }

    /// The part of a change that is the same for all targets.
    ///
    /// - Returns: where the `fields` entries are in the writer.
    package static func appendDocument(
        _ name: borrowing Name, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        to writer: inout ByteBuffer
    ) -> Range<Int> {
        writer.appendDocument(
            field: FieldNumber.DocumentChange.document, namePrefix: name.prefix, path: name.path, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
        let times = WireTimestamp(createMicroseconds).fieldByteCount + WireTimestamp(updateMicroseconds).fieldByteCount
        let end = writer.count - times
        return end - fields.byteCount..<end
    }

    /// A document that was deleted at or before a time.
    package static func appendDelete(
        _ name: borrowing Name, removed: [Int32], at time: UInt64, to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.DocumentDelete
        let start = beginMessage(Field.documentDelete, &writer)
        writer.appendName(Inner.document, name)
        writer.appendField(Inner.readTime, WireTimestamp(time))
        writer.appendTargets(Inner.removedTargetIds, removed)
        writer.endLength(at: start)
    }

    /// A document that exists and does not match targets any more.
    package static func appendRemove(
        _ name: borrowing Name, removed: [Int32], at time: UInt64, to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.DocumentRemove
        let start = beginMessage(Field.documentRemove, &writer)
        writer.appendName(Inner.document, name)
        writer.appendTargets(Inner.removedTargetIds, removed)
        writer.appendField(Inner.readTime, WireTimestamp(time))
        writer.endLength(at: start)
    }

    /// The number of documents that match a target now.
    ///
    /// - Parameter unchanged: the names of all documents that match the target.
    package static func appendFilter(
        target: Int32, count: Int32, unchanged: BloomFilter?, to writer: inout ByteBuffer
    ) {
        typealias Inner = FieldNumber.ExistenceFilter
        writer.withLengthPrefix(field: Field.filter) { filter in
            filter.writeIfSet(Inner.targetId, int64: Int64(target))
            filter.writeIfSet(Inner.count, int64: Int64(count))
            if let unchanged { filter.withLengthPrefix(field: Inner.unchangedNames) { unchanged.encode(into: &$0) } }
        }
    }

    fileprivate static func beginMessage(_ field: Int, _ writer: inout ByteBuffer) -> Int {
        writer.appendTag(field: field, .lengthDelimited)
        return writer.beginLength()
    }
}

// MARK: Removing a target

extension ListenResponseWriter {
    /// Appends a message that was written here, without what concerns one target.
    ///
    /// - Parameter target: a target that is going to be removed; messages that add it are appended.
    /// - Returns: false, and nothing is appended, if the message concerns no other target.
    package static func append(_ message: RawSpan, without target: Int32, to writer: inout ByteBuffer) -> Bool {
        // What was written here is readable.
        guard let response = try? ListenResponse(wire: message) else { return false }
        switch response {
        case .targetChange(let change):
            if change.targets == [target], change.kind != .add { return false }
        case .documentChange(let change):
            if !(change.targets + change.removedTargets).contains(target) { break }
            return append(change, without: target, to: &writer)
        case .documentDelete(let removal), .documentRemove(let removal):
            if !removal.removedTargets.contains(target) { break }
            let left = removal.removedTargets.filter { $0 != target }
            if left.isEmpty { return false }
            let (none, name) = ([UInt8](), Array(removal.name.utf8))
            let parts = Name(prefix: none.byteSpan, path: name.byteSpan)
            let time = UInt64(clamping: removal.readTime?.microseconds ?? 0)
            if case .documentDelete = response {
                appendDelete(parts, removed: left, at: time, to: &writer)
            } else {
                appendRemove(parts, removed: left, at: time, to: &writer)
            }
            return true
        case .filter(let filter):
            if filter.target == target { return false }
        case .unknown: break
        }
        writer.append(message)
        return true
    }

    private static func append(
        _ change: ListenResponse.DocumentChange, without target: Int32, to writer: inout ByteBuffer
    ) -> Bool {
        typealias Inner = FieldNumber.DocumentChange
        let targets = change.targets.filter { $0 != target }
        let removed = change.removedTargets.filter { $0 != target }
        if targets.isEmpty && removed.isEmpty { return false }
        let start = beginMessage(Field.documentChange, &writer)
        writer.appendField(Inner.document, bytes: change.document)
        writer.appendTargets(Inner.targetIds, targets)
        writer.appendTargets(Inner.removedTargetIds, removed)
        writer.endLength(at: start)
        return true
    }
}

extension ByteBuffer {
    /// Appends target ids, packed; nothing for none.
    fileprivate mutating func appendTargets(_ field: Int, _ ids: [Int32]) {
        if ids.isEmpty { return }
        withLengthPrefix(field: field) { packed in
            for id in ids { packed.appendVarint(UInt64(bitPattern: Int64(id))) }
        }
    }

    fileprivate mutating func appendName(_ field: Int, _ name: borrowing ListenResponseWriter.Name) {
        appendTag(field: field, .lengthDelimited)
        appendVarint(UInt64(name.prefix.byteCount + name.path.byteCount))
        append(name.prefix)
        append(name.path)
    }
}
