// The failure of one request: what every layer of the server answers with when it cannot do what was asked.

/// Why a request failed: a status code, a message for people, and where the trouble lies when that is known.
///
/// Clients match the code and sometimes a part of the message, so messages quoted in the semantics page are kept to
/// the letter. The code decides whether a retry can help.
package struct RequestError: Error, Sendable, Equatable {
    package var code: StatusCode
    package var message: String
    /// The full resource name of the document concerned, if one is.
    package var documentName: String?
    /// The path of the field concerned, in the quoted form of ``FieldPath``, if one is.
    package var fieldPath: String?

    package init(_ code: StatusCode, _ message: String, documentName: String? = nil, fieldPath: String? = nil) {
        self.code = code
        self.message = message
        self.documentName = documentName
        self.fieldPath = fieldPath
    }

    /// The request breaks a rule or a limit, whatever the state of the database.
    package static func invalidArgument(_ message: String) -> RequestError {
        RequestError(.invalidArgument, message)
    }

    /// A malformed value or message, as the client is told of it.
    package init(_ invalid: InvalidDocument, documentName: String? = nil) {
        self.init(
            .invalidArgument, invalid.message, documentName: documentName,
            fieldPath: invalid.fieldPath.isEmpty ? nil : invalid.fieldPath)
    }
}

extension RequestError: CustomStringConvertible {
    package var description: String {
        var text = "\(code): \(message)"
        if let documentName { text += " (document \(documentName))" }
        return text
    }
}
