internal import COpenSSLTLS

/// What a client expects in a server's certificate.
struct ServerName {
    /// Without a dot at the end, and without the brackets of an IPv6 address.
    let text: String

    /// - Throws: `configuration` for what can be neither a host name nor an address.
    init(_ name: String) throws(TLSError) {
        var text = Substring(name)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        if text.hasSuffix(".") { text = text.dropLast() }
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        guard (1...253).contains(text.utf8.count), isPlain else {
            throw TLSError(.configuration, "'\(name)' is not a host name")
        }
        self.text = String(text)
    }

    /// Demands the name of the server of a session: an address exactly, a host name with wildcards for whole labels.
    /// Only alternative names count. A host name is sent to the server (SNI, RFC 6066), an address is not.
    func demand(of session: OpaquePointer) -> Bool {
        let parameters = unsafe SSL_get0_param(session)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, text) == 1 { return true }
        let flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        unsafe SSL_set_hostflags(session, UInt32(flags))
        return unsafe SSL_set1_host(session, text) == 1 && hearth_tls_set_server_name(session, text) == 1
    }
}
