/// Who makes a call, as every call carries it: one reference at most. Thread-safe.
package enum Caller: Sendable {
    /// No credential.
    case anonymous
    /// A user of an application, checked by the security rules.
    case user(User)
    /// A server, by an API key, a service account or a client certificate.
    case service(ServicePrincipal)
    /// The process itself, the administration socket, everyone on an open server, `owner` in the emulator's mode.
    case admin

    /// A text whose bytes are equal for equal callers alone: a user of one issuer, a principal.
    package var identity: String {
        switch self {
        case .anonymous: "anonymous"
        // An issuer is one of the configuration, or is not verified at all: in the emulator's mode.
        case .user(let user):
            if case .string(let issuer)? = user.claims["iss"] {
                "user \(issuer)\0\(user.uid)"
            } else {
                "user \0\(user.uid)"
            }
        case .service(let principal): "service \(principal.name)"
        case .admin: "admin"
        }
    }

    /// The user's identifier, or the principal's name; for logs.
    package var name: String {
        switch self {
        case .anonymous: "anonymous"
        case .user(let user): user.uid
        case .service(let principal): principal.name
        case .admin: "admin"
        }
    }
}

/// What a credential led to, and what may end it while a stream runs.
package struct Authentication: Sendable {
    /// What has to stay valid.
    enum Credential: Sendable, Equatable {
        case none
        case userToken
        case apiKey(String)
        case serviceKey(String)
        /// As `URI:...` or `DNS:...`.
        case certificate(String)
    }

    package let caller: Caller
    /// When the credential expires, in seconds since 1970; nil if it does not.
    package let expiresAt: Int64?
    let credential: Credential

    init(_ caller: Caller, expiresAt: Int64? = nil, credential: Credential = .none) {
        self.caller = caller
        self.expiresAt = expiresAt
        self.credential = credential
    }

    /// The name under which failed logins with the credential are counted; nil if it has none that is one principal's.
    package var loginName: String? {
        switch credential {
        case .apiKey(let identifier), .serviceKey(let identifier): identifier
        case .none, .userToken, .certificate: nil
        }
    }

    /// A caller that needs no credential.
    package static let admin = Authentication(.admin)
    package static let anonymous = Authentication(.anonymous)
}
