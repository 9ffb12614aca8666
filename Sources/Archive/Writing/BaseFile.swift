// A file of a base, written.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

enum BaseFile {
    private static let pieceBytes = 1 << 20

    /// Copies a file, durably; the name in the directory is not synced.
    ///
    /// - Parameter isCancelled: asked between two pieces.
    /// - Returns: the sum of the bytes.
    /// - Throws: `closed` if it was cancelled, `corrupt` if the source is shorter than it was, `full`, `inputOutput`.
    static func copy(
        _ source: String, to target: String, byteCount: Int, isCancelled: () -> Bool
    ) throws(StorageError) -> UInt64 {
        let input = try File(source, flags: O_RDONLY)
        let output = try File(target, flags: O_RDWR | O_CREAT | O_TRUNC)
        let buffer = HeapBuffer(capacity: pieceBytes)
        let sum = RunningSum()
        var offset = 0
        while offset < byteCount {
            if isCancelled() { throw StorageError(.closed, "the base was given up") }
            let wanted = min(byteCount - offset, pieceBytes)
            let count = unsafe try input.read(into: .init(rebasing: buffer.all[..<wanted]), at: offset)
            guard count == wanted else {
                throw StorageError(.corrupt, "the file has become shorter", file: source, offset: offset + count)
            }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<count])
            unsafe sum.add(bytes)
            unsafe try output.write(bytes, at: offset)
            offset += count
        }
        try output.sync()
        return sum.value
    }
}
