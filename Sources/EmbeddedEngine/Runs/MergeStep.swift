internal import FileSystem
internal import Storage

/// One step of a merge: the next file of its output.
struct MergeStep {
    let store: RunStore
    let latestOnly: LatestOnlySpaces
    let scannedSpaces: ClosedRange<UInt8>?
    /// Called now and then; returns whether to give up.
    let isInterrupted: () -> Bool

    struct Outcome {
        /// The file, unless nothing was left of the entries.
        var part: Manifest.Part?
        /// The key at which the rest begins; nil if there is none.
        var rest: [UInt8]?
        var droppedCount = 0
        var readCount = 0
        /// The merge gave up, and nothing has changed.
        var isInterrupted = false
    }

    private static let keysBetweenChecks = 512

    /// Writes the next file of a merge of the runs at these places, of which `set` has what is left.
    /// - Throws: `full`, `inputOutput`, `corrupt`; nothing has changed then.
    func run(
        _ set: RunSet, _ places: Range<Int>, isLowest: Bool, horizon: UInt64, byteCountMax: Int
    ) throws(StorageError) -> Outcome {
        while true {
            let faults = MapFaults.settledCount
            let outcome = try runOnce(
                set, places, isLowest: isLowest, horizon: horizon, byteCountMax: byteCountMax)
            if MapFaults.count == faults { return outcome }
            // A page may have become zeros after it was verified and before it was copied.
            if let part = outcome.part { store.remove([part]) }
        }
    }

    private func runOnce(
        _ set: RunSet, _ places: Range<Int>, isLowest: Bool, horizon: UInt64, byteCountMax: Int
    ) throws(StorageError) -> Outcome {
        var outcome = Outcome()
        var merge = try RunMerge(
            set.slices(places), horizon: horizon, isLowest: isLowest, latestOnly: latestOnly)
        while !merge.isAtEnd, outcome.part == nil, !outcome.isInterrupted {
            let number = try store.takeFileNumber()
            let kind = unsafe RunKind(of: merge.nextKey)
            do throws(StorageError) {
                let writer = try RunWriter(
                    directory: store.directory, number: number, kind: kind, versions: versions(set, places),
                    latestOnly: latestOnly, scannedSpaces: scannedSpaces, hashSeed: set.manifest.hashSeed,
                    space: (store.space, purpose(set)))
                outcome.part = try write(
                    &merge, to: writer, (number, kind), byteCountMax: byteCountMax, outcome: &outcome)
            } catch {
                store.remove(number, kind)
                throw error
            }
            if outcome.part == nil { store.remove(number, kind) }
        }
        outcome.droppedCount = merge.droppedCount
        outcome.readCount = merge.readCount
        if !merge.isAtEnd { outcome.rest = unsafe Array(merge.nextKey) }
        return outcome
    }

    private func write(
        _ merge: inout RunMerge, to writer: consuming RunWriter, _ file: (number: UInt64, kind: RunKind),
        byteCountMax: Int, outcome: inout Outcome
    ) throws(StorageError) -> Manifest.Part? {
        var keys = 0
        while unsafe !merge.isAtEnd && writer.byteCount < byteCountMax && writer.takes(merge.nextKey) {
            try merge.appendKey(to: &writer)
            keys &+= 1
            if keys % Self.keysBetweenChecks == 0, isInterrupted() {
                outcome.isInterrupted = true
                return nil
            }
        }
        guard writer.entryCount > 0 else { return nil }
        let (footer, byteCount) = try writer.finish()
        return Manifest.Part(
            file: file.number, identity: footer.identity, byteCount: UInt64(byteCount), kind: file.kind)
    }

    /// Whether merges free space: a sixteenth of all entries are deletions or superseded.
    private func purpose(_ set: RunSet) -> RunSpace.Purpose {
        let footers = set.files.joined().map(\.footer)
        let entries = footers.reduce(0) { $0 + $1.entryCount }
        let garbage = footers.reduce(0) { $0 + $1.tombstoneCount + $1.supersededCount }
        return garbage * 16 >= entries ? .mergeForSpace : .merge
    }

    /// The versions that the entries may have.
    private func versions(_ set: RunSet, _ places: Range<Int>) -> ClosedRange<UInt64> {
        let footers = set.files[places].joined().map(\.footer)
        let lowest = footers.map(\.versionMin).min() ?? 0
        return lowest...max(lowest, footers.map(\.versionMax).max() ?? 0)
    }
}

extension Manifest {
    /// Records a step of a merge: what was moved from the inputs, and the file it was moved to.
    /// - Parameters:
    ///   - inputs: numbers of the runs that are merged.
    ///   - output: the number of the run that they become.
    ///   - highestKey: of a file, by its number.
    mutating func record(
        _ outcome: MergeStep.Outcome, inputs: [UInt64], output: UInt64, level: UInt64,
        highestKey: (UInt64) -> [UInt8]
    ) {
        var place = 0
        var end = 0
        while place < runs.count {
            guard inputs.contains(runs[place].number) else {
                place += 1
                continue
            }
            if let rest = outcome.rest {
                runs[place].output = output
                runs[place].parts.removeAll { highestKey($0.file).lexicographicallyPrecedes(rest) }
                runs[place].lowerBound = rest
            }
            if outcome.rest == nil || runs[place].parts.isEmpty {
                runs.remove(at: place)
            } else {
                place += 1
            }
            end = place
        }
        if let index = runs.firstIndex(where: { $0.number == output }) {
            if let part = outcome.part { runs[index].parts.append(part) }
        } else if let part = outcome.part {
            runs.insert(Run(number: output, level: level, parts: [part]), at: end)
        }
    }
}
