// The changes of a directory's files in their order, for the tests of power cuts.

internal import Basics
internal import Synchronization

/// A change of files that is about to be made, or a sync.
@safe
enum DiskChange {
    /// The result is the descriptor.
    case open(path: String, writes: Bool, creates: Bool, truncates: Bool)
    /// The result is the number of bytes written. The bytes are valid during the call.
    case write(descriptor: Int32, bytes: UnsafeRawBufferPointer, offset: Int)
    case resize(descriptor: Int32, byteCount: Int)
    /// fsync or fdatasync, of a file or a directory.
    case sync(descriptor: Int32)
    case close(descriptor: Int32)
    case makeDirectory(path: String)
    case rename(path: String, newPath: String)
    /// Two files or directories exchange their names.
    case exchange(path: String, otherPath: String)
    /// A file gets another name.
    case link(path: String, newPath: String)
    case removeFile(path: String)
    case removeDirectory(path: String)
}

/// A test that watches the files of a directory. Without a watch a system call costs one test of a pointer more, and
/// an open a load of a counter. Thread-safe.
final class DiskWatch: Sendable {
    /// Makes a change by its last argument, a system call that returns a negative number on failure, and returns what
    /// that returned. It may make it under a lock, or leave it out. Called by several threads.
    typealias Perform = @Sendable (DiskChange, () -> Int) -> Int

    private let directory: String
    let perform: Perform

    private static let all = Monitor<[DiskWatch]>([])
    private static let count = Atomic<Int>(0)

    private init(_ directory: String, _ perform: @escaping Perform) {
        self.directory = directory
        self.perform = perform
    }

    /// From now on `perform` makes all changes in a directory and below, until `end`. Files that are open already are
    /// not watched.
    static func begin(_ directory: String, _ perform: @escaping Perform) -> DiskWatch {
        let watch = DiskWatch(directory, perform)
        all.withLock { $0.append(watch) }
        count.add(1, ordering: .sequentiallyConsistent)
        return watch
    }

    /// Ends the watch for files that are opened from now on.
    func end() {
        Self.count.subtract(1, ordering: .sequentiallyConsistent)
        Self.all.withLock { $0.removeAll { $0 === self } }
    }

    /// The watch of a path; nil outside of such tests.
    static func of(_ path: String) -> DiskWatch? {
        if count.load(ordering: .relaxed) == 0 { return nil }
        return all.withLock { all in
            all.first { path == $0.directory || path.hasPrefix($0.directory + "/") }
        }
    }
}

extension DiskWatch? {
    /// Makes a change by a system call.
    @inline(__always)
    func make(_ change: @autoclosure () -> DiskChange, _ call: () -> Int) -> Int {
        if let self { self.perform(change(), call) } else { call() }
    }
}
