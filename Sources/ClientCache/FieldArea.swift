// Fields of a document that are written together.

internal import DocumentModel

/// A set of fields that says which fields have a part in common with it. The time of each call grows with the depth of
/// its path, not with the size of the set.
struct FieldArea {
    private var paths: Set<FieldPath> = []
    /// The fields that contain one of `paths`.
    private var containers: Set<FieldPath> = []

    mutating func insert(_ path: FieldPath) {
        guard paths.insert(path).inserted else { return }
        var container = path.parent
        while let next = container, containers.insert(next).inserted { container = next.parent }
    }

    /// Whether a field of the set is this field, contains it or lies in it.
    func overlaps(_ path: FieldPath) -> Bool {
        if containers.contains(path) { return true }
        var field: FieldPath? = path
        while let next = field {
            if paths.contains(next) { return true }
            field = next.parent
        }
        return false
    }
}
