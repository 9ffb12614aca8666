// What the tests say about byte arrays: the test macros cannot look inside expressions with spans.

import DocumentModel
package import StoreFormat

/// Order of the bytes: -1, 0 or 1.
package func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    left.byteSpan.compareBytes(right.byteSpan).signum()
}

package func keyParts(_ key: [UInt8]) -> DocumentKey.Parts? {
    DocumentKey.parts(of: key.byteSpan)
}
