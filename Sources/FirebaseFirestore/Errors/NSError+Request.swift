// The one place where failures of requests become the errors that users see.

import Basics
import DocumentModel
import Foundation

extension RequestError {
    /// The error as the SDK delivers it: domain `FirestoreErrorDomain`, gRPC's code, the text as localised description
    /// and failure reason.
    var asNSError: NSError { NSError.firestore(code, message) }
}

extension NSError {
    static func firestore(_ code: StatusCode, _ message: String) -> NSError {
        NSError(
            domain: FirestoreErrorDomain, code: Int(code.rawValue),
            // On Linux an error is printed with its failure reason, and as "(null)" without one.
            userInfo: [NSLocalizedDescriptionKey: message, NSLocalizedFailureReasonErrorKey: message])
    }

    /// What an async form throws when its task is cancelled.
    static var taskWasCancelled: NSError { .firestore(.cancelled, "The task was cancelled.") }

    /// The status code of an error of this library, or `nil` for other errors.
    var firestoreStatus: StatusCode? {
        domain == FirestoreErrorDomain ? UInt8(exactly: code).flatMap(StatusCode.init(rawValue:)) : nil
    }
}
