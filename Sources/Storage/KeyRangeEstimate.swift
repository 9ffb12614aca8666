/// Entries and bytes of a range of keys. What is added is what several runs have.
package struct KeyRangeEstimate: Equatable, Sendable {
    /// Keys at versions, tombstones among them.
    package var entries = 0
    /// Bytes of files, with their part of both indexes.
    package var bytes = 0

    package init(entries: Int = 0, bytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
    }
}
