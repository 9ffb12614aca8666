// The values of the document spaces of a client's store.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// Writes and reads what a client's store keeps about a document.
enum LocalRecord {
    static let pendingFlag: UInt8 = 1
    static let provisionalFlag: UInt8 = 2
    static let estimatesFlag: UInt8 = 4
    static let partialFlag: UInt8 = 8
    /// Bytes before the estimates of a document.
    private static let headerByteCount = 13
    /// Bytes before the record of a remote document.
    private static let remoteHeaderByteCount = 11

    /// What a document of the space `remote` is.
    enum Kind: UInt8 {
        case unknown, missing, found

        init(_ state: MaybeDocument) {
            switch state {
            case .unknown: self = .unknown
            case .missing: self = .missing
            case .found: self = .found
            }
        }
    }

    // MARK: Documents as the program sees them

    static func encode(_ document: LocalDocument, at location: LocalLocation, lastUsed: UInt32) -> [UInt8] {
        var writer = ByteBuffer(capacity: document.fields.count + 64)
        var flags: UInt8 = document.hasPendingWrites ? pendingFlag : 0
        if document.isProvisional { flags |= provisionalFlag }
        if document.isPartial { flags |= partialFlag }
        if !document.estimates.isEmpty { flags |= estimatesFlag }
        writer.append(byte: flags)
        writer.append(littleEndian: lastUsed)
        writer.append(littleEndian: document.updateMicroseconds)
        if !document.estimates.isEmpty {
            var estimates = ByteBuffer(capacity: 64)
            for estimate in document.estimates { append(estimate, to: &estimates) }
            writer.appendVarint(UInt64(estimates.count))
            writer.append(estimates.bytes)
        }
        appendRecord(document, at: location, to: &writer)
        return writer.copyBytes()
    }

    private static func append(_ estimate: PendingTimestamp, to writer: inout ByteBuffer) {
        let segments = estimate.path.utf8Segments
        writer.appendVarint(UInt64(segments.count))
        for segment in segments {
            writer.appendVarint(UInt64(segment.count))
            writer.append(segment)
        }
        writer.append(byte: estimate.previous == nil ? 0 : 1)
        if let previous = estimate.previous {
            writer.appendVarint(UInt64(previous.bytes.count))
            writer.append(previous.bytes)
        }
    }

    private static func appendRecord(
        _ document: LocalDocument, at location: LocalLocation, to writer: inout ByteBuffer
    ) {
        var header = ByteBuffer(capacity: 32)
        let isNew = document.createMicroseconds == document.updateMicroseconds
        StoredRecord.writeHeader(
            createMicroseconds: isNew ? nil : document.createMicroseconds, path: location.path.byteSpan,
            isCut: location.isTruncated, into: &header)
        writer.append(header.bytes)
        // Queries read the record.
        writer.append(document.fields(readingTimestampsAs: .ordered))
    }

    /// The offset of the record in a value of the space `documents`; nil if the value is damaged.
    static func recordOffset(in value: RawSpan) -> Int? {
        guard value.byteCount > headerByteCount else { return nil }
        if value[byteAt: 0] & estimatesFlag == 0 { return headerByteCount }
        var reader = WireReader(value)
        reader.position = headerByteCount
        guard (try? reader.lengthDelimited()) != nil else { return nil }
        return reader.position
    }

    /// The fields in a value of the space `documents`, as queries read them.
    static func fields(in value: RawSpan) throws(RequestError) -> [UInt8] {
        guard let offset = recordOffset(in: value),
            let record = StoredRecordView(value.extracting(offset..<value.byteCount), versionMicroseconds: 0)
        else { throw .damagedDocument }
        return [UInt8](copying: record.fields)
    }

    /// The update time in a value of the space `documents`.
    static func updateMicroseconds(in value: RawSpan) -> UInt64 {
        var reader = WireReader(value)
        reader.position = 5
        return (try? reader.fixed64()) ?? 0
    }

    /// The number of the use that has stored a document of `documents` or `missing`: see ``LocalUses``.
    static func lastUsed(in value: RawSpan) -> UInt32 {
        var reader = WireReader(value)
        reader.position = 1
        return (try? reader.fixed32()) ?? 0
    }

    static func decode(_ value: RawSpan) throws(RequestError) -> LocalDocument {
        guard let offset = recordOffset(in: value) else { throw .damagedDocument }
        let flags = value[byteAt: 0]
        let update = updateMicroseconds(in: value)
        guard
            let record = StoredRecordView(
                value.extracting(offset..<value.byteCount), versionMicroseconds: update)
        else { throw .damagedDocument }
        var document = LocalDocument(
            fields: [UInt8](copying: record.fields), createMicroseconds: record.createMicroseconds,
            updateMicroseconds: update)
        document.hasPendingWrites = flags & pendingFlag != 0
        document.isProvisional = flags & provisionalFlag != 0
        document.isPartial = flags & partialFlag != 0
        if flags & estimatesFlag != 0 {
            do throws(InvalidDocument) {
                document.estimates = try estimates(value)
                document.fields = PendingTimestamp.estimated(document.fields, document.estimates)
            } catch {
                throw .damagedDocument
            }
        }
        return document
    }

    private static func estimates(_ value: RawSpan) throws(InvalidDocument) -> [PendingTimestamp] {
        var outer = WireReader(value)
        outer.position = headerByteCount
        var reader = WireReader(try outer.lengthDelimited())
        var result: [PendingTimestamp] = []
        while !reader.isAtEnd {
            var segments: [[UInt8]] = []
            for _ in 0..<(try reader.varint()) { segments.append([UInt8](copying: try reader.lengthDelimited())) }
            let hasPrevious = try reader.varint() != 0
            let previous = hasPrevious ? EncodedValue(copying: try reader.lengthDelimited()) : nil
            guard let path = try? FieldPath(utf8Segments: segments) else { continue }
            result.append(PendingTimestamp(path: path, previous: previous))
        }
        return result
    }

    // MARK: The server's state of documents with pending writes

    static func encode(
        remote state: MaybeDocument, visible: MaybeDocument, at location: LocalLocation
    ) -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        writer.append(byte: Kind(state).rawValue)
        writer.append(byte: Kind(visible).rawValue)
        let isPartial = state.document?.isPartial ?? false
        writer.append(byte: (state.isProvisional ? provisionalFlag : 0) | (isPartial ? partialFlag : 0))
        writer.append(littleEndian: state.microseconds)
        if let document = state.document { appendRecord(document, at: location, to: &writer) }
        return writer.copyBytes()
    }

    /// A value of the space `remote` with another kind of what the program sees.
    static func settingVisible(_ visible: Kind, inRemote value: [UInt8]) throws(RequestError) -> [UInt8] {
        guard value.count >= remoteHeaderByteCount else { throw .damagedDocument }
        var changed = value
        changed[1] = visible.rawValue
        return changed
    }

    /// - Returns: the server's state, and the kind of what the program sees.
    static func decode(remote value: RawSpan) throws(RequestError) -> (MaybeDocument, visible: Kind) {
        guard value.byteCount >= remoteHeaderByteCount, let kind = Kind(rawValue: value[byteAt: 0]),
            let visible = Kind(rawValue: value[byteAt: 1])
        else { throw .damagedDocument }
        var reader = WireReader(value)
        reader.position = 3
        let microseconds = (try? reader.fixed64()) ?? 0
        let isProvisional = value[byteAt: 2] & provisionalFlag != 0
        switch kind {
        case .unknown: return (.unknown, visible)
        case .missing: return (.missing(microseconds: microseconds, isProvisional: isProvisional), visible)
        case .found:
            let bytes = value.extracting(remoteHeaderByteCount..<value.byteCount)
            guard let record = StoredRecordView(bytes, versionMicroseconds: microseconds) else {
                throw .damagedDocument
            }
            var document = LocalDocument(
                fields: [UInt8](copying: record.fields), createMicroseconds: record.createMicroseconds,
                updateMicroseconds: microseconds)
            document.isProvisional = isProvisional
            document.isPartial = value[byteAt: 2] & partialFlag != 0
            return (.found(document), visible)
        }
    }

    // MARK: Missing documents

    static func encode(missing microseconds: UInt64, isProvisional: Bool, lastUsed: UInt32) -> [UInt8] {
        var writer = ByteBuffer(capacity: 16)
        writer.append(byte: isProvisional ? provisionalFlag : 0)
        writer.append(littleEndian: lastUsed)
        writer.append(littleEndian: microseconds)
        return writer.copyBytes()
    }

    static func decode(missing value: RawSpan) throws(RequestError) -> MaybeDocument {
        guard value.byteCount == headerByteCount else { throw .damagedDocument }
        return .missing(
            microseconds: updateMicroseconds(in: value), isProvisional: value[byteAt: 0] & provisionalFlag != 0)
    }
}
