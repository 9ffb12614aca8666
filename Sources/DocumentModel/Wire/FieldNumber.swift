/// The field numbers of every message under `proto/`, by message and field: `FieldNumber.RunQueryResponse.readTime`.
///
/// `Tools/generate-proto` writes the members; a test compares them with the descriptors. Messages of
/// `google.firestore.v1` are direct members; those of other packages are in an enumeration of the package. Each number
/// is a constant that the compiler folds into the code that uses it.
@usableFromInline package enum FieldNumber {
    /// Both members of an entry of any map field.
    @usableFromInline package enum MapEntry {
        @inlinable @inline(__always) package static var key: Int { 1 }
        @inlinable @inline(__always) package static var value: Int { 2 }
    }
}
