internal import Storage
internal import Synchronization

/// Notices faults in a map that a library has made, and whose place is not known. Not thread-safe.
///
/// The library meets a page of zeros. What it answers then is not used: the caller asks `check` after each call.
@safe
final class LibraryFaults {
    private let file: String
    /// One word, which a fault clears.
    private let words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    private let slot: Int?

    /// - Parameter file: what the library maps.
    init(file: String) {
        self.file = file
        unsafe words = .allocate(capacity: 1)
        unsafe words.initializeElement(at: 0, to: Atomic(1))
        slot = unsafe MapFaults.add(nil, byteCount: 0, file: file, words: words)
    }

    deinit {
        MapFaults.remove(slot)
        unsafe words.deallocate()
    }

    /// Makes a call of the library. Only its own memory may be read in it, and maps of ``FileMap``.
    @inline(__always)
    func reading<Output>(_ call: () -> Output) -> Output {
        MapFaults.setReading(slot, true)
        defer { MapFaults.setReading(slot, false) }
        return call()
    }

    /// - Throws: `inputOutput` if a page could not be read since the beginning.
    @inline(__always)
    func check() throws(StorageError) {
        if unsafe words[0].load(ordering: .relaxed) == 0 { throw failure }
    }

    private var failure: StorageError {
        StorageError(.inputOutput, "a page that was written cannot be read again", file: file)
    }
}
