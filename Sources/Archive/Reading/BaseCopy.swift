internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// Copies the files of a base to a directory, several at the same time: while one is synced, others are read.
struct BaseCopy {
    private let base: ArchiveBase
    private let folder: String
    private let remedy: String
    private let target: String

    private static let threadsMax = 4

    private struct State {
        /// The next part.
        var next = 0
        var running = 0
        /// Bytes that were copied and not reported.
        var bytes = 0
        /// What ends the copy; of several errors the first.
        var failure: StorageError?
    }

    /// - Parameters:
    ///   - folder: of the base.
    ///   - remedy: what to do about damage.
    init(
        _ base: ArchiveBase, from folder: String, to target: String,
        remedy: String = ArchiveFormat.remedy("this base")
    ) {
        self.base = base
        self.folder = folder
        self.remedy = remedy
        self.target = target
    }

    /// Copies and verifies all files, durably.
    /// - Parameter note: gets the bytes that were copied since the last call, on this thread.
    /// - Throws: `corrupt` if a file is missing or damaged, `full`, `inputOutput`.
    func run(_ note: (Int) -> Void) throws(StorageError) {
        for folder in Set(base.parts.map { Directory.parent(of: "\(target)/\($0.path)") }).sorted() {
            try Directory.create(folder)
        }
        let state = Monitor(State())
        let count = min(Self.threadsMax, base.parts.count)
        var threads: [SystemThread] = []
        defer { for thread in threads { thread.join() } }
        for _ in 0..<count {
            state.withLock { $0.running += 1 }
            do throws(StorageError) {
                threads.append(try SystemThread.start("restore") { copyParts(state) })
            } catch {
                state.update { state in
                    state.running -= 1
                    state.failure = state.failure ?? error
                }
            }
        }
        while true {
            let (bytes, isDone) = state.wait { state -> (Int, Bool)? in
                guard state.bytes > 0 || state.running == 0 else { return nil }
                defer { state.bytes = 0 }
                return (state.bytes, state.running == 0)
            }
            if bytes > 0 { note(bytes) }
            if isDone { break }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        if Directory.exists("\(target)/rules") { try Directory.sync("\(target)/rules") }
    }

    /// Copies parts until there are none: the body of a thread.
    private func copyParts(_ state: Monitor<State>) {
        while let part = next(state) {
            do throws(StorageError) {
                try copy(part) { count in
                    let isFailed = state.update { state in
                        state.bytes += count
                        return state.failure != nil
                    }
                    return !isFailed
                }
            } catch {
                state.update { $0.failure = $0.failure ?? error }
            }
        }
        state.update { $0.running -= 1 }
    }

    private func next(_ state: Monitor<State>) -> ArchiveBase.Part? {
        state.withLock { state in
            guard state.failure == nil, state.next < base.parts.count else { return nil }
            defer { state.next += 1 }
            return base.parts[state.next]
        }
    }

    /// - Parameter note: gets the bytes of each piece; returns whether to continue.
    private func copy(_ part: ArchiveBase.Part, _ note: (Int) -> Bool) throws(StorageError) {
        let output = try File("\(target)/\(part.path)", flags: O_RDWR | O_CREAT | O_EXCL)
        var offset = 0
        unsafe try BasePart.read(part, in: folder, remedy: remedy) { bytes throws(StorageError) in
            unsafe try output.write(bytes, at: offset)
            offset += bytes.count
            guard note(bytes.count) else { throw StorageError(.closed, "another file could not be restored") }
        }
        try output.sync()
    }
}
