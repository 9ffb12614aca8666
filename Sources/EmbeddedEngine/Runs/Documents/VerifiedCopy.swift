internal import Basics
internal import CLinux
internal import FileSystem
internal import Glibc
internal import Storage

/// A copy of an LMDB file in memory, whose pages have been compared with their sums as they were copied. liblmdb can
/// read it whatever happens to the file and to its disk.
///
/// Memory: the file, 64 MiB unless the engine's options are others.
final class VerifiedCopy {
    /// A path of the copy, for this process while the copy lives.
    let path: String
    private let descriptor: Int32

    private static let chunkBytes = 1 << 20

    /// Reads the file, without a map.
    /// - Throws: `corrupt` if a page is damaged or missing, `inputOutput`.
    init(of file: RunFile, _ documents: DocumentPages) throws(StorageError) {
        descriptor = unsafe memfd_create("hearth-check", UInt32(HEARTH_MEMFD_CLOEXEC))
        guard descriptor >= 0 else { throw .system(errno, "cannot copy to memory", file: file.path) }
        path = "/proc/self/fd/\(descriptor)"
        guard unsafe access(path, R_OK) == 0 else {
            throw .system(errno, "cannot read documents from memory: is /proc mounted?", file: path)
        }
        let source = try File(file.path, flags: O_RDONLY)
        let pageBytes = 1 << documents.map.pageShift
        let buffer = HeapBuffer(capacity: max(Self.chunkBytes, pageBytes))
        var page = 0
        while page < documents.map.pageCount {
            let count = min(buffer.capacity / pageBytes, documents.map.pageCount - page)
            let chunk = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<(count * pageBytes)])
            let read = unsafe try source.read(into: chunk, at: page * pageBytes)
            for number in 0..<count {
                let offset = (page + number) * pageBytes
                let start = unsafe buffer.start + number * pageBytes
                let isWhole = (number + 1) * pageBytes <= read
                guard isWhole,
                    unsafe RunFormat.sum(start, pageBytes, identity: file.footer.identity, offset: offset)
                        == documents.sum(page + number)
                else { throw StorageError(.corrupt, "a page of documents is damaged", file: file.path, offset: offset) }
            }
            unsafe try write(UnsafeRawBufferPointer(chunk), at: page * pageBytes, for: file.path)
            page += count
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, for file: String) throws(StorageError) {
        var written = 0
        while written < bytes.count {
            let result = unsafe pwrite(
                descriptor, bytes.baseAddress! + written, bytes.count - written, off_t(offset + written))
            if result < 0 {
                if errno == EINTR { continue }
                throw .system(errno, "cannot copy to memory", file: file)
            }
            written += result
        }
    }
}
