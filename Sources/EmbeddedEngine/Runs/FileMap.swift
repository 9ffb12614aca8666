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
    /// Which file it is; nil for a copy in memory.
    private let identity: Directory.Identity?
    private let faultSlot: Int?

    /// Maps the files of one ``RunFile``.
    /// - Returns: their maps, and the words that a fault in any of them clears, which the caller deallocates after the
    ///   maps are closed.
    /// - Throws: `corrupt` if one is missing or cannot be complete, `inputOutput`.
    static func open(
        _ paths: [String]
    ) throws(StorageError) -> (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>) {
        unsafe try open(paths) { path throws(StorageError) in
            // The map keeps the file; a descriptor for each would be many.
            try File(path, flags: O_RDONLY)
        } makeMap: { file, byteCount, words throws(StorageError) in
            unsafe try FileMap(file, byteCount, words)
        }
    }

    /// Reads the files of one ``RunFile`` from the disk to memory.
    /// - Parameter progress: called after each piece; what it throws ends the reading.
    static func read(
        _ paths: [String], _ progress: (_ byteCount: Int) throws(StorageError) -> Void
    ) throws(StorageError) -> (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>) {
        unsafe try open(paths) { path throws(StorageError) in
            try File.openDirectly(path)
        } makeMap: { file, byteCount, _ throws(StorageError) in
            try FileMap(reading: file, byteCount, progress)
        }
    }

    private static func open(
        _ paths: [String], openFile: (String) throws(StorageError) -> File,
        makeMap: (File, Int, UnsafeMutableBufferPointer<Atomic<UInt64>>) throws(StorageError) -> FileMap
    ) throws(StorageError) -> (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>) {
        var files: [(file: File, byteCount: Int)] = []
        for path in paths {
            if !Directory.exists(path) { throw StorageError(.corrupt, "a file of a run is missing", file: path) }
            let file = try openFile(path)
            files.append((file, try file.byteCount()))
            guard files[files.count - 1].byteCount >= RunFooter.fixedBytesMin else {
                throw StorageError(.corrupt, "a file of a run is too short", file: path)
            }
        }
        let words = unsafe RunPart.makeWords(byteCount: files.reduce(0) { $0 + $1.byteCount })
        var maps: [FileMap] = []
        do throws(StorageError) {
            for (file, byteCount) in files { unsafe maps.append(try makeMap(file, byteCount, words)) }
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
        identity = Directory.status(of: file.path).identity
        self.byteCount = byteCount
        let memory = unsafe try file.map(byteCount: byteCount)
        unsafe base = UnsafeRawPointer(memory)
        // From here on a page that cannot be read is a page of zeros.
        faultSlot = unsafe MapFaults.add(memory, byteCount: byteCount, file: path, words: words)
    }

    /// Bytes that are read at once; a multiple of every page.
    private static let pieceBytes = 1 << 20

    /// Memory with the bytes of a file.
    private init(
        reading file: File, _ byteCount: Int, _ progress: (_ byteCount: Int) throws(StorageError) -> Void
    ) throws(StorageError) {
        path = file.path
        identity = nil
        self.byteCount = byteCount
        faultSlot = nil
        let memory = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            throw .system(errno, "cannot allocate \(byteCount) bytes", file: file.path)
        }
        unsafe base = UnsafeRawPointer(memory)
        do throws(StorageError) {
            unsafe try Self.read(file, byteCount, to: memory, progress)
        } catch {
            unsafe munmap(memory, byteCount)
            throw error
        }
    }

    private static func read(
        _ file: File, _ byteCount: Int, to memory: UnsafeMutableRawPointer,
        _ progress: (_ byteCount: Int) throws(StorageError) -> Void
    ) throws(StorageError) {
        var offset = 0
        while offset < byteCount {
            // A direct read ends with a page, which the memory has too.
            let pages = (min(pieceBytes, byteCount - offset) + 4095) & ~4095
            let piece = unsafe UnsafeMutableRawBufferPointer(start: memory + offset, count: pages)
            let count = unsafe try file.readOnce(into: piece, at: offset)
            guard count > 0 else {
                throw StorageError(.corrupt, "the file has become shorter", file: file.path, offset: offset)
            }
            offset += count
            try progress(count)
        }
    }

    /// Removes the file, unless another one has its path.
    func removeFile() {
        if let identity, Directory.status(of: path).identity == identity { try? Directory.removeFile(path) }
    }

    /// Unmaps the file. Nothing may use it any more.
    func close() {
        MapFaults.remove(faultSlot)
        unsafe munmap(UnsafeMutableRawPointer(mutating: base), byteCount)
    }
}
