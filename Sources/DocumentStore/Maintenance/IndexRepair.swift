// Making damaged index entries again: what `hearth check --repair` and `hearth serve --repair-indexes` run.

internal import EmbeddedEngine
internal import Glibc
package import Storage

/// Repairs what follows from the documents. Documents themselves are never repaired.
package enum IndexRepair {
    /// Verifies the files of index entries of a directory that no process has open, and drops them if one is damaged or
    /// missing. The next opening begins to build all indexes again, and serves queries meanwhile.
    /// - Returns: what is damaged, a sentence for each file; empty if nothing is, and then nothing has changed.
    /// - Throws: `StorageError`.
    package static func dropDamaged(
        _ directory: String, progress: @escaping WorkProgress.Handler = { _ in }
    ) throws -> [String] {
        try EntryRepair.run(directory: directory, progress: progress)
    }

    /// Drops all index entries of a directory that no process has open, builds the indexes again, and closes it.
    /// - Parameter progress: gets the entries and documents that the builds have visited, on this thread.
    /// - Throws: `StorageError`, or ``Failure`` if a document cannot be read.
    package static func run(_ directory: String, progress: WorkProgress.Handler = { _ in }) throws {
        _ = try EntryRepair.run(directory: directory, isForced: true)
        let store = try DocumentStore.open(.forTool(directory))
        defer { store.close() }
        var (total, looks) = (0, 0)
        func report() {
            let left = store.databases.all.reduce(0) { $0 + store.indexWorkLeft(in: $1.name) }
            total = max(total, left)
            progress(WorkProgress("building indexes", done: total - left, total: total, .entries))
        }
        report()
        while store.indexState.hasWork {
            looks += 1
            if looks % looksBetweenReports == 0 { report() }
            if let failure = store.housekeepingFailures.last { throw Failure(description: failure) }
            usleep(2_000)
        }
        if let error = store.close() { throw error }
    }

    /// A tenth of a second.
    private static let looksBetweenReports = 50

    /// Why the indexes cannot be built.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }
}
