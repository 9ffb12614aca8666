// A file of a base, read and verified.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

enum BasePart {
    private static let pieceBytes = 1 << 20
    private static let pageBytes = 4_096

    /// Reads a file in pieces, which are passed on, and verifies it at the end.
    ///
    /// - Parameters:
    ///   - folder: of the base.
    ///   - remedy: what to do about damage.
    ///   - directly: past the page cache, where the file system can do that: what is in memory says nothing about the
    ///     disk.
    /// - Throws: `corrupt` if it is missing or damaged, `inputOutput`; what `take` throws.
    static func read(
        _ part: ArchiveBase.Part, in folder: String, remedy: String = ArchiveFormat.remedy("this base"),
        directly: Bool = false, _ take: (UnsafeRawBufferPointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        let path = "\(folder)/\(part.path)"
        guard Directory.exists(path) else {
            throw StorageError(.corrupt, "a file of a base is missing", file: path, remedy: remedy)
        }
        let file = directly ? try File.openDirectly(path) : try File(path, flags: O_RDONLY)
        let byteCount = try file.byteCount()
        // Reads past the page cache need a buffer at the beginning of a page.
        let memory = HeapBuffer(capacity: pieceBytes + pageBytes)
        let skipped = unsafe -Int(bitPattern: memory.all.baseAddress) & (pageBytes - 1)
        let buffer = unsafe UnsafeMutableRawBufferPointer(rebasing: memory.all[skipped..<(skipped + pieceBytes)])
        let sum = RunningSum()
        var offset = 0
        while offset < byteCount {
            let count = unsafe try file.readOnce(into: buffer, at: offset)
            if count == 0 { break }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
            unsafe sum.add(bytes)
            offset += count
            unsafe try take(bytes)
        }
        guard byteCount == part.byteCount, offset == part.byteCount, sum.value == part.sum else {
            throw StorageError(.corrupt, "a file of a base is damaged", file: path, remedy: remedy)
        }
    }
}
