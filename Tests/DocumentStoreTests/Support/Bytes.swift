// What the tests say about byte arrays: the test macros cannot look inside expressions with spans.

import DocumentModel
import Synchronization

@testable import DocumentStore

/// Order of the bytes: -1, 0 or 1.
func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    left.byteSpan.compareBytes(right.byteSpan).signum()
}

func keyParts(_ key: [UInt8]) -> DocumentKey.Parts? {
    DocumentKey.parts(of: key.byteSpan)
}

extension ByteTable {
    func value(ofKey key: [UInt8]) -> Int? { value(of: key.byteSpan) }
}

extension SessionTable {
    mutating func keep(_ identifier: RequestIdentifier, result: [UInt8], nowMilliseconds: UInt64) -> UInt32 {
        keep(identifier, encodedResult: result.byteSpan, nowMilliseconds: nowMilliseconds)
    }
}

/// What several tasks have gathered.
final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func append(_ element: Element) { elements.withLock { $0.append(element) } }
    var all: [Element] { elements.withLock { $0 } }
}
