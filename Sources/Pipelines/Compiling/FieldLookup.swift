// Fields of rows that expressions read.

internal import Expressions

/// Looks fields up, and pays for it. A large map in which many are looked for gets an index.
struct FieldLookup {
    /// The map in which fields were looked for last at one depth of paths.
    private struct Place {
        let map: EncodedSlice
        var count = 0
        var index: EncodedIndex?
    }

    /// By the depth of the fields in their paths.
    private var places: [Place] = []

    /// Maps of so many bytes may get an index, after so many fields were looked for.
    private static let (bytesMin, countMin) = (4 << 10, 8)
    /// What a look-up in an index costs, in bytes that could be copied meanwhile.
    private static let indexedCost = 64

    /// The value at a path in the fields of a row. Pays for the search and for a copy of the value.
    mutating func value(
        at path: [String], in fields: Operand, _ evaluation: Evaluation
    ) throws(ExpressionError) -> Operand {
        var value = fields
        for (depth, name) in path.enumerated() {
            guard case .encodedMap(let map) = value else {
                value = value.field(name)
                continue
            }
            if map.byteCount >= Self.bytesMin, let index = try index(of: map, at: depth, evaluation) {
                try evaluation.spendWork(Self.indexedCost)
                value = index.member(name)
            } else {
                try evaluation.spendWork(map.byteCount >> 3)
                value = value.field(name)
            }
        }
        try evaluation.spendMemory(value.flatBytes)
        return value
    }

    /// The index of a map; nil if it has none, because few fields were looked for or because paths do not lead into it.
    private mutating func index(
        of map: EncodedSlice, at depth: Int, _ evaluation: Evaluation
    ) throws(ExpressionError) -> EncodedIndex? {
        if depth < places.count {
            if !places[depth].map.isIdentical(to: map) { places[depth] = Place(map: map) }
        } else {
            // A map that is not large may lie around this one.
            while places.count <= depth { places.append(Place(map: map)) }
        }
        places[depth].count += 1
        if places[depth].count == Self.countMin, map.isPlain {
            try evaluation.spendWork(map.byteCount >> 1)
            places[depth].index = EncodedIndex(map)
        }
        return places[depth].index
    }
}
