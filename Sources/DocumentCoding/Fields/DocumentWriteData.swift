// What the data of one write becomes: the parts of a `google.firestore.v1.Write` that depend on the user's value.

/// The fields, mask and transforms of a write, ready for the wire.
package struct DocumentWriteData: Equatable, Sendable {
    /// The canonical document bytes: `fields` entries of `Document`, sorted by name.
    package var fields: [UInt8]
    /// The paths of `update_mask` in the server's notation; `nil` = no mask, the whole document is replaced.
    package var mask: [String]?
    /// The field transforms in the order met, for `update_transforms`.
    package var transforms: [FieldTransformData]

    package init(fields: [UInt8], mask: [String]? = nil, transforms: [FieldTransformData] = []) {
        self.fields = fields
        self.mask = mask
        self.transforms = transforms
    }
}

/// One field transform, as the sentinel at a field asks for it.
package struct FieldTransformData: Equatable, Sendable {
    /// The names that lead to the field.
    package var path: [String]
    /// The oneof field of the `FieldTransform` message that follows its `field_path`, tag included.
    package var operation: [UInt8]

    package init(path: [String], operation: [UInt8]) {
        self.path = path
        self.operation = operation
    }
}
