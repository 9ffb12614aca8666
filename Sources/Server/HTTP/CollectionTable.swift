internal import DocumentStore
internal import FirestoreService
internal import Synchronization

/// The figures of collections that /metrics shows. They are read from the catalogue once a minute by the thread of the
/// housekeeping, since an event loop cannot wait for that. Thread-safe.
final class CollectionTable: Sendable {
    /// Groups of collections that are shown: those with the most documents.
    static let groupsMax = 100
    private static let secondsBetweenReadings = 60

    private let state = Mutex<(figures: [CollectionFigures], secondsLeft: Int)>(([], 0))

    /// The figures as of the last reading.
    var figures: [CollectionFigures] { state.withLock { $0.figures } }

    /// Called once a second. A reading that fails leaves the figures as they were.
    func secondPassed(_ stores: [DocumentStore]) {
        let isDue = state.withLock { state in
            state.secondsLeft -= 1
            if state.secondsLeft >= 0 { return false }
            state.secondsLeft = Self.secondsBetweenReadings
            return true
        }
        guard isDue, let figures = try? stores.flatMap({ try $0.collectionFigures(groupsMax: Self.groupsMax) }) else {
            return
        }
        let most = figures.sorted { $0.documents > $1.documents }.prefix(Self.groupsMax)
        state.withLock { $0.figures = Array(most) }
    }

    /// Appends what was read and written.
    func append(_ uses: [CollectionUse], to page: inout MetricsText) {
        func family(_ name: String, _ help: String, _ value: (CollectionUse) -> UInt64) {
            page.family("hearth_collection_\(name)_total", .counter, help)
            for use in uses { page.sample(["database": use.database, "collection": use.collectionID], value(use)) }
        }
        family("reads", "Documents read of the collections with an id, estimated; the 100 with the most use.", \.reads)
        family("writes", "Writes to these collections, estimated.", \.writes)
    }

    func append(to page: inout MetricsText) {
        let figures = figures
        func family(_ name: String, _ help: String, _ value: (CollectionFigures) -> Int) {
            page.family("hearth_collection_\(name)", .gauge, help)
            for figure in figures {
                page.sample(["database": "\(figure.database)", "collection": figure.collectionID], value(figure))
            }
        }
        family("documents", "Documents of the collections with an id; the 100 ids with the most.", \.documents)
        family("document_bytes", "Bytes of these documents in runs, estimated.", \.documentBytes)
        family("index_entries", "Index entries of single fields of these documents in runs, estimated.", \.entries)
        family("index_bytes", "Bytes of these index entries, estimated.", \.entryBytes)
    }
}
