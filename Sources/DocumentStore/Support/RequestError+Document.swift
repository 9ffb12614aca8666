// Failures of storage at a document.

internal import Basics
internal import DocumentModel
internal import Storage

extension RequestError {
    /// The same failure, where it was met on the way to a document of this full resource name.
    func at(document name: RawSpan) -> RequestError {
        guard code == .dataLoss else { return self }
        var error = self
        error.documentName = String(repairingUTF8: name)
        error.message = "The stored document \(error.documentName!) is damaged."
        return error
    }

    /// The error of a client for what work threw that uses storage and checks the request.
    init(thrown error: any Error) {
        if let error = error as? StorageError {
            self.init(error)
        } else {
            self = error as? RequestError ?? RequestError(.internal, "The server failed.")
        }
    }

    /// The error of a client when storage failed to read the document at a relative path.
    init(_ error: StorageError, document path: RawSpan) {
        self.init(error)
        if code == .dataLoss { message = "The stored document \(String(repairingUTF8: path)) is damaged." }
    }
}
