// Field paths on their way from the API to the wire.

import DocumentCoding
import DocumentModel

extension DocumentCoding.FieldPath {
    /// A path given as dotted text; breaking its rules is a programming error.
    static func ofDotted(_ text: String) -> DocumentCoding.FieldPath {
        do {
            return try DocumentCoding.FieldPath(dotted: text)
        } catch {
            programmingError(error.description)
        }
    }

    /// The path for messages to the server.
    func model() throws(RuleViolation) -> DocumentModel.FieldPath {
        if isDocumentID { return .documentName }
        do {
            return try DocumentModel.FieldPath(segments: segments)
        } catch {
            throw RuleViolation(error.message)
        }
    }
}
