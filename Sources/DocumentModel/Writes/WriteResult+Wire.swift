// Reading and writing write results. Field numbers: `google/firestore/v1/write.proto`.

package import Basics

extension WriteResult {
    /// Reads the message.
    package init(wire: RawSpan) throws(InvalidDocument) {
        self.init(updateMicroseconds: nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.WriteResult.updateTime:
                updateMicroseconds = UInt64(clamping: try reader.timestamp(tag).microseconds)
            case FieldNumber.WriteResult.transformResults:
                transformResults.append(EncodedValue(canonical: try reader.byteArray(tag)))
            default: try reader.skip(tag)
            }
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        if let updateMicroseconds {
            let time = TimestampValue(microseconds: Int64(clamping: updateMicroseconds))
            writer.appendField(FieldNumber.WriteResult.updateTime, timestamp: time)
        }
        for result in transformResults {
            writer.appendField(FieldNumber.WriteResult.transformResults, bytes: result.bytes)
        }
    }
}
