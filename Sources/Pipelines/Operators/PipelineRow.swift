// A row on its way through a pipeline.

internal import Basics
internal import DocumentModel
internal import Expressions

/// What a row's document is called and when it was written.
struct RowDocument: Sendable {
    /// The path below `documents`, UTF-8.
    let path: [UInt8]
    /// Microseconds since 1970.
    let createMicroseconds: UInt64
    /// Microseconds since 1970.
    let updateMicroseconds: UInt64
}

/// Fields, and the document that they come from if there is one.
struct PipelineRow: Sendable {
    /// A map.
    var fields: Operand
    /// Nil for rows that are not documents: groups, literals.
    var document: RowDocument?
    /// What the stage `let` has bound to names; values may be absent.
    var variables = OperandMap()
    /// The values of expressions with subqueries, for the next stage alone.
    var computed: [Result<Operand, ExpressionError>] = []
    /// Bytes that expressions have built for the row, stage after stage.
    var builtBytes = 0
    /// How well the document matches the search that found it; 0 without a search for text.
    var score = 0.0

    init(fields: Operand = .map([:]), document: RowDocument? = nil) {
        self.fields = fields
        self.document = document
    }

    /// An estimate of the bytes of memory that the row holds.
    var memoryBytes: Int {
        let parts = 96 + (document?.path.count ?? 0) + fields.deepMemoryBytes
        if variables.isEmpty, computed.isEmpty { return parts }
        var total = parts + Operand.map(variables).deepMemoryBytes
        for case .success(let value) in computed { total += value.deepMemoryBytes }
        return total
    }

    /// Makes sure that expressions have not built too much for the row.
    func checkBuiltBytes() throws(RequestError) {
        if builtBytes > PipelineLimits.builtBytesPerRow {
            throw RequestError(
                .resourceExhausted,
                "The pipeline builds more than \(PipelineLimits.builtBytesPerRow) bytes for one row.")
        }
    }
}

extension Operand {
    /// An estimate of the bytes of memory that the operand holds, with everything in it, counted no further than
    /// four times what one value may have encoded.
    var deepMemoryBytes: Int {
        var total = 0
        addMemoryBytes(to: &total)
        return total
    }

    private func addMemoryBytes(to total: inout Int) {
        // The same part may occur many times: what is held once is counted each time, and counting ends somewhere.
        if total > 4 * Operand.encodedBytesMax { return }
        total += 48
        switch self {
        case .encodedMap(let slice), .encodedList(let slice): total += slice.byteCount
        case .list(let elements): for element in elements { element.addMemoryBytes(to: &total) }
        case .map(let map):
            for entry in map.entries {
                total += 32 + entry.key.utf8.count
                entry.value.addMemoryBytes(to: &total)
            }
        default: total += memoryBytes
        }
    }

    /// The map with the entries of another, which replace those of the same names. Not a map: the other alone.
    func merging(_ set: OperandMap) -> Operand {
        if set.isEmpty { return self }
        let present = entries ?? OperandMap()
        var merged: [OperandMap.Entry] = []
        merged.reserveCapacity(present.count + set.count)
        var next = 0
        for entry in present.entries {
            while next < set.count, set.entries[next].key.compareUTF8(entry.key) < 0 {
                merged.append(set.entries[next])
                next += 1
            }
            if next < set.count, set.entries[next].key.hasSameUTF8(as: entry.key) {
                merged.append(set.entries[next])
                next += 1
            } else {
                merged.append(entry)
            }
        }
        merged += set.entries[next...]
        return .map(OperandMap(sorted: merged))
    }

    /// A value and the fields that lead to its place, at least one.
    typealias Placed = (path: ArraySlice<String>, value: Operand)

    /// The map with values at paths, those that are absent left out. What is not a map on the way becomes one. Each map
    /// is read and copied once, however many values it gets.
    ///
    /// - Parameter aroundAbsent: whether the maps around an absent value are made too.
    func setting(_ values: [Placed], aroundAbsent: Bool = false) -> Operand {
        var simple: [OperandMap.Entry] = []
        var nested: [(name: String, values: [Placed])] = []
        var places: [UTF8Text: Int] = [:]
        simple.reserveCapacity(values.count)
        for (path, value) in values {
            let (name, rest) = (path[path.startIndex], path.dropFirst())
            if value.isAbsent, rest.isEmpty || !aroundAbsent { continue }
            if rest.isEmpty {
                simple.append((name, value))
            } else if let place = places[UTF8Text(name)] {
                nested[place].values.append((rest, value))
            } else {
                places[UTF8Text(name)] = nested.count
                nested.append((name, [(rest, value)]))
            }
        }
        let result = merging(OperandMap(simple))
        if nested.isEmpty { return result }
        let present = result.entries ?? OperandMap()
        let changed = nested.map { name, values in
            (key: name, value: (present[name] ?? .map([:])).setting(values, aroundAbsent: aroundAbsent))
        }
        return Operand.map(present).merging(OperandMap(changed))
    }

    /// The map without the fields at paths; other operands as they are. Each map is read and copied once.
    func removing(_ paths: [ArraySlice<String>]) -> Operand {
        guard let map = entries else { return self }
        // What is removed of each entry; an empty path stands for all of it.
        var removed: [Int: [ArraySlice<String>]] = [:]
        for path in paths {
            guard let name = path.first, let index = map.index(of: name) else { continue }
            removed[index, default: []].append(path.dropFirst())
        }
        if removed.isEmpty { return self }
        var kept: [OperandMap.Entry] = []
        kept.reserveCapacity(map.count)
        for (index, entry) in map.entries.enumerated() {
            guard let rests = removed[index] else {
                kept.append(entry)
                continue
            }
            if !rests.contains(where: \.isEmpty) { kept.append((entry.key, entry.value.removing(rests))) }
        }
        return .map(OperandMap(sorted: kept))
    }
}
