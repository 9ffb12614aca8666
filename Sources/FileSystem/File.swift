// Files by descriptor: whole reads and writes at offsets, syncs, and typed errors that name the path.

internal import Basics
internal import CLinux
internal import Glibc
package import Storage

/// An open file; closed when the last reference goes.
package final class File: Sendable {
    package let path: String
    private let descriptor: Int32
    private let watch: DiskWatch?

    /// Opens `path` (open(2)); `O_CLOEXEC` is added. A file that it creates is for the owner alone.
    package init(_ path: String, flags: Int32) throws(StorageError) {
        self.path = path
        watch = DiskWatch.of(path)
        let change = DiskChange.open(
            path: path, writes: flags & O_ACCMODE != O_RDONLY, creates: flags & O_CREAT != 0,
            truncates: flags & O_TRUNC != 0)
        descriptor = Int32(watch.make(change) { unsafe Int(open(path, flags | O_CLOEXEC, 0o600)) })
        if descriptor < 0 { throw .system(errno, "cannot open", file: path) }
    }

    deinit {
        let descriptor = descriptor
        _ = watch.make(.close(descriptor: descriptor)) { Int(close(descriptor)) }
    }

    package func byteCount() throws(StorageError) -> Int {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .system(errno, "cannot look at", file: path) }
        return Int(status.st_size)
    }

    /// Refuses what is not a regular file of the caller or of root that its owner alone may read and write (0600).
    package func checkPrivate() throws(StorageError) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .system(errno, "cannot look at", file: path) }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw StorageError(
                .inputOutput,
                "\(path) has secrets and belongs to another user: run this as the user "
                    + Directory.nameOfUser(status.st_uid))
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0 else {
            throw StorageError(
                .inputOutput, "\(path) has secrets, so its owner alone may have access: chmod 600 \(path)")
        }
    }

    /// Writes all of `bytes` at `offset` (pwrite(2)).
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StorageError) {
        var written = 0
        while written < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
            let start = offset + written
            let result = unsafe watch.make(.write(descriptor: descriptor, bytes: rest, offset: start)) {
                unsafe pwrite(descriptor, rest.baseAddress, rest.count, off_t(start))
            }
            if result < 0 {
                if errno == EINTR { continue }
                throw .system(errno, "cannot write", file: path)
            }
            written += result
        }
    }

    /// Notes for the tests of power cuts what a library has written to the file.
    /// - Parameter contents: all bytes of the file.
    /// - Throws: `full` or `inputOutput` if a test makes the write fail.
    package func noteWritten(_ contents: UnsafeRawBufferPointer) throws(StorageError) {
        let change = unsafe DiskChange.write(descriptor: descriptor, bytes: contents, offset: 0)
        guard watch.make(change, { contents.count }) >= 0 else { throw .system(errno, "cannot write", file: path) }
    }

    /// Writes a text at the start of the file.
    package func write(string: String) throws(StorageError) {
        let bytes = Array(string.utf8)
        let buffer = HeapBuffer(capacity: bytes.count)
        unsafe buffer.all.copyBytes(from: bytes)
        unsafe try write(UnsafeRawBufferPointer(rebasing: buffer.all[..<bytes.count]), at: 0)
    }

    /// Fills `buffer` from `offset` on (pread(2)); answers how many bytes there were before the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
        var filled = 0
        while filled < buffer.count {
            let result = unsafe pread(
                descriptor, buffer.baseAddress! + filled, buffer.count - filled, off_t(offset + filled))
            if result < 0 {
                if errno == EINTR { continue }
                throw .system(errno, "cannot read", file: path)
            }
            if result == 0 { break }
            filled += result
        }
        return filled
    }

    /// Opens a file to be read from the disk, past the page cache, where the file system can do that (O_DIRECT).
    /// Buffers and offsets of reads must be aligned to pages.
    package static func openDirectly(_ path: String) throws(StorageError) -> File {
        if let file = try? File(path, flags: O_RDONLY | Int32(HEARTH_O_DIRECT)) { return file }
        return try File(path, flags: O_RDONLY)
    }

    /// Fills as much of `buffer` as one read does (pread(2)); 0 at the end of the file.
    package func readOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
        while true {
            let result = unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if result >= 0 { return result }
            if errno != EINTR { throw .system(errno, "cannot read", file: path) }
        }
    }

    /// Maps the file's first `byteCount` bytes for reading (mmap(2)), also those it does not have yet. The caller
    /// unmaps them.
    package func map(byteCount: Int) throws(StorageError) -> UnsafeMutableRawPointer {
        let memory = unsafe mmap(nil, byteCount, PROT_READ, MAP_SHARED, descriptor, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            throw .system(errno, "cannot map \(byteCount) bytes", file: path)
        }
        // Only faster: pages are read in no order.
        _ = unsafe madvise(memory, byteCount, MADV_RANDOM)
        return unsafe memory
    }

    /// Makes the file's bytes durable, and its size (fdatasync(2)).
    package func syncData() throws(StorageError) {
        let result = watch.make(.sync(descriptor: descriptor)) { Int(fdatasync(descriptor)) }
        guard result == 0 else { throw .system(errno, "cannot sync", file: path) }
    }

    /// Makes everything about the file or directory durable (fsync(2)).
    package func sync() throws(StorageError) {
        let result = watch.make(.sync(descriptor: descriptor)) { Int(fsync(descriptor)) }
        guard result == 0 else { throw .system(errno, "cannot sync", file: path) }
    }

    /// Gives the file the times of another one (futimens(2)).
    package func setTimes(of other: File) throws(StorageError) {
        var status = stat()
        guard unsafe fstat(other.descriptor, &status) == 0 else {
            throw .system(errno, "cannot look at", file: other.path)
        }
        let times = [status.st_atim, status.st_mtim]
        guard unsafe futimens(descriptor, times) == 0 else { throw .system(errno, "cannot set the times", file: path) }
    }

    /// Whether a path leads to this file: it may have been removed or replaced since it was opened.
    package func isNamed(_ path: String) throws(StorageError) -> Bool {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .system(errno, "cannot look at", file: path) }
        let identity = Directory.Identity(device: UInt64(status.st_dev), number: UInt64(status.st_ino))
        return Directory.status(of: path).identity == identity
    }

    /// Gives the lock back (flock(2)).
    package func unlock() {
        flock(descriptor, LOCK_UN)
    }

    /// Takes the file's exclusive lock (flock(2)) without waiting; false when another open file holds it.
    package func tryLock() throws(StorageError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        if errno == EWOULDBLOCK { return false }
        throw .system(errno, "cannot lock", file: path)
    }
}

// MARK: - Space

extension File {
    /// Allocates the blocks of a half-open range, which may lie beyond the end of the file: the file's size stays
    /// (fallocate(2)).
    /// - Returns: false if the file system cannot do that; nothing is allocated then.
    /// - Throws: `full`, `inputOutput`.
    package func allocate(from start: Int, to end: Int) throws(StorageError) -> Bool {
        while fallocate(descriptor, Int32(HEARTH_FALLOCATE_KEEP_SIZE), off_t(start), off_t(end - start)) != 0 {
            switch errno {
            case EINTR: continue
            case EOPNOTSUPP, ENOSYS: return false
            default: throw .system(errno, "cannot allocate space", file: path)
            }
        }
        return true
    }

    /// Gives back the blocks beyond the end of the file.
    ///
    /// - Returns: false if there are none.
    package func releaseBeyondEnd() throws(StorageError) -> Bool {
        let allocated = try allocatedBytes()
        try resize(to: try byteCount())
        return try allocatedBytes() < allocated
    }

    /// Moves the end of the file (ftruncate(2)).
    package func resize(to bytes: Int) throws(StorageError) {
        let change = DiskChange.resize(descriptor: descriptor, byteCount: bytes)
        guard watch.make(change, { Int(ftruncate(descriptor, off_t(bytes))) }) == 0 else {
            throw .system(errno, "cannot set the size", file: path)
        }
    }

    /// Bytes of the blocks that the file has, also beyond its end.
    package func allocatedBytes() throws(StorageError) -> Int {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .system(errno, "cannot look at", file: path) }
        return Int(status.st_blocks) * 512
    }

    /// Bytes that the file system has left for users other than root.
    package func freeBytes() throws(StorageError) -> Int {
        var status = statvfs()
        guard unsafe fstatvfs(descriptor, &status) == 0 else {
            throw .system(errno, "cannot look at the file system", file: path)
        }
        return Int(clamping: status.f_bavail).multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
            .partialValue
    }

    /// Looks whether the file system has room for the blocks that the file lacks. A write or an allocation that fails
    /// half-way takes the last of a disk that others use too; this asks first.
    /// - Throws: `full`, `inputOutput`.
    package func checkFreeBytes(for bytes: Int) throws(StorageError) {
        guard try bytes - allocatedBytes() <= freeBytes() else {
            throw .system(ENOSPC, "cannot allocate space", file: path)
        }
    }

    /// - Throws: `full` if the process may not have files of this size (RLIMIT_FSIZE).
    package func checkSizeLimit(_ bytes: Int) throws(StorageError) {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { return }
        if UInt64(limit.rlim_cur) < UInt64(bytes) {
            throw StorageError(
                .full, "the process may write files of at most \(limit.rlim_cur) bytes (RLIMIT_FSIZE)", file: path)
        }
    }
}
