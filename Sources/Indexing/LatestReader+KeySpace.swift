internal import Basics
internal import Storage
internal import StorageEngines
internal import StoreFormat

extension LatestReader {
    /// Calls `body` with every entry of a key space, in the order of the keys.
    func forEach(
        in space: KeySpace, _ body: (_ key: RawSpan, _ value: RawSpan) throws(StorageError) -> Void
    ) throws(StorageError) {
        let (from, to) = ([space.rawValue], [space.rawValue + 1])
        var cursor = try cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() { try body(cursor.key, cursor.value) }
    }
}
