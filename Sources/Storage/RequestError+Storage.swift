// The one table from failures of the storage engine to errors of clients.

package import Basics

extension RequestError {
    /// The error of a client when storage failed. Details are for the operator: they name files.
    package init(_ error: StorageError) {
        switch error.code {
        case .full:
            self.init(.resourceExhausted, "The disk is full: only deletes are accepted until there is free space.")
        case .valueTooLong:
            self.init(.invalidArgument, "The commit is too large: \(error.message)")
        case .versionTooOld: self = .snapshotTooOld
        case .tooManyReaders: self.init(.resourceExhausted, "Too many concurrent reads.")
        case .closed: self = .shuttingDown
        case .failed:
            self.init(.unavailable, "The storage failed and the outcome is unknown: \(error.message)")
        case .refused: self.init(.unavailable, "The commit was not applied: \(error.message)")
        case .pending: self = .pending
        case .corrupt: self.init(.dataLoss, "Stored data is damaged.")
        default: self.init(.internal, "The storage failed.")
        }
        if error.code == .corrupt || code == .internal { details = error.description }
    }

    /// FAILED_PRECONDITION: the requested state is older than the retention.
    package static let snapshotTooOld = RequestError(
        .failedPrecondition, "The requested snapshot version is too old.")

    /// UNAVAILABLE: a read has to wait for a disk. Who can repeat the read does so; clients do not see this.
    package static let pending: RequestError = {
        var error = RequestError(.unavailable, "The read has to wait for a disk.")
        error.isPending = true
        return error
    }()

    /// UNAVAILABLE: the server is shutting down.
    package static let shuttingDown = RequestError(.unavailable, "The server is shutting down.")
}
