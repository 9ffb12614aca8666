/// Why a request failed: a status code, a message for people, and the document and field concerned where they are
/// known.
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
    /// Details for the server's log only: files and bytes. Clients do not get them.
    package var details: String?
    /// Nothing failed: the request has to be repeated when storage is ready.
    package var isPending = false
    /// Another store has the database of the request, or will have. Who knows the stores of databases finds out which.
    package var isDatabaseElsewhere = false

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
}

extension RequestError: CustomStringConvertible {
    package var description: String {
        var text = "\(code): \(message)"
        if let documentName { text += " (document \(documentName))" }
        return text
    }
}
