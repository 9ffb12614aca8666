// The configuration of a `HearthClient`: the address of the server, limits and timeouts.

package import Basics
import DocumentModel
import NativeProtocol
package import TLS

extension HearthClient {
    /// Gives the token of the user for whom calls are made; nil or an empty text if there is none. Called on any
    /// thread, one call at a time.
    ///
    /// - Parameter forceRefresh: whether a token that the provider has kept will not do.
    package typealias TokenProvider = @Sendable (_ forceRefresh: Bool) async throws -> String?

    /// The configuration of a client. Every value has a default that suits a service on the same network.
    package struct Configuration: Sendable {
        /// The server's host name or address, without brackets.
        package var host: String
        package var port: UInt16
        /// The Unix socket that a server on this machine listens on; the host and the port are not used then.
        package var socketPath: String?
        /// The store in this process that calls go to instead of a server; the host and the port are not used then.
        package var store: StoreLocation?
        /// Opens the store, or shares it if this process has it open; `release()` must follow. Blocks. `nil` in
        /// programs that only talk to servers.
        package var openStore: (@Sendable (StoreLocation) throws(RequestError) -> any OpenStore)?
        /// TLS with the server; `nil` = plain text. A Unix socket has none.
        package var tls: TLSContext?
        /// Connections of another protocol, whose TLS is that of the transport; `nil` = the native protocol. A commit
        /// that another protocol carries twice may be applied twice: clients with a transport only read.
        package var transport: (any ClientTransport)?
        /// Gives the token that calls show to the server; `nil` = they show none. A store in this process needs none.
        ///
        /// The client asks before it opens a connection, again before the token expires if it is a JSON Web Token, and
        /// with `forceRefresh` when the server has refused the token; the call is then made once more. If the provider
        /// fails, calls that need an answer of it end with UNAUTHENTICATED and its text.
        package var tokenProvider: TokenProvider?
        /// How long an answer of the token provider may take.
        package var tokenTimeout: Duration = .seconds(30)
        /// Gets the user of the token (``TokenClaims/user``) with the first token and whenever it changes; `nil`
        /// without a token, and if the token does not say. Called on a loop's thread, before calls show the token.
        package var userChanged: (@Sendable (_ user: String?) -> Void)?
        /// Event loops, each a thread with separate connections. One is enough for about 200,000 calls a second.
        package var eventLoops = 1
        /// Connections for each loop; a further one is opened when those there are busy.
        package var connectionsPerLoop = 2
        /// Calls in flight on one connection that justify a further one.
        package var callsPerConnection = 64
        /// Calls that may wait for a connection, for each loop.
        package var waitingCallsMax = 100_000
        /// How long a dial may take.
        package var connectTimeout: Duration = .seconds(5)
        /// The deadline of unary calls that do not say otherwise.
        package var callTimeout: Duration = .seconds(60)
        /// The deadline of streams that do not say otherwise.
        package var streamTimeout: Duration = .seconds(300)
        /// The largest message that is accepted from the server, in bytes.
        package var messageBytesMax = 16 << 20
        /// Takes the client's messages; `nil` = nobody does.
        package var log: ClientLog?
        /// How long calls wait for a server that cannot be reached before the client logs it; `nil` = never.
        package var outageNoticeAfter: Duration?
        /// Gets the reason of an outage instead of the log, when a notice is due; called on a loop's thread.
        package var outageNotice: (@Sendable (_ reason: String) -> Void)?
        /// How long calls wait for a server that cannot be reached before they fail with UNAVAILABLE and the reason,
        /// counted from the first call that waits; `nil` = until their own deadlines.
        package var outageMax: Duration?
        /// What a person can do when the server cannot be reached: the last sentence of such errors.
        package var remedy: (@Sendable (OutageCause) -> String)?

        /// `HOST:PORT`, IPv6 addresses in brackets; or the Unix socket, or the location of the store.
        package var address: String {
            if let store { return "\(store)" }
            if let socketPath { return Self.socketScheme + socketPath }
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }

        /// Has all calls show one token, which never changes.
        ///
        /// - Throws: `.invalidArgument`, without a part of the token, if it is none.
        package mutating func useToken(_ token: String) throws(RequestError) {
            if Credential(token) == nil { throw .invalidArgument(Self.tokenRule) }
            tokenProvider = { _ in token }
        }

        /// What a text must be to be a token.
        static let tokenRule = "A token is visible ASCII without spaces, at most \(Credential.bytesMax) bytes."

        /// Whether others on the network could read the token: it leaves this machine in plain text.
        package var exposesToken: Bool {
            tokenProvider != nil && tls == nil && store == nil && socketPath == nil
                && !Self.isLoopback(host.lowercased())
        }

        private static func isLoopback(_ host: String) -> Bool {
            if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        }

        /// Has connections encrypted; the server's certificate must have the host's name.
        ///
        /// - Parameter authorities: a file of authorities, PEM, instead of those of the system.
        /// - Throws: `.invalidArgument` if the file cannot be read or used, and for a Unix socket.
        package mutating func useTLS(authorities: String? = nil) throws(RequestError) {
            if socketPath != nil { throw .invalidArgument("\(address) is a Unix socket, which has no TLS.") }
            let settings = TLSClientSettings(
                authorities: authorities.map { .file($0) } ?? .system, protocols: [Preface.protocolName])
            do throws(TLSError) {
                tls = try TLSContext(client: settings)
            } catch {
                throw .invalidArgument("\(error)")
            }
        }

        package init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }

        /// What addresses of Unix sockets begin with, as in gRPC.
        package static let socketScheme = "unix:"

        /// - Parameter address: `HOST:PORT`, `HOST` (port 8080), `[IPV6]:PORT`, a Unix socket as `unix:PATH` or
        ///   `unix:///PATH`, or the location of a store (``StoreLocation``).
        package init(address: String) throws(RequestError) {
            if let store = try StoreLocation(address) {
                self.init(host: "", port: 0)
                self.store = store
                return
            }
            if address.hasPrefix(Self.socketScheme) {
                let path = try Self.socketPath(address)
                self.init(host: "", port: 0)
                socketPath = path
                return
            }
            let invalid = RequestError.invalidArgument("\"\(address)\" is not an address of the form HOST:PORT.")
            var host = address[...]
            var port: UInt16 = 8080
            if address.hasPrefix("[") {
                guard let close = address.firstIndex(of: "]") else { throw invalid }
                host = address[address.index(after: address.startIndex)..<close]
                let rest = address[address.index(after: close)...]
                if !rest.isEmpty {
                    guard rest.hasPrefix(":"), let number = UInt16(rest.dropFirst()) else { throw invalid }
                    port = number
                }
            } else if let colon = address.lastIndex(of: ":") {
                guard let number = UInt16(address[address.index(after: colon)...]) else { throw invalid }
                host = address[..<colon]
                port = number
            }
            guard !host.isEmpty, port != 0, !host.contains("/") else { throw invalid }
            self.init(host: String(host), port: port)
        }

        private static func socketPath(_ address: String) throws(RequestError) -> String {
            var path = address.dropFirst(socketScheme.count)
            let hasAuthority = path.hasPrefix("//")
            if hasAuthority { path = path.dropFirst(2) }
            guard !path.isEmpty, !path.utf8.contains(0), !hasAuthority || path.hasPrefix("/") else {
                throw .invalidArgument("\"\(address)\" is not a Unix socket of the form unix:PATH or unix:///PATH.")
            }
            return String(path)
        }
    }
}
