import FileSystem
import Glibc

/// A file that is written from its start on and takes its place when it is complete: until then, and if that never
/// comes, a file that is there stays as it is.
///
/// What is not a regular file, such as a pipe or a device, is written to at once. So is a file in a directory in which
/// no other can be made.
final class ReplacingFile {
    private let path: String
    /// Where the bytes go meanwhile; nil if they go to their place at once, or have come there.
    private var workPath: String?
    private let file: OutputFile

    /// - Parameter path: a symbolic link stays, and the file that it leads to is replaced.
    init(_ path: String) throws(CommandFailure) {
        self.path = Directory.resolved(path)
        let status = Directory.status(of: self.path)
        let workPath = "\(self.path).\(getpid()).new"
        if status.identity == nil || status.isRegularFile, let file = try? OutputFile(workPath, flags: O_EXCL) {
            self.file = file
            self.workPath = workPath
            if status.isRegularFile { chmod(workPath, status.mode) }
        } else {
            file = try OutputFile(path, flags: O_TRUNC)
        }
    }

    deinit { if let workPath { unlink(workPath) } }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try file.write(bytes) }

    /// Puts the file in its place, durably. Comes last.
    func finish() throws(CommandFailure) {
        guard let workPath else { return }
        try file.sync()
        try OutputFile.rename(workPath, to: path)
        self.workPath = nil
    }
}
