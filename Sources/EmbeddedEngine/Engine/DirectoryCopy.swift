// A copy of a directory that no engine has open: what `hearth restore` begins with.

internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// Copies data directories file by file.
package enum DirectoryCopy {
    /// Bytes that are read and written at once.
    private static let chunkBytes = 1 << 20
    /// Directories with data.
    private static let parts = ["runs", "log"]

    /// Copies a data directory into one that does not exist, durably. The source is locked meanwhile. The copy has no
    /// TIMELINE: it does not continue the history of a source that was served. When this throws, no copy is left.
    ///
    /// - Parameter progress: gets the number of bytes copied so far, on this thread.
    /// - Throws: `unsupportedFormat` if the source is not a data directory of the current format, `locked` if it is in
    ///   use, `inputOutput` if one directory lies in the other or a file cannot be read or written, `full`.
    package static func run(
        from source: String, to target: String, progress: WorkProgress.Handler = { _ in }
    ) throws(StorageError) {
        try Directory.checkApart(source, target, for: "a copy")
        guard Directory.exists(source + "/FORMAT") else {
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: source)
        }
        guard !Directory.exists(target) else {
            throw StorageError(.inputOutput, "the directory exists already", file: target)
        }
        let lock = try DirectoryFormat.lockExisting(source)
        defer { lock?.unlock() }
        try DirectoryFormat.check(source)
        do throws(StorageError) {
            try copy(source, target, progress)
        } catch {
            try? Directory.removeAll(target)
            throw error
        }
    }

    /// Removes what a process that ended has left of a copy.
    /// - Throws: `locked` if a process is writing it; `inputOutput`.
    package static func removeUnfinished(_ target: String) throws(StorageError) {
        guard Directory.exists(target) else { return }
        guard let lock = try DirectoryFormat.lockExisting(target) else { return try Directory.removeAll(target) }
        defer { lock.unlock() }
        try Directory.removeAll(target)
    }

    private static func copy(
        _ source: String, _ target: String, _ progress: WorkProgress.Handler
    ) throws(StorageError) {
        var files: [String] = []
        for part in parts where Directory.exists("\(source)/\(part)") {
            for name in try Directory.names(in: "\(source)/\(part)") { files.append("\(part)/\(name)") }
        }
        files.removeAll { !Directory.status(of: "\(source)/\($0)").isRegularFile }
        let total = files.reduce(0) { $0 + Directory.status(of: "\(source)/\($1)").byteCount }
        var state = WorkProgress("copying", done: 0, total: total, .bytes)
        progress(state)
        let lock = try DirectoryFormat.lock(target)
        defer { lock.unlock() }
        for part in parts where Directory.exists("\(source)/\(part)") { try Directory.create("\(target)/\(part)") }
        for file in files {
            try copyFile("\(source)/\(file)", to: "\(target)/\(file)") { bytes in
                state.done += bytes
                progress(state)
            }
        }
        for part in parts where Directory.exists("\(target)/\(part)") { try Directory.sync("\(target)/\(part)") }
        try CompanionFiles.copy(from: source, to: target)
        // Last: a directory without it is none.
        try copyFile("\(source)/FORMAT", to: "\(target)/FORMAT") { _ in }
        try Directory.sync(target)
    }

    /// Copies a file durably; the directory of the copy is not synced.
    ///
    /// - Parameter keepsTimes: whether the copy gets the times of the source.
    static func copyFile(
        _ source: String, to target: String, keepsTimes: Bool = false, _ copied: (Int) -> Void = { _ in }
    ) throws(StorageError) {
        let input = try File(source, flags: O_RDONLY)
        let output = try File(target, flags: O_RDWR | O_CREAT | O_EXCL)
        let buffer = HeapBuffer(capacity: chunkBytes)
        var offset = 0
        while true {
            let count = unsafe try input.read(into: buffer.all, at: offset)
            if count == 0 { break }
            unsafe try output.write(UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), at: offset)
            offset += count
            copied(count)
        }
        if keepsTimes { try output.setTimes(of: input) }
        try output.sync()
    }
}
