internal import Basics
internal import Storage

/// The records of a restore, read and verified on a thread while those before are replayed. Thread-safe.
final class ArchivedRecords: Sendable {
    private let route: ArchiveCatalogue.Route
    private let archive: String
    private let version: CommitVersion
    private let result: Monitor<(last: CommitVersion, count: Int)>

    /// Files that are read ahead. One has 8 MiB, or a single record that is longer.
    private static let filesAheadMax = 2

    private struct State {
        /// Files that were read and not taken, in order; nil after the last.
        var ready: [Result<RecordFile, StorageError>?] = []
        /// No file will be taken any more.
        var isEnded = false
    }

    /// - Parameter version: later records are left out.
    init(_ route: ArchiveCatalogue.Route, in archive: String, upTo version: CommitVersion) {
        self.route = route
        self.archive = archive
        self.version = version
        result = Monitor((route.base.version, 0))
    }

    /// The version of the last record that was read, or of the base, and the number of records.
    var outcome: (last: CommitVersion, count: Int) { result.withLock { $0 } }

    /// Calls `body` with each record after the base, on this thread.
    ///
    /// - Parameter note: gets the bytes of each file whose records have been visited.
    /// - Throws: `corrupt` if a file is missing or damaged, `inputOutput`; what `body` throws.
    func read(_ note: (Int) -> Void, _ body: (CommitVersion, RawSpan) throws -> Void) throws {
        let state = Monitor(State())
        let thread = try SystemThread.start("archive read") { [self] in readFiles(state) }
        defer {
            state.update { $0.isEnded = true }
            thread.join()
        }
        while let file = try next(state) {
            var (last, count) = outcome
            var failure: (any Error)?
            try file.visit { version, record in
                guard version > last, version <= self.version else { return true }
                do {
                    try body(version, record)
                } catch {
                    failure = error
                    return false
                }
                last = version
                count += 1
                return true
            }
            if let failure { throw failure }
            result.withLock { $0 = (last, count) }
            note(file.header.payloadBytes)
        }
    }

    /// Waits for the next file; nil after the last.
    private func next(_ state: Monitor<State>) throws(StorageError) -> RecordFile? {
        let next = state.wait { state -> Result<RecordFile, StorageError>?? in
            state.ready.isEmpty ? nil : .some(state.ready.removeFirst())
        }
        state.wake()
        return try next?.get()
    }

    /// Reads all files: the body of the thread.
    private func readFiles(_ state: Monitor<State>) {
        for header in route.files {
            let file = Result { () throws(StorageError) in try RecordFile(header, in: archive) }
            let isEnded = state.wait { state -> Bool? in
                if state.isEnded { return true }
                if state.ready.count >= Self.filesAheadMax { return nil }
                state.ready.append(file)
                return false
            }
            state.wake()
            if isEnded { return }
        }
        state.update { $0.ready.append(nil) }
    }
}
