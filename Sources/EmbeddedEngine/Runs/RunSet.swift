internal import Basics
internal import Storage

/// The runs at one moment, open for reading. It never changes. Any thread.
@safe
final class RunSet: @unchecked Sendable {  // The memory is written once, before the set is shared.
    let manifest: Manifest
    /// Of each run its files.
    let files: [[RunFile]]
    let view: RunSetView
    private let runs: UnsafeMutablePointer<RunSlices>
    private let slices: UnsafeMutablePointer<RunSlice>
    /// Bounds and highest keys: a search for the file of a key touches few cache lines when they are together.
    private let keys: UnsafeMutableRawPointer

    /// - Parameters:
    ///   - generation: above that of every set before.
    ///   - open: the open files by their numbers.
    init(_ manifest: Manifest, generation: Int, open: [UInt64: RunFile]) {
        self.manifest = manifest
        files = manifest.runs.map { run in run.parts.compactMap { open[$0.file] } }
        let boundBytes = manifest.runs.reduce(0) { $0 + $1.lowerBound.count }
        let highestBytes = files.joined().reduce(0) { unsafe $0 + $1.part.highestKey.count }
        unsafe keys = .allocate(byteCount: max(1, boundBytes + highestBytes), alignment: 64)
        let fileCount = files.reduce(0) { $0 + $1.count }
        unsafe slices = .allocate(capacity: max(1, fileCount))
        unsafe runs = .allocate(capacity: max(1, files.count))
        var free = unsafe keys
        func copy(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            let place = unsafe UnsafeMutableRawBufferPointer(start: free, count: key.count)
            unsafe place.copyMemory(from: key)
            unsafe free += key.count
            return UnsafeRawBufferPointer(place)
        }
        var slice = unsafe slices
        for (index, run) in manifest.runs.enumerated() {
            let first = unsafe slice
            var bound = unsafe run.lowerBound.withUnsafeBytes { unsafe copy($0) }
            for file in files[index] {
                let highestKey = unsafe copy(file.part.highestKey)
                unsafe slice.initialize(to: RunSlice(part: file.part, lowerBound: bound, highestKey: highestKey))
                unsafe bound = UnsafeRawBufferPointer(start: nil, count: 0)
                unsafe slice += 1
            }
            unsafe (runs + index).initialize(to: RunSlices(start: first, count: files[index].count))
        }
        unsafe view = RunSetView(
            runs: runs, count: files.count, generation: generation, hashSeed: manifest.hashSeed)
    }

    deinit {
        unsafe runs.deallocate()
        unsafe slices.deallocate()
        unsafe keys.deallocate()
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
    let generation: Int
    /// Of the hash indexes.
    let hashSeed: UInt64
    /// What reads do that meet places which are not in memory.
    var cold = ColdReads.wait

    /// Lines of hash indexes are prefetched for so many runs at once.
    private static let batchMax = 16

    /// The newest entry of a key that is at most `version`.
    /// - Parameter hash: `RunHashIndex.hash` of the key with the seed.
    func find(
        _ key: UnsafeRawBufferPointer, hash: UInt64, atMost version: UInt64
    ) throws(StorageError) -> FoundEntry? {
        while true {
            let faults = MapFaults.settledCount
            let found = unsafe try findOnce(key, hash: hash, atMost: version)
            if let found = unsafe found { unsafe touch(found.bytes) }
            // Otherwise what was read may have been zeros; a second look verifies the blocks again.
            if MapFaults.count == faults { return unsafe found }
        }
    }

    @inline(__always)
    private func findOnce(
        _ key: UnsafeRawBufferPointer, hash: UInt64, atMost version: UInt64
    ) throws(StorageError) -> FoundEntry? {
        var first = 0
        var places = InlineArray<16, Int>(repeating: 0)
        while first < count {
            let end = min(first + Self.batchMax, count)
            for run in first..<end {
                let slices = unsafe runs[run]
                // A single file is asked by its hash index alone.
                let place = slices.count == 1 ? 0 : unsafe slices.slice(of: key)
                places[run &- first] = place
                if place < slices.count { slices[place].part.prefetchHashLine(hash) }
            }
            for run in first..<end {
                let slices = unsafe runs[run]
                let place = places[run &- first]
                guard place < slices.count else { continue }
                let slice = slices[place]
                if slice.hasLowerBound, unsafe compareBytes(key, slice.lowerBound) < 0 { continue }
                if let found = unsafe try slice.part.find(key, hash: hash, atMost: version, cold) {
                    return unsafe found
                }
            }
            first = end
        }
        return nil
    }
}
