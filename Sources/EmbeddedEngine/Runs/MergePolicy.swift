/// Which runs are merged, and when.
///
/// A checkpoint writes a run of level 0. Eight runs of a level are merged into one of the next: each entry is written
/// once a level, and the number of levels grows with the logarithm of the data. The lowest run, which has most of the
/// data, is merged only when the runs above it have as much together: so deleted and superseded values take at most as
/// much space as the data, and merging the lowest run costs two bytes for each new one at most. When there are no
/// commits, everything becomes one run, if the runs above the lowest are not tiny.
///
/// A merge makes one file after another. After each file the manifest records how far it came: keys below a bound are
/// in the output, the inputs have the others. So a merge continues after a restart, a smaller merge may come in
/// between, and the space of the inputs is given back on the way.
enum MergePolicy {
    /// Runs of a level that are merged.
    static let runsPerLevel = 8
    /// When idle, runs above the lowest with at least this part of its bytes are merged with it.
    private static let idleFraction = 16

    /// Places of runs in a manifest that follow each other.
    struct Choice: Equatable {
        let places: Range<Int>
        /// The level of what they become.
        let level: UInt64
    }

    /// What to merge next, or nil.
    /// - Parameters:
    ///   - isIdle: there are no commits.
    ///   - hasGarbage: whether a run has enough history that may go.
    static func choice(_ manifest: Manifest, isIdle: Bool, hasGarbage: (Int) -> Bool) -> Choice? {
        let runs = manifest.runs
        let free = freePlaces(runs)
        // Small merges first: they keep the number of runs low.
        for places in free.reversed() {
            if let choice = tier(runs, places) { return choice }
        }
        if let all = free.first, free.count == 1, all == runs.indices, let last = runs.last, runs.count > 1 {
            let above = runs.dropLast().reduce(0) { $0 + $1.byteCount }
            let isDue = last.level > 0 && above >= last.byteCount
            let isDueWhenIdle = isIdle && above * idleFraction >= last.byteCount
            if isDue || isDueWhenIdle { return Choice(places: all, level: max(last.level, 1)) }
            if isIdle, runs.count > 2 {
                return Choice(places: 0..<(runs.count - 1), level: max(runs[runs.count - 2].level, 1))
            }
        }
        for place in runs.indices where isFree(runs, place) && hasGarbage(place) {
            return Choice(places: place..<(place + 1), level: runs[place].level)
        }
        return nil
    }

    /// Everything, if nothing is being merged.
    static func all(_ manifest: Manifest) -> Choice? {
        let runs = manifest.runs
        guard !runs.isEmpty, freePlaces(runs) == [runs.indices] else { return nil }
        return Choice(places: runs.indices, level: max(runs.last?.level ?? 0, 1))
    }

    /// Neither moved nor moved to.
    private static func isFree(_ runs: [Manifest.Run], _ place: Int) -> Bool {
        runs[place].output == 0 && !runs.contains { $0.output == runs[place].number }
    }

    /// Stretches of runs that no merge under way uses.
    private static func freePlaces(_ runs: [Manifest.Run]) -> [Range<Int>] {
        var found: [Range<Int>] = []
        for place in runs.indices where isFree(runs, place) {
            if let last = found.last, last.upperBound == place {
                found[found.count - 1] = last.lowerBound..<(place + 1)
            } else {
                found.append(place..<(place + 1))
            }
        }
        return found
    }

    /// Enough runs of one level.
    private static func tier(_ runs: [Manifest.Run], _ places: Range<Int>) -> Choice? {
        var first = places.lowerBound
        while first < places.upperBound {
            let level = runs[first].level
            var end = first
            while end < places.upperBound, runs[end].level == level { end += 1 }
            if end - first >= runsPerLevel { return Choice(places: first..<end, level: level + 1) }
            first = end
        }
        return nil
    }
}

extension Manifest {
    /// The merges under way: the places of their inputs, and the place of the output if it has a file yet. The smallest
    /// level first.
    var merges: [(inputs: Range<Int>, output: Int?)] {
        var merges: [(inputs: Range<Int>, output: Int?)] = []
        var place = 0
        while place < runs.count {
            let number = runs[place].output
            var end = place + 1
            if number != 0 {
                while end < runs.count, runs[end].output == number { end += 1 }
                let output = end < runs.count && runs[end].number == number ? end : nil
                merges.append((place..<end, output))
            }
            place = end
        }
        return merges
    }
}
