import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine

/// What has changed between two versions in the results of a query with a limit. Confined to the thread of its hub.
///
/// All targets of the query whose clients have the older results share it. Each session that needs it continues it
/// until it is finished.
final class WindowComparison {
    /// A document to be sent.
    struct Difference {
        let document: ChangedDocument
        /// Whether it is one of the newer results. If not, it was one of the older.
        let isResult: Bool
    }

    private enum Phase {
        case newer
        case older
        case finished
    }

    let base: UInt64
    let version: UInt64
    /// The newer results.
    private(set) var window = ResultRange()
    /// Valid when the comparison is finished.
    private(set) var differences: [Difference] = []

    private unowned let query: TargetQuery
    private var phase = Phase.newer
    private var run: QueryExecution?
    /// The newer results, in order, and whether each has changed since the base.
    private var newer: [(path: [UInt8], hasChanged: Bool)] = []
    private var older: [[UInt8]] = []

    init(_ query: TargetQuery, from base: UInt64, to version: UInt64) {
        self.query = query
        self.base = base
        self.version = version
    }

    var isFinished: Bool { phase == .finished }

    /// Reads on until a step's budget is spent or everything is read.
    ///
    /// - Throws: `pending`, after which it is called again; `FAILED_PRECONDITION` if a version is not readable any
    ///   more, and what storage throws.
    func step(_ reader: DatabaseReader) throws(RequestError) {
        switch phase {
        case .newer:
            let isRead = try reader.next(&run, of: query, at: version) { row in
                window.append(query.sortKey(path: row.path, fields: row.fields))
                newer.append(([UInt8](copying: row.path), row.updateMicroseconds > base))
                return .more
            }
            if isRead { phase = .older }
        case .older:
            let isRead = try reader.next(&run, of: query, at: base) { row in
                older.append([UInt8](copying: row.path))
                return .more
            }
            if isRead { finish() }
        case .finished: break
        }
    }

    private func finish() {
        let before = Set(older)
        let now = Set(newer.map(\.path))
        for (path, hasChanged) in newer where hasChanged || !before.contains(path) {
            differences.append(Difference(document: ChangedDocument(path: path), isResult: true))
        }
        for path in older where !now.contains(path) {
            differences.append(Difference(document: ChangedDocument(path: path), isResult: false))
        }
        newer = []
        older = []
        phase = .finished
    }
}
