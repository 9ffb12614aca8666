// Transforms of one write, sorted by the fields that they change.
//
// Transforms apply in order, each to what those before it left. Those of different fields do not see each other, so all
// transforms of one field can be applied to its value alone, one after the other, and the document is written once.

import DocumentModel

/// Transforms of one field.
struct TransformChain {
    let path: FieldPath
    /// The position of the first among all transforms.
    let first: Int
    /// The positions of the others, ascending; nearly always none.
    private(set) var others: [Int] = []

    init(_ path: FieldPath, position: Int) {
        self.path = path
        first = position
    }

    /// The chains of all fields; nil when one field lies inside another, so that their transforms see each other's
    /// results.
    static func chains(of transforms: [FieldTransform]) -> [TransformChain]? {
        if transforms.count == 1 { return [TransformChain(transforms[0].path, position: 0)] }
        let order = transforms.indices.sorted { left, right in
            if transforms[left].path.precedes(transforms[right].path) { return true }
            return left < right && !transforms[right].path.precedes(transforms[left].path)
        }
        var chains: [TransformChain] = []
        for position in order {
            let path = transforms[position].path
            // Sorted, a path follows the paths that it lies inside of, with nothing but such paths in between.
            guard let last = chains.last, last.path.isPrefix(of: path) else {
                chains.append(TransformChain(path, position: position))
                continue
            }
            if last.path.count != path.count { return nil }
            chains[chains.count - 1].others.append(position)
        }
        return chains
    }
}
