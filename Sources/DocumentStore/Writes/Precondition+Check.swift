// Whether a write's precondition holds of the stored document. Codes and texts: semantics page, section 3.

package import DocumentModel

extension Precondition {
    /// Throws unless the condition holds.
    ///
    /// - Parameters:
    ///   - updateMicroseconds: when the stored document last changed; nil if there is none.
    ///   - commitMicroseconds: the time of the commit: no document can have changed later.
    ///   - name: the document's full name, asked for only when the condition fails.
    package func check(
        updateMicroseconds: UInt64?, commitMicroseconds: UInt64, name: () -> String
    ) throws(RequestError) {
        switch self {
        case .exists(true):
            if updateMicroseconds != nil { return }
            throw RequestError(.notFound, "No document to update: \(name())", documentName: name())
        case .exists(false):
            if updateMicroseconds == nil { return }
            throw RequestError(.alreadyExists, "Document already exists: \(name())", documentName: name())
        case .updateTime(let required):
            try Precondition.check(
                required: required, updateMicroseconds: updateMicroseconds, commitMicroseconds: commitMicroseconds,
                name: name)
        }
    }

    private static func check(
        required: TimestampValue, updateMicroseconds: UInt64?, commitMicroseconds: UInt64, name: () -> String
    ) throws(RequestError) {
        guard required.isValid, required.nanoseconds % 1000 == 0 else {
            throw RequestError(
                .invalidArgument, "The update_time of a precondition must be aligned to microseconds.",
                documentName: name())
        }
        let base = required.microseconds
        if base > 0, UInt64(base) > commitMicroseconds {
            throw RequestError(
                .invalidArgument, "The update_time of a precondition cannot be in the future.", documentName: name())
        }
        // 0 stands for a document that does not exist, in the message as in the comparison.
        let stored = updateMicroseconds ?? 0
        if updateMicroseconds == nil || base < 0 || UInt64(base) != stored {
            throw RequestError(
                .failedPrecondition,
                "the stored version (\(stored)) does not match the required base version (\(base))",
                documentName: name())
        }
    }
}
