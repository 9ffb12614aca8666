// Writing documents into replies front to back: every size is known beforehand, so nothing is moved or patched.

internal import DocumentModel

/// Sizes of the messages around a lent document.
///
///     Document:                   0a name  fields...  1a create_time  22 update_time
///     BatchGetDocumentsResponse:  0a Document  1a transaction  22 read_time
///     RunQueryResponse:           0a Document  12 transaction  1a read_time  20 skipped_results
struct DocumentSizes {
    /// Bytes of a `Document` message.
    let document: Int

    @inline(__always)
    init(nameBytes: Int, fieldBytes: Int, createMicroseconds: UInt64, updateMicroseconds: UInt64) {
        document = 1 + WireWriter.varintSize(UInt64(nameBytes)) + nameBytes + fieldBytes
            + WireTimestamp(createMicroseconds).fieldByteCount + WireTimestamp(updateMicroseconds).fieldByteCount
    }
}

/// A `google.protobuf.Timestamp` on its way out.
struct WireTimestamp {
    let seconds: UInt64
    let nanoseconds: UInt64

    @inline(__always)
    init(_ microseconds: UInt64) {
        seconds = microseconds / 1_000_000
        nanoseconds = (microseconds % 1_000_000) * 1_000
    }

    /// Bytes of the message.
    @inline(__always)
    var byteCount: Int {
        (seconds == 0 ? 0 : 1 + WireWriter.varintSize(seconds))
            + (nanoseconds == 0 ? 0 : 1 + WireWriter.varintSize(nanoseconds))
    }

    /// Bytes of the message with a one-byte tag and its length.
    @inline(__always)
    var fieldByteCount: Int { 2 + byteCount }
}

extension WireWriter {
    /// Appends a timestamp field with a one-byte tag; room for 20 bytes must have been reserved or is made here.
    @inline(__always)
    mutating func appendTimestamp(tag: UInt8, _ time: WireTimestamp) {
        append(byte: tag)
        append(byte: UInt8(truncatingIfNeeded: time.byteCount))
        if time.seconds != 0 {
            append(byte: 0x08)
            appendVarint(time.seconds)
        }
        if time.nanoseconds != 0 {
            append(byte: 0x10)
            appendVarint(time.nanoseconds)
        }
    }

    /// Appends the fields of a `Document` message.
    @inline(__always)
    mutating func appendDocument(
        name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64
    ) {
        reserve(name.byteCount + fields.byteCount + 64)
        append(byte: DocumentTag.name)
        appendVarint(UInt64(name.byteCount))
        append(name)
        append(fields)
        appendTimestamp(tag: DocumentTag.createTime, WireTimestamp(createMicroseconds))
        appendTimestamp(tag: DocumentTag.updateTime, WireTimestamp(updateMicroseconds))
    }

    /// Appends a whole `Document` as a field with a one-byte tag.
    @inline(__always)
    mutating func appendDocumentField(
        tag: UInt8, name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64
    ) {
        let sizes = DocumentSizes(
            nameBytes: name.byteCount, fieldBytes: fields.byteCount, createMicroseconds: createMicroseconds,
            updateMicroseconds: updateMicroseconds)
        append(byte: tag)
        appendVarint(UInt64(sizes.document))
        appendDocument(
            name: name, fields: fields, createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
    }
}
