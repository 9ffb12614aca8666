internal import Storage

/// Counts what a restore has done, and reports it.
final class RestoreReport: @unchecked Sendable {  // Used by the thread of the restore alone.
    private let report: WorkProgress.Handler
    private var progress: WorkProgress

    init(_ route: ArchiveCatalogue.Route, _ report: @escaping WorkProgress.Handler) {
        let bytes = route.base.byteCount + route.files.reduce(0) { $0 + $1.payloadBytes }
        progress = WorkProgress("restoring", done: 0, total: bytes, .bytes)
        self.report = report
        report(progress)
    }

    var byteCount: Int { progress.done }

    func note(_ bytes: Int) {
        progress.done += bytes
        report(progress)
    }
}
