/// Who makes a call.
package enum Principal: Equatable, Sendable {
    /// Nobody in particular: the native protocol carries no credentials, and its listener is trusted.
    case trusted
    /// A caller with a bearer token, not yet checked. Emulator clients show `owner`.
    case bearer(String)
    /// A caller who showed nothing, or nothing that is understood.
    case anonymous

    /// - Parameter authorization: the value of a request's `authorization` field (RFC 6750, section 2.1).
    package init(authorization: String?) {
        let scheme = "bearer "
        if let authorization, authorization.prefix(scheme.count).lowercased() == scheme {
            self = .bearer(String(authorization.dropFirst(scheme.count)))
        } else {
            self = .anonymous
        }
    }
}
