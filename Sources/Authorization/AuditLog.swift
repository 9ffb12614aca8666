internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreService

/// Lines about refused calls: who asked for what, and why it was refused. No line has a credential or the contents of a
/// document. Thread-safe.
struct AuditLog: Sendable {
    private let log: Log

    init(_ log: Log) { self.log = log }

    /// A call or request was refused as a whole.
    func refused(_ origin: RequestOrigin, _ what: String, database: DatabaseName?, _ error: RequestError) {
        log(
            .warning, "access_refused",
            [
                "peer": origin.client, "call": what, "database": database.map { "\($0)" } ?? "-",
                "code": "\(error.code)", "message": error.message,
            ])
    }

    /// A request came through a proxy that is not trusted.
    func noteProxy(_ origin: RequestOrigin) {
        log(
            .warning, "proxy_not_trusted",
            [
                "peer": origin.peerAddress,
                "message":
                    "name the proxy with --trusted-proxy, so that logs and limits have the addresses of its clients",
            ])
    }

    /// The rules denied something.
    ///
    /// - Parameter path: of the document or the collection, below `documents`.
    func denied(_ origin: RequestOrigin, _ caller: String, _ what: String, _ path: String, database: DatabaseName) {
        log(
            .warning, "access_denied",
            ["peer": origin.client, "caller": caller, "call": what, "database": "\(database)", "path": path])
    }
}
