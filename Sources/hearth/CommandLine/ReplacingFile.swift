import FileSystem
import Glibc
import Storage

/// A file that is written from its start on and takes its place when it is complete: until then, and if that never
/// comes, a file that is there stays as it is.
///
///     FILE.PID.new     what is written, locked (flock(2)) by its process
///
/// What is not a regular file, such as a pipe or a device, is written to at once. So is a file in a directory in which
/// no other can be made. That a disk has no room for another one is an error.
final class ReplacingFile {
    /// What a power cut cannot undo once a file has taken its place.
    enum Durability {
        /// The file has its old bytes or the new ones, each whole. For files that are replaced often.
        case bytes
        /// The file has the new bytes.
        case name
    }

    private let path: String
    /// Where the bytes go meanwhile; nil if they go to their place at once, or have come there.
    private var workPath: String?
    private let file: OutputFile

    private static let suffix = ".new"

    /// - Parameter path: a symbolic link stays, and the file that it leads to is replaced.
    init(_ path: String) throws(CommandFailure) {
        self.path = Directory.resolved(path)
        let status = Directory.status(of: self.path)
        let workPath = "\(self.path).\(getpid())\(Self.suffix)"
        if status.identity == nil || status.isRegularFile, let file = try Self.made(workPath) {
            self.file = file
            self.workPath = workPath
            if status.isRegularFile { chmod(workPath, status.mode) }
        } else {
            file = try OutputFile(path, flags: O_TRUNC)
        }
    }

    deinit { if let workPath { unlink(workPath) } }

    func write(_ bytes: [UInt8]) throws(CommandFailure) { try file.write(bytes) }

    /// Puts the file in its place. Comes last.
    func finish(_ durability: Durability = .name) throws(CommandFailure) {
        guard let workPath else { return }
        do throws(StorageError) {
            try File(workPath, flags: O_RDONLY).sync()
            try Directory.rename(workPath, to: path)
            self.workPath = nil
            if durability == .name { try Directory.sync(Directory.parent(of: path)) }
        } catch {
            throw CommandFailure("cannot write \(path): \(error)")
        }
    }

    /// Replaces a file by bytes.
    static func replace(_ path: String, with bytes: [UInt8], _ durability: Durability) throws(CommandFailure) {
        let file = try ReplacingFile(path)
        try file.write(bytes)
        try file.finish(durability)
    }

    /// Removes what processes of this user have left that ended while they replaced a file.
    static func removeAbandoned(of path: String) {
        let path = Directory.resolved(path)
        let folder = Directory.parent(of: path)
        guard let names = try? Directory.names(in: folder), let own = path.split(separator: "/").last else { return }
        for name in names where isWork(name, of: String(own)) { removeIfAbandoned("\(folder)/\(name)") }
    }

    private static func removeIfAbandoned(_ workPath: String) {
        let status = Directory.status(of: workPath, followsLink: false)
        guard status.isRegularFile, status.owner == geteuid() else { return }
        let descriptor = open(workPath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return }
        // A process that writes the file has the lock.
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(workPath) }
        close(descriptor)
    }

    /// Whether a name is one under which a file is written: NAME.PID.new.
    private static func isWork(_ name: String, of own: String) -> Bool {
        guard name.hasPrefix("\(own)."), name.hasSuffix(suffix) else { return false }
        let number = name.dropFirst(own.count + 1).dropLast(suffix.count)
        return !number.isEmpty && number.allSatisfy { ("0"..."9").contains($0) }
    }

    /// A new file that this process has locked; nil where none can be made.
    private static func made(_ workPath: String) throws(CommandFailure) -> OutputFile? {
        // In a container each process may have the number of the one before.
        removeIfAbandoned(workPath)
        guard let file = try OutputFile(newAt: workPath) else { return nil }
        // Another process may have taken it for an abandoned one before it was locked.
        return file.lock() ? file : try made(workPath)
    }
}
