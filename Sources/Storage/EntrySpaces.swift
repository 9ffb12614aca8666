/// The border between what an engine must keep and what can be made again.
///
/// Keys below it are documents, the catalogue, definitions, results of commits. Keys from it on are index entries,
/// which follow from the documents.
package enum EntrySpaces {
    /// The lowest first byte of keys of entries. On-disk constant.
    package static let lowest: UInt8 = 0x20
}
