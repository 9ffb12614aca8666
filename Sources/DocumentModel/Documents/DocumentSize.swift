/// The size of documents by the published formula.
///
///     document   name + Σ (field name + value) + 32
///     name       Σ (UTF-8 + 1, or 8 for a numeric document id) + 16; a reference value counts the same
///     string, field name   UTF-8 + 1          map     Σ (key + value) + 32
///     bytes                length             array   Σ values
///     null, boolean        1                  vector  8 × dimension
///     integer, double, timestamp   8          geo point  16
///
/// Source: "Storage size calculations" in the documentation of Firestore.
package enum DocumentSize {
    /// Bytes that every document adds to its name and fields.
    package static let documentOverhead = 32
    static let mapOverhead = 32
    static let nameOverhead = 16
    static let geoPoint = 16
    /// Size of a numeric document id.
    static let numericID = 8

    /// Size of a document's name.
    package static func name(_ name: borrowing ResourceNameView) -> Int {
        var size = nameOverhead
        var isDocumentID = false
        var segments = name.segments
        while let segment = segments.next() {
            let isNumeric = isDocumentID && ResourceID.numericID(segment) != nil
            size += isNumeric ? numericID : segment.byteCount + 1
            isDocumentID.toggle()
        }
        return size
    }

    /// Size of a whole document from the size of its fields (``DocumentValidator/Result/size``) and its name.
    package static func document(nameSize: Int, fieldsSize: Int) -> Int {
        nameSize + fieldsSize + documentOverhead
    }
}
