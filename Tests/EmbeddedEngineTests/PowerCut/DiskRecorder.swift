// Recording what the engine does to the files of a directory.

import Basics
import EngineTestSupport
import Glibc

@testable import FileSystem

/// Watches a directory and records each change, in order. Syncs are recorded and left out, which saves their time.
final class DiskRecorder: Sendable {
    private let directory: String
    private let events: Monitor<[DiskEvent]>
    private let watch: Monitor<DiskWatch?> = Monitor(nil)

    /// - Parameter failure: called before each change; the change fails with the `errno` that it returns, unless it is
    ///   0.
    init(_ directory: String, failure: @escaping @Sendable (DiskChange) -> Int32 = { _ in 0 }) {
        self.directory = directory
        let events = Monitor<[DiskEvent]>([])
        self.events = events
        let began = DiskWatch.begin(directory) { change, call in
            let status = failure(change)
            if status != 0 {
                errno = status
                return -1
            }
            // Under the lock, so that changes are recorded in the order in which they are made.
            return events.withLock { events in
                if case .sync(let descriptor) = change {
                    events.append(.sync(descriptor: descriptor))
                    return 0
                }
                let result = call()
                if result >= 0 { events.append(Self.event(change, result, in: directory)) }
                return result
            }
        }
        watch.withLock { $0 = began }
    }

    /// Events so far.
    var count: Int { events.withLock { $0.count } }

    func note(_ event: DiskEvent) { events.withLock { $0.append(event) } }

    /// Ends the recording. Nothing may use the directory any more.
    func end() -> [DiskEvent] {
        watch.withLock { watch in
            watch?.end()
            watch = nil
        }
        return events.withLock { $0 }
    }

    private static func event(_ change: DiskChange, _ result: Int, in directory: String) -> DiskEvent {
        func relative(_ path: String) -> String { String(path.dropFirst(directory.count)) }
        switch change {
        case .open(let path, _, let creates, let truncates):
            return .open(descriptor: Int32(result), path: relative(path), creates: creates, truncates: truncates)
        case .write(let descriptor, let bytes, let offset):
            return .write(descriptor: descriptor, bytes: Bytes(bytes.prefix(result)), offset: offset)
        case .resize(let descriptor, let byteCount): return .resize(descriptor: descriptor, byteCount: byteCount)
        case .sync(let descriptor): return .sync(descriptor: descriptor)
        case .close(let descriptor): return .close(descriptor: descriptor)
        case .makeDirectory(let path): return .makeDirectory(path: relative(path))
        case .rename(let path, let newPath): return .rename(path: relative(path), newPath: relative(newPath))
        case .exchange: preconditionFailure("the engine exchanges no names")
        case .link(let path, let newPath): return .link(path: relative(path), newPath: relative(newPath))
        case .removeFile(let path): return .removeFile(path: relative(path))
        case .removeDirectory(let path): return .removeDirectory(path: relative(path))
        }
    }
}
