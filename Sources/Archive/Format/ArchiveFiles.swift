// Files of an archive as a whole: read, summed, and written so that a reader sees all of a file or none.

internal import Basics
internal import CXXHash
internal import FileSystem
internal import Glibc
internal import Storage

enum ArchiveFiles {
    static func sum(_ bytes: [UInt8]) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe XXH3_64bits($0.baseAddress, $0.count) }
    }

    static func sum(_ bytes: RawSpan) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe XXH3_64bits($0.baseAddress, $0.count) }
    }

    /// The bytes of a small file.
    /// - Throws: `corrupt` if it is longer than it may be, `inputOutput`.
    static func read(_ path: String, byteCountMax: Int) throws(StorageError) -> [UInt8] {
        let file = try File(path, flags: O_RDONLY)
        let byteCount = try file.byteCount()
        guard byteCount <= byteCountMax else { throw StorageError(.corrupt, "the file is too long", file: path) }
        let buffer = HeapBuffer(capacity: max(byteCount, 1))
        let count = unsafe try file.read(into: .init(rebasing: buffer.all[..<byteCount]), at: 0)
        return unsafe Array(buffer.all[..<count])
    }

    /// Makes a file durable. It is written under another name and renamed, where the file system can do that.
    ///
    /// - Parameter isRefused: asked last, before the file gets its name.
    /// - Returns: false if the file system has no rename. Then the file was written under its name, and what a process
    ///   leaves that ends meanwhile is a shorter file.
    /// - Throws: `closed` if it was refused, `full`, `inputOutput`. What was there before is
    ///   there still, unless the result would be false.
    static func write(
        _ bytes: RawSpan, to path: String, in directory: String, unless isRefused: () -> Bool = { false }
    ) throws(StorageError) -> Bool {
        let work = path + ".new"
        do throws(StorageError) {
            try write(bytes, to: work)
            if isRefused() { throw StorageError(.closed, "another server writes to the archive", file: path) }
            if try Directory.renameIfPossible(work, to: path) {
                try Directory.sync(directory)
                return true
            }
        } catch {
            try? Directory.removeFile(work)
            throw error
        }
        try Directory.removeFile(work)
        try write(bytes, to: path)
        try Directory.sync(directory)
        return false
    }

    /// Writes a file under its name, durably; its directory is not synced.
    static func write(_ bytes: RawSpan, to path: String) throws(StorageError) {
        let file = try File(path, flags: O_RDWR | O_CREAT | O_TRUNC)
        try unsafe bytes.withUnsafeBytes { bytes throws(StorageError) in unsafe try file.write(bytes, at: 0) }
        try file.sync()
    }
}

/// The XXH3-64 of bytes that come in pieces.
@safe
final class RunningSum {
    private let state: OpaquePointer

    init() {
        guard let state = unsafe XXH3_createState() else { fatalError("out of memory") }
        unsafe self.state = unsafe state
        unsafe XXH3_64bits_reset(state)
    }

    deinit { unsafe XXH3_freeState(state) }

    func add(_ bytes: UnsafeRawBufferPointer) { unsafe XXH3_64bits_update(state, bytes.baseAddress, bytes.count) }

    var value: UInt64 { unsafe XXH3_64bits_digest(state) }
}
