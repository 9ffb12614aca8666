// What the tests say about byte arrays: the test macros cannot look inside expressions with spans.

import DocumentModel
import Synchronization

@testable import DocumentStore
@testable import StoreFormat

extension LogRecordWriter {
    mutating func append(
        _ kind: LogRecord.ItemKind, _ path: String, createMicroseconds: UInt64 = 0,
        updateMicroseconds: UInt64 = 0, fields: [UInt8], identifier: RequestIdentifier? = nil, slot: UInt32? = nil
    ) {
        let path = Array(path.utf8)
        append(
            LogItem(
                kind, path: path.byteSpan, payload: fields.byteSpan, createMicroseconds: createMicroseconds,
                updateMicroseconds: updateMicroseconds, identifier: identifier, slot: slot))
    }
}

extension SessionTable {
    /// Forgets the idle sessions.
    /// - Returns: their names with their numbers of slots.
    mutating func removeIdle(nowMilliseconds: UInt64) -> [(session: SessionName, slotCount: UInt32)] {
        let idle = idle(nowMilliseconds: nowMilliseconds).map { ($0, slotCount(of: $0)) }
        for (session, _) in idle { remove(session) }
        return idle
    }

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
