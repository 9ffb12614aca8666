// Sorting many field paths. A mask within a request may have hundreds of thousands; a comparison follows two pointers
// for each of them, and a sort makes some twenty comparisons for each path, which takes more than a second. A radix
// sort looks at each byte once at most.
//
//     path    key                 the order of the keys' bytes is that of the paths
//     a       61 0 1
//     a.b     61 0 1 62 0 1       a segment ends with 0 1
//     a\0     61 0 FF 0 1         a zero in a name is 0 FF
//     a?      61 3F 0 1

internal import Basics

extension Array {
    /// Sorts the elements by their paths. Equal ones keep their order.
    package mutating func sort(byPath path: (Element) -> FieldPath) {
        if count <= FieldPathSort.fewMax { return sort { path($0).precedes(path($1)) } }
        self = FieldPathSort(lazy.map(path)).order.map { self[$0] }
    }
}

/// A stable sort of paths.
private struct FieldPathSort {
    /// So few are sorted by comparisons, without keys.
    static let fewMax = 256
    /// Groups of at most so many are sorted by comparisons.
    private static let smallGroup = 24

    /// The keys, back to back, and where each begins.
    private var bytes: [UInt8] = []
    private var starts: [Int] = [0]
    /// Positions of paths in their order, as far as it is known.
    private(set) var order: [Int]
    private var moved: [Int]

    /// - Parameter paths: in any order, of which equal ones keep theirs.
    init(_ paths: some Collection<FieldPath>) {
        starts.reserveCapacity(paths.count + 1)
        for path in paths {
            for segment in path.utf8Segments {
                for byte in segment {
                    bytes.append(byte)
                    if byte == 0 { bytes.append(0xFF) }
                }
                bytes.append(0)
                bytes.append(1)
            }
            starts.append(bytes.count)
        }
        order = Array(0..<(starts.count - 1))
        moved = order
        var groups = [(range: order.indices, depth: 0)]
        while let group = groups.popLast() {
            if group.range.count <= Self.smallGroup {
                sortSmall(group.range, depth: group.depth)
            } else {
                split(group.range, depth: group.depth, into: &groups)
            }
        }
    }

    /// Sorts a group, whose keys have the same bytes before `depth`, by the next one.
    private mutating func split(
        _ range: Range<Int>, depth: Int, into groups: inout [(range: Range<Int>, depth: Int)]
    ) {
        // The first place is for keys that have ended.
        var ends = [Int](repeating: 0, count: 257)
        for index in range { ends[digit(order[index], depth)] += 1 }
        var end = range.lowerBound
        for digit in ends.indices where ends[digit] > 0 {
            let start = end
            end += ends[digit]
            ends[digit] = start
            // Keys that have ended are equal.
            if digit > 0, end - start > 1 { groups.append((start..<end, depth + 1)) }
        }
        for index in range {
            let place = digit(order[index], depth)
            moved[ends[place]] = order[index]
            ends[place] += 1
        }
        for index in range { order[index] = moved[index] }
    }

    /// Sorts a group by insertion.
    private mutating func sortSmall(_ range: Range<Int>, depth: Int) {
        for next in range.dropFirst() {
            let item = order[next]
            var place = next
            while place > range.lowerBound, precedes(item, order[place - 1], from: depth) {
                order[place] = order[place - 1]
                place -= 1
            }
            order[place] = item
        }
    }

    private func digit(_ item: Int, _ depth: Int) -> Int {
        let at = starts[item] + depth
        return at < starts[item + 1] ? Int(bytes[at]) + 1 : 0
    }

    private func precedes(_ left: Int, _ right: Int, from depth: Int) -> Bool {
        let left = bytes.byteSpan.extracting(min(starts[left] + depth, starts[left + 1])..<starts[left + 1])
        let right = bytes.byteSpan.extracting(min(starts[right] + depth, starts[right + 1])..<starts[right + 1])
        return left.compareBytes(right) < 0
    }
}
