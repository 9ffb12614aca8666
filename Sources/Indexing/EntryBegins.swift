// Where the entries of an index begin: what lies before was deleted, and its remains would be passed in each look.

internal import Basics

/// Where the entries of some declared indexes begin at the earliest. Belongs to the commit thread.
///
/// Who goes over an index from its lowest entry notes here where the next one may begin. Entries that are put before
/// that place, also meanwhile, move it back.
package final class EntryBegins {
    private struct Index: Hashable {
        let database: UInt32
        let number: UInt64
    }

    private struct Begin {
        /// There is no entry before.
        var key: [UInt8]
        /// The lowest entry that was put since the last look began.
        var put: [UInt8]?
    }

    private var begins: [Index: Begin] = [:]

    /// A look at the entries of an index begins.
    ///
    /// - Parameter lowest: no entry lies before it.
    /// - Returns: where to begin.
    package func beginLook(at index: DeclaredIndex, lowest: [UInt8]) -> [UInt8] {
        let key = begins[Self.key(index)].map { max($0.key, lowest) } ?? lowest
        begins[Self.key(index)] = Begin(key: key)
        return key
    }

    /// A look has come to its end.
    /// - Parameter key: no entry that was there when it began lies before it.
    package func endLook(at index: DeclaredIndex, begin key: [UInt8]) {
        guard let begin = begins[Self.key(index)] else { return }
        begins[Self.key(index)] = Begin(key: begin.put.map { min(key, $0) } ?? key)
    }

    /// An entry is put.
    func notePut(_ entry: RawSpan, in index: DeclaredIndex) {
        if begins.isEmpty { return }
        guard var begin = begins[Self.key(index)] else { return }
        let isBefore = entry.compareBytes(begin.key.byteSpan) < 0
        let isLowest = begin.put.map { entry.compareBytes($0.byteSpan) < 0 } ?? true
        guard isBefore || isLowest else { return }
        let key = [UInt8](copying: entry)
        if isBefore { begin.key = key }
        if isLowest { begin.put = key }
        begins[Self.key(index)] = begin
    }

    /// The index has changed its state.
    func forget(_ index: DeclaredIndex) { begins[Self.key(index)] = nil }

    private static func key(_ index: DeclaredIndex) -> Index { Index(database: index.database, number: index.number) }

    private func max(_ one: [UInt8], _ other: [UInt8]) -> [UInt8] {
        one.byteSpan.compareBytes(other.byteSpan) < 0 ? other : one
    }

    private func min(_ one: [UInt8], _ other: [UInt8]) -> [UInt8] {
        one.byteSpan.compareBytes(other.byteSpan) < 0 ? one : other
    }
}
