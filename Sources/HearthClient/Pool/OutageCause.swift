/// Why a server cannot be reached, as far as a person can do something about it.
package enum OutageCause: Sendable {
    /// The server takes connections with TLS alone.
    case tlsIsRequired
    /// The certificate of the server does not verify.
    case certificateIsUntrusted
    /// Anything else: for example nothing listens at the address.
    case other
}
