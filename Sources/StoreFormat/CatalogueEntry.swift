internal import DocumentModel

/// A catalogue entry taken apart in place.
package struct CatalogueEntry: ~Escapable {
    /// The number that stands for the collection in keys of index entries.
    package let number: UInt64
    /// Documents in the collection.
    package let count: Int
    /// The collection's full path if its key does not hold it; else empty.
    package let path: RawSpan

    /// Reads the value of a catalogue key; nil if it is not an entry.
    @_lifetime(copy bytes)
    package init?(_ bytes: RawSpan) {
        var reader = WireReader(bytes)
        guard let number = try? reader.varint(), let count = try? reader.varint(), let whole = Int(exactly: count)
        else {
            return nil
        }
        self.number = number
        self.count = whole
        path = bytes.extracting(reader.position..<bytes.byteCount)
    }
}
