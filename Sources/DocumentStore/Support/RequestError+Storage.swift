// The one table from failures of the storage engine to errors of clients.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

extension RequestError {
    /// The error of a client when storage failed.
    init(_ error: StorageError) {
        switch error.code {
        case .full:
            self.init(.resourceExhausted, "The disk is full: only deletes are accepted until there is free space.")
        case .valueTooLong:
            self.init(.resourceExhausted, "The commit is too large: \(error.message)")
        case .versionTooOld: self = .snapshotTooOld
        case .tooManyReaders: self.init(.resourceExhausted, "Too many concurrent reads.")
        case .closed: self = .shuttingDown
        case .failed:
            self.init(.unavailable, "The storage failed and the outcome is unknown: \(error.message)")
        case .corrupt: self.init(.dataLoss, "Stored data is damaged.")
        default: self.init(.internal, "The storage failed.")
        }
        // Names of files are for the operator.
        if error.code == .corrupt || code == .internal { details = error.description }
    }

    /// The state asked for lies before the retention.
    static let snapshotTooOld = RequestError(.failedPrecondition, "The requested snapshot version is too old.")

    static let shuttingDown = RequestError(.unavailable, "The server is shutting down.")

    /// The same failure, where it was met on the way to a document of this full resource name.
    func at(document name: RawSpan) -> RequestError {
        guard code == .dataLoss else { return self }
        var error = self
        error.documentName = String(repairingUTF8: name)
        error.message = "The stored document \(error.documentName!) is damaged."
        return error
    }

    /// The error of a client when storage failed to read the document at a relative path.
    init(_ error: StorageError, document path: RawSpan) {
        self.init(error)
        if code == .dataLoss { message = "The stored document \(String(repairingUTF8: path)) is damaged." }
    }
}
