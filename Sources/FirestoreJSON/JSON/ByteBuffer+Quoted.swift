// Quoted text of which the schema's JSON consists.

import Basics
internal import DocumentModel

extension ByteBuffer {
    /// Appends text that needs no escapes, in quotes.
    mutating func appendQuoted(_ text: [UInt8]) {
        append(byte: UInt8(ascii: "\""))
        append(text)
        append(byte: UInt8(ascii: "\""))
    }

    /// Appends text as a JSON string, escapes and all; throws if it is not UTF-8.
    mutating func appendQuoted(checking text: RawSpan) throws(InvalidDocument) {
        guard UTF8Validation.isValid(text) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
        appendJSONString(text)
    }
}
