// Whether a write's precondition holds of the stored document. Codes and texts: semantics page, section 3.

import Basics
import DocumentModel

/// Why a precondition does not hold.
enum PreconditionFailure: Equatable {
    case absent
    case present
    /// The update time cannot be that of any document; says why.
    case updateTimeInvalid(String)
    case updateTimeInFuture
    /// Microseconds; 0 as the stored version stands for a document that does not exist.
    case updateTimeDiffers(stored: UInt64, required: Int64)

    /// The failure as the client gets it. Clients match the codes and parts of the texts.
    func error(documentName name: String) -> RequestError {
        switch self {
        case .absent: RequestError(.notFound, "No document to update: \(name)", documentName: name)
        case .present: RequestError(.alreadyExists, "Document already exists: \(name)", documentName: name)
        case .updateTimeInvalid(let problem):
            RequestError(.invalidArgument, "Invalid update_time: \(problem)", documentName: name)
        case .updateTimeInFuture:
            RequestError(
                .invalidArgument, "The update_time of a precondition cannot be in the future.", documentName: name)
        case .updateTimeDiffers(let stored, let required):
            RequestError(
                .failedPrecondition,
                "the stored version (\(stored)) does not match the required base version (\(required))",
                documentName: name)
        }
    }
}

extension Precondition {
    /// What is wrong; nil if the condition holds.
    ///
    /// - Parameters:
    ///   - updateMicroseconds: when the stored document last changed; nil if there is none.
    ///   - commitMicroseconds: the time of the commit: no document can have changed later.
    func failure(updateMicroseconds: UInt64?, commitMicroseconds: UInt64) -> PreconditionFailure? {
        switch self {
        case .exists(true): return updateMicroseconds == nil ? .absent : nil
        case .exists(false): return updateMicroseconds == nil ? nil : .present
        case .updateTime(let time):
            // Clients that read a missing document before may ask for the epoch: the update time that it had.
            if time == TimestampValue(microseconds: 0) {
                return updateMicroseconds.map { .updateTimeDiffers(stored: $0, required: 0) }
            }
            if let problem = time.problemAsVersion { return .updateTimeInvalid(problem) }
            let required = time.microseconds
            if UInt64(required) > commitMicroseconds { return .updateTimeInFuture }
            if let updateMicroseconds, UInt64(required) == updateMicroseconds { return nil }
            return .updateTimeDiffers(stored: updateMicroseconds ?? 0, required: required)
        }
    }
}
