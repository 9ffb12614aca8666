internal import COpenSSLTLS

/// What a client needs to resume a session. Secret: it stays in memory. Thread-safe.
@safe
package final class TLSTicket: @unchecked Sendable {
    // Sendable: the session is this object's copy and is only read; each use makes another copy.
    private let session: OpaquePointer
    /// What has verified the server, for which a ticket takes the place of a certificate.
    private let context: TLSContext
    private let serverName: String

    /// - Returns: nil if the server has not sent a ticket.
    init?(of open: OpaquePointer, _ context: TLSContext, serverName: String) {
        self.context = context
        self.serverName = serverName
        guard let current = unsafe SSL_get1_session(open) else { return nil }
        defer { unsafe SSL_SESSION_free(current) }
        guard unsafe SSL_SESSION_is_resumable(current) == 1, let copy = unsafe SSL_SESSION_dup(current) else {
            return nil
        }
        unsafe session = copy
    }

    deinit { unsafe SSL_SESSION_free(session) }

    /// Whether the ticket serves for another session: with the same authorities, and for the same name.
    func fits(_ context: TLSContext, serverName: String) -> Bool {
        self.context === context && self.serverName == serverName
    }

    /// Offers the ticket in a new session.
    func use(in new: OpaquePointer) -> Bool {
        guard let copy = unsafe SSL_SESSION_dup(session) else { return false }
        defer { unsafe SSL_SESSION_free(copy) }
        return unsafe SSL_set_session(new, copy) == 1
    }
}
