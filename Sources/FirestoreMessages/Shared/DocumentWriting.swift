// Writing `Document` messages front to back: every size is known beforehand, so nothing is moved or patched.

package import Basics
import DocumentModel

/// A `google.protobuf.Timestamp` as it is written.
package struct WireTimestamp {
    let seconds: UInt64
    let nanoseconds: UInt64

    /// - Parameter microseconds: since 1970.
    @inline(__always)
    package init(_ microseconds: UInt64) {
        seconds = microseconds / 1_000_000
        nanoseconds = (microseconds % 1_000_000) * 1_000
    }

    /// Bytes of the message, at most 17.
    @inline(__always)
    var byteCount: Int {
        (seconds == 0 ? 0 : 1 + ByteBuffer.varintSize(seconds))
            + (nanoseconds == 0 ? 0 : 1 + ByteBuffer.varintSize(nanoseconds))
    }

    /// Bytes of the message with its length and a tag of one byte.
    @inline(__always)
    var fieldByteCount: Int { 2 + byteCount }
}

extension ByteBuffer {
    /// Appends a timestamp field whose number is below 16.
    @inline(__always)
    package mutating func appendField(_ field: Int, _ time: WireTimestamp) {
        appendTimestamp(field, seconds: time.seconds, nanoseconds: time.nanoseconds)
    }

    /// Appends the fields of a `Document` message.
    ///
    /// - Parameters:
    ///   - namePrefix: the beginning of the document's resource name.
    ///   - path: the rest of it.
    ///   - fields: the `fields` entries, with their tags.
    @inline(__always)
    package mutating func appendDocument(
        namePrefix: RawSpan, path: RawSpan, fields: RawSpan, createTime: WireTimestamp, updateTime: WireTimestamp
    ) {
        reserve(namePrefix.byteCount + path.byteCount + fields.byteCount + 64)
        appendTag(field: FieldNumber.Document.name, .lengthDelimited)
        appendVarint(UInt64(namePrefix.byteCount + path.byteCount))
        append(namePrefix)
        append(path)
        append(fields)
        appendField(FieldNumber.Document.createTime, createTime)
        appendField(FieldNumber.Document.updateTime, updateTime)
    }

    /// Appends the fields of a `Document` message.
    @inline(__always)
    package mutating func appendDocument(
        name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64
    ) {
        appendDocument(
            namePrefix: name.extracting(first: 0), path: name, fields: fields,
            createTime: WireTimestamp(createMicroseconds), updateTime: WireTimestamp(updateMicroseconds))
    }

    /// Appends a whole `Document` as a field.
    @inline(__always)
    mutating func appendDocument(
        field: Int, namePrefix: RawSpan, path: RawSpan, fields: RawSpan, createMicroseconds: UInt64,
        updateMicroseconds: UInt64
    ) {
        let (createTime, updateTime) = (WireTimestamp(createMicroseconds), WireTimestamp(updateMicroseconds))
        let nameBytes = namePrefix.byteCount + path.byteCount
        let documentBytes =
            1 + ByteBuffer.varintSize(UInt64(nameBytes)) + nameBytes + fields.byteCount + createTime.fieldByteCount
            + updateTime.fieldByteCount
        appendTag(field: field, .lengthDelimited)
        appendVarint(UInt64(documentBytes))
        appendDocument(
            namePrefix: namePrefix, path: path, fields: fields, createTime: createTime, updateTime: updateTime)
    }
}
