/// The runs at one moment, open for reading. It never changes. Any thread.
@safe
final class RunSet: @unchecked Sendable {  // The memory is written once, before the set is shared.
    let manifest: Manifest
    /// Of each run its files.
    let files: [[RunFile]]
    let view: RunSetView
    private let runs: UnsafeMutablePointer<RunSlices>
    private let slices: UnsafeMutablePointer<RunSlice>
    private let versionMins: UnsafeMutablePointer<UInt64>
    private let bounds: UnsafeMutableRawPointer

    /// - Parameters:
    ///   - generation: above that of every set before.
    ///   - open: the open files by their numbers.
    init(_ manifest: Manifest, generation: Int, open: [UInt64: RunFile]) {
        self.manifest = manifest
        files = manifest.runs.map { run in run.parts.compactMap { open[$0.file] } }
        let boundBytes = manifest.runs.reduce(0) { $0 + $1.lowerBound.count }
        unsafe bounds = .allocate(byteCount: max(1, boundBytes), alignment: 8)
        let fileCount = files.reduce(0) { $0 + $1.count }
        unsafe slices = .allocate(capacity: max(1, fileCount))
        unsafe versionMins = .allocate(capacity: max(1, fileCount))
        unsafe runs = .allocate(capacity: max(1, files.count))
        var bound = unsafe bounds
        var slice = unsafe slices
        for (index, run) in manifest.runs.enumerated() {
            let first = unsafe slice
            let count = run.lowerBound.count
            unsafe UnsafeMutableRawBufferPointer(start: bound, count: count).copyBytes(from: run.lowerBound)
            for file in files[index] {
                let isFirst = unsafe slice == first
                let lower = unsafe UnsafeRawBufferPointer(start: bound, count: isFirst ? count : 0)
                unsafe slice.initialize(to: RunSlice(part: file.part, lowerBound: lower))
                unsafe (versionMins + (slice - slices)).initialize(to: file.part.versionMin)
                unsafe slice += 1
            }
            unsafe bound += count
            unsafe (runs + index).initialize(to: RunSlices(start: first, count: files[index].count))
        }
        unsafe view = RunSetView(
            runs: runs, count: files.count, slices: slices, versionMins: versionMins, generation: generation,
            versionMax: manifest.checkpoint.microseconds)
    }

    deinit {
        unsafe runs.deallocate()
        unsafe slices.deallocate()
        unsafe versionMins.deallocate()
        unsafe bounds.deallocate()
    }

    /// Of the runs with these places in the manifest, the newest first.
    func slices(_ places: Range<Int>) -> [RunSlices] { places.map { unsafe view.runs[$0] } }
}

/// A set of runs as a reader uses it; valid while the set is.
@safe
struct RunSetView: @unchecked Sendable {  // See `RunSet`.
    /// The newest first.
    let runs: UnsafePointer<RunSlices>
    let count: Int
    /// The files of all runs.
    fileprivate let slices: UnsafePointer<RunSlice>
    /// The lowest version of each of these files.
    let versionMins: UnsafePointer<UInt64>
    let generation: Int
    /// No entry is newer.
    let versionMax: UInt64

    /// Filters are prefetched for so many runs at once.
    private static let batchMax = 16

    /// The newest entry of a key that is at most `version`: its file, its block, and its number there.
    func find(
        _ key: UnsafeRawBufferPointer, hash: UInt64, atMost version: UInt64
    ) throws(StorageError) -> FoundInRun? {
        var first = 0
        var places = InlineArray<16, Int>(repeating: 0)
        while first < count {
            let end = min(first + Self.batchMax, count)
            for run in first..<end {
                let slices = unsafe runs[run]
                // A single file is asked by its filter alone.
                let place = slices.count == 1 ? 0 : unsafe slices.slice(of: key)
                places[run &- first] = place
                if place < slices.count { slices[place].part.prefetchFilter(hash) }
            }
            for run in first..<end {
                let slices = unsafe runs[run]
                let place = places[run &- first]
                guard place < slices.count, try slices[place].part.mayContain(hash: hash) else { continue }
                let slice = slices[place]
                if slice.hasLowerBound, unsafe compareBytes(key, slice.lowerBound) < 0 { continue }
                if let (block, index) = unsafe try slice.part.find(key, atMost: version) {
                    let file = unsafe slices.start - self.slices + place
                    return FoundInRun(block: block, index: index, file: file, versionMin: slice.part.versionMin)
                }
            }
            first = end
        }
        return nil
    }
}

/// An entry of a run, in place.
struct FoundInRun {
    let block: Block
    let index: Int
    /// The number of the file among those of all runs.
    let file: Int
    let versionMin: UInt64
}
