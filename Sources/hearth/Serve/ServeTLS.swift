// TLS of `hearth serve`: the flags, and the files that they name.

import Basics
import Connections
import FirestoreService
import Server
import Synchronization
import TLS

/// The certificate, the key and the authorities of a server, and the context that is made of them. Thread-safe.
final class ServeTLS: Sendable {
    static let certificate = Flag<String>(
        "tls-cert", "FILE", required: false,
        help: "The server's certificate and those that lead to its authority, PEM. With --tls-key it switches TLS on.")
    static let key = Flag<String>("tls-key", "FILE", required: false, help: "The private key of --tls-cert, PEM.")
    static let clientAuthorities = Flag<String>(
        "tls-client-ca", "FILE", required: false,
        help: """
            Authorities of client certificates, PEM. A client without such a certificate is refused, unless --rules, \
            --token-issuer or --principals let it in by other means.
            """)
    static let revocationLists = Flag<String>(
        "tls-client-crl", "FILE", required: false,
        help:
            "Revocation lists of the authorities of --tls-client-ca, PEM. A certificate that no list covers is refused."
    )
    static let minimum = Flag(
        "tls-minimum", "VERSION", default: TLSVersion.tls12.rawValue, help: "The lowest version of TLS: 1.2 or 1.3."
    ) { TLSVersion(rawValue: $0) == nil ? "1.2 or 1.3" : nil }

    static let flags: [any FlagDeclaration] = [certificate, key, clientAuthorities, revocationLists, minimum]

    private let files: TLSFiles
    private let tickets = TicketKeys { SystemClock.monotonicNanoseconds() / 1_000_000_000 }
    private let context: Mutex<TLSContext>

    /// Reads the files that a command line names.
    ///
    /// - Returns: nil if it names none.
    /// - Throws: `CommandFailure` if a file cannot be read or used, or if the certificate or its key is missing.
    static func make(_ arguments: ParsedArguments) throws(CommandFailure) -> ServeTLS? {
        let files = [certificate, key, clientAuthorities, revocationLists]
        guard files.contains(where: { arguments.value(of: $0) != nil }) else { return nil }
        guard let certificate = arguments.value(of: certificate), let key = arguments.value(of: key) else {
            throw CommandFailure("TLS needs both --tls-cert and --tls-key")
        }
        let authorities = arguments.value(of: clientAuthorities)
        let lists = arguments.value(of: revocationLists)
        if lists != nil, authorities == nil { throw CommandFailure("--tls-client-crl needs --tls-client-ca") }
        if authorities != nil, ServeSettings.admitsAllPages(arguments) {
            throw CommandFailure(
                "with --tls-client-ca and --allow-origin any, pages of every site could use the certificates of their "
                    + "visitors: list the origins with --allow-origin")
        }
        return try ServeTLS(
            TLSFiles(
                certificate: certificate, key: key, authorities: authorities,
                requiresClientCertificate: !ServeSecurity.identifies(arguments), lists: lists,
                minimum: TLSVersion(rawValue: arguments[minimum]) ?? .tls12))
    }

    private init(_ files: TLSFiles) throws(CommandFailure) {
        self.files = files
        context = Mutex(try files.context(tickets))
    }

    /// Reads the files again. New connections get what they hold now; if one of them cannot be used, nothing changes.
    func reload() throws(CommandFailure) {
        let fresh = try files.context(tickets)
        context.withLock { $0 = fresh }
    }

    /// What connections are secured with.
    var acceptance: ServerTLS { ServerTLS { [self] in context.withLock { $0 } } }

    private static let warningSeconds: (certificate: Int64, list: Int64) = (7 * 86_400, 86_400)

    /// Logs that the certificate or a revocation list has expired, or is about to.
    func warnOfExpiry(_ log: Log) {
        let now = Int64(clamping: SystemClock.microseconds() / 1_000_000)
        let (certificate, list) = context.withLock { ($0.certificateExpires, $0.revocationListExpires) }
        func warn(_ event: StaticString, _ end: Int64?, within seconds: Int64, _ expired: String) {
            guard let end, end < now + seconds else { return }
            let message =
                end < now
                ? "\(expired): replace the files and send SIGHUP" : "replace the files and send SIGHUP before that"
            log(.warning, event, ["until": CalendarDate(secondsSinceEpoch: end).rfc3339, "message": message])
        }
        warn(
            "certificate_expires", certificate, within: Self.warningSeconds.certificate,
            "clients refuse an expired certificate")
        warn(
            "revocation_list_expires", list, within: Self.warningSeconds.list,
            "all certificates of clients of its authority are refused")
    }

    /// That others may read or change the private key; nil if they may not.
    var accessWarning: AccessWarning? { .ofSecret("the private key", in: files.key) }

    /// When the certificate expires, as RFC 3339 writes it, without the zone UTC.
    var expires: String {
        context.withLock { $0.certificateExpires }.map { CalendarDate(secondsSinceEpoch: $0).rfc3339 } ?? "never"
    }
}

/// The paths of the files that a command line names.
private struct TLSFiles: Sendable {
    let certificate: String
    let key: String
    let authorities: String?
    /// Whether a client without a certificate of these authorities is refused.
    let requiresClientCertificate: Bool
    let lists: String?
    let minimum: TLSVersion

    /// A context of what the files hold now.
    func context(_ tickets: TicketKeys) throws(CommandFailure) -> TLSContext {
        let credential = TLSCredential(
            certificates: try InputFile.contents(of: certificate), key: try InputFile.contents(of: key))
        var clients: TLSClientVerification?
        if let authorities {
            clients = TLSClientVerification(
                authorities: try InputFile.contents(of: authorities), isRequired: requiresClientCertificate)
            if let lists { clients?.revocationLists = try InputFile.contents(of: lists) }
        }
        do throws(TLSError) {
            return try TLSContext(
                server: TLSServerSettings(
                    credential: credential, clients: clients, minimum: minimum, protocols: SocketServer.protocolNames),
                tickets: tickets)
        } catch {
            throw CommandFailure("\(error)")
        }
    }
}
