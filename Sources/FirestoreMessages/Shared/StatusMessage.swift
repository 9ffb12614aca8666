// `google.rpc.Status`: 1 code, 2 message, 3 details*.

package import Basics
import DocumentModel

/// The outcome of one part of a call.
package struct StatusMessage: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Rpc.Status

    /// `.unknown` for a code that is none of gRPC's.
    package var code: StatusCode
    /// Empty for OK.
    package var message: String

    package init(code: StatusCode, message: String = "") {
        self.code = code
        self.message = message
    }

    package init(wire: RawSpan) throws {
        self.init(code: .ok)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.code:
                code = UInt8(exactly: try reader.int32(tag)).flatMap(StatusCode.init(rawValue:)) ?? .unknown
            case Field.message: message = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.code, int64: Int64(code.rawValue))
        writer.writeIfSet(Field.message, string: message)
    }
}
