// The flags that every command uses to reach a server and a database.

import Basics
import Glibc
import HearthClient
import InProcess

/// Flags of the commands that are clients of a running server.
enum ServerFlags {
    /// The server's address. `HEARTH_ADDRESS` is also what the Swift library reads.
    static let address = Flag(
        "address", "HOST:PORT", default: "127.0.0.1:8080",
        help: "Address of the server, or unix:PATH. HEARTH_ADDRESS sets it for all commands."
    ).alias("to", "from")
    static let project = Flag("project", "ID", default: "hearth", help: "The project of the database.")
    static let database = Flag("database", "ID", default: "(default)", help: "The database.")
    static let timeout = Flag(
        "timeout", "TIME", default: TimeSpan.seconds(10), in: TimeSpan(milliseconds: 1)...TimeSpan.seconds(86_400),
        help: "How long to wait for a server that cannot be reached.")

    static let tls = Flag(switch: "tls", help: "Encrypts the connection; the server's certificate must verify.")
    static let authorities = Flag<String>(
        "tls-ca", "FILE", required: false,
        help: "Authorities of the server's certificate, PEM, instead of those of the system. Implies --tls.")
    /// The flags of every command that is a client.
    static let all: [any FlagDeclaration] = [address] + rest
    /// The same without the address.
    static let rest: [any FlagDeclaration] = [project, database, timeout, tls, authorities]

    /// The environment variable with the token that the commands show. It has no flag: other users of the machine see
    /// the arguments of a process.
    static let tokenVariable = "HEARTH_TOKEN"

    private static let connectTimeMax = Duration.seconds(5)
    private static let noticeAfter = Duration.seconds(1)

    /// A client's configuration: it says on standard error that it waits for the server, and gives up when the timeout
    /// has passed.
    ///
    /// - Parameter ownToken: the token for a server of this process, which has no TLS; nil for a server that the
    ///   arguments and the environment describe.
    static func configuration(
        _ arguments: ParsedArguments, of address: String, ownToken: String? = nil,
        environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
    ) throws -> HearthClient.Configuration {
        var configuration = try HearthClient.Configuration(address: address)
        configuration.openStore = SharedStore.use
        if ownToken == nil, arguments[tls] || arguments.has(authorities) {
            try configuration.useTLS(authorities: arguments.value(of: authorities))
        }
        try addToken(to: &configuration, ownToken ?? environment(tokenVariable) ?? "")
        configuration.log = { level, message in
            if level == .error { CommandRouter.complain(message()) }
        }
        let timeout = Duration.milliseconds(arguments[timeout].milliseconds)
        configuration.connectTimeout = min(timeout, connectTimeMax)
        configuration.outageMax = timeout
        configuration.outageNoticeAfter = noticeAfter
        if ownToken == nil { configuration.remedy = { remedy(for: $0) } }
        let name = configuration.address
        configuration.outageNotice = { CommandRouter.complain("waiting for \(name): \($0)") }
        return configuration
    }

    /// What helps where a server cannot be reached.
    private static func remedy(for cause: OutageCause) -> String {
        switch cause {
        case .tlsIsRequired: "Add --tls, or --tls-ca FILE with the authority of its certificate."
        case .certificateIsUntrusted:
            "--tls-ca FILE names the authority of its certificate, if that is not one of the system's."
        case .other: "Start one with hearth serve, or name another one with --address."
        }
    }

    /// What addresses of a server's pages begin with; nil for a store in this process and for a Unix socket.
    static func page(of address: String, _ arguments: ParsedArguments) -> String? {
        if address.contains("/") || address.hasPrefix(HearthClient.Configuration.socketScheme) { return nil }
        return "\(arguments[tls] || arguments.has(authorities) ? "https" : "http")://\(address)"
    }

    /// Has calls show a token, if there is one.
    private static func addToken(to configuration: inout HearthClient.Configuration, _ token: String) throws {
        if token.isEmpty { return }
        do throws(RequestError) {
            try configuration.useToken(token)
        } catch {
            throw UsageError(message: "\(tokenVariable): \(error.message)")
        }
        if configuration.exposesToken {
            CommandRouter.complain("warning: the token is sent to \(configuration.address) in plain text; use --tls")
        }
    }
}
