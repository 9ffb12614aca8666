internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage
internal import Synchronization

/// A file in memory, whose pages become zeros where they cannot be read (``MapFaults``). Any thread.
@safe
final class FileMap: @unchecked Sendable {  // Nothing changes but by `close`, which the owner calls last.
    let base: UnsafeRawPointer
    let byteCount: Int
    let path: String
    private let faultSlot: Int?

    /// Maps the files of one ``RunFile``.
    /// - Returns: their maps, and the words that a fault in any of them clears, which the caller deallocates after the
    ///   maps are closed.
    /// - Throws: `corrupt` if one is missing or cannot be complete, `inputOutput`.
    static func open(
        _ paths: [String]
    ) throws(StorageError) -> (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>) {
        var files: [(file: File, byteCount: Int)] = []
        for path in paths {
            if !Directory.exists(path) { throw StorageError(.corrupt, "a file of a run is missing", file: path) }
            // The map keeps the file; a descriptor for each would be many.
            let file = try File(path, flags: O_RDONLY)
            files.append((file, try file.byteCount()))
            guard files[files.count - 1].byteCount >= RunFooter.fixedBytesMin else {
                throw StorageError(.corrupt, "a file of a run is too short", file: path)
            }
        }
        let words = unsafe RunPart.makeWords(byteCount: files.reduce(0) { $0 + $1.byteCount })
        var maps: [FileMap] = []
        do throws(StorageError) {
            for (file, byteCount) in files { unsafe maps.append(try FileMap(file, byteCount, words)) }
        } catch {
            for map in maps { map.close() }
            unsafe words.deallocate()
            throw error
        }
        return unsafe (maps, words)
    }

    private init(
        _ file: File, _ byteCount: Int, _ words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    ) throws(StorageError) {
        path = file.path
        self.byteCount = byteCount
        let memory = unsafe try file.map(byteCount: byteCount)
        unsafe base = UnsafeRawPointer(memory)
        // From here on a page that cannot be read is a page of zeros.
        faultSlot = unsafe MapFaults.add(memory, byteCount: byteCount, file: path, words: words)
    }

    /// Unmaps the file. Nothing may use it any more.
    func close() {
        MapFaults.remove(faultSlot)
        unsafe munmap(UnsafeMutableRawPointer(mutating: base), byteCount)
    }
}
