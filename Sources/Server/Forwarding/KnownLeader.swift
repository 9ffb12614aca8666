internal import NativeProtocol
internal import Synchronization
package import TLS

/// Which server takes the writes of this server's store, and how this server shows there who it is. It can change at
/// any time. Thread-safe.
package final class KnownLeader: Sendable {
    /// Another server.
    package struct Server: Sendable {
        package var host: String
        package var port: UInt16
        /// Nil for plain text.
        package var tls: TLSContext?
        /// The token of a principal that administers the server.
        let credential: Credential

        /// - Parameter token: visible ASCII, at most 16 KiB; a text of another form is not shown.
        package init(host: String, port: UInt16, tls: TLSContext? = nil, token: String? = nil) {
            self.host = host
            self.port = port
            self.tls = tls
            credential = token.flatMap(Credential.init) ?? .none
        }
    }

    package enum Location: Sendable {
        /// This server takes the writes. `through` is its own address, by which calls that wait for a leader reach it
        /// with the identifiers of their earlier attempts. If it is nil, they wait for another leader.
        case here(through: Server?)
        case at(Server)
        /// Nobody does, or it is not known who. Calls wait.
        case unknown
    }

    private struct State {
        var location: Location
        var observers: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>
    private let isHereNow: Atomic<Bool>
    private let holdsLease: @Sendable () -> Bool

    /// - Parameter holdsLease: asked before a newest version is given out, after it was chosen: whether no other server
    ///   can have acknowledged a later one.
    package init(_ location: Location, holdsLease: @escaping @Sendable () -> Bool = { true }) {
        state = Mutex(State(location: location))
        isHereNow = Atomic(location.isHere)
        self.holdsLease = holdsLease
    }

    /// Whether this server takes the writes.
    package var isHere: Bool { isHereNow.load(ordering: .acquiring) }

    /// Whether what this server knows is the newest.
    var isNewest: Bool { isHere && holdsLease() }

    package var location: Location { state.withLock { $0.location } }

    /// Calls that are under way at the server before are made again at this one, if they may be.
    package func move(to location: Location) {
        let observers = state.withLock { state in
            state.location = location
            isHereNow.store(location.isHere, ordering: .releasing)
            return state.observers
        }
        for observer in observers { observer() }
    }

    /// - Parameter observer: called after each move, on any thread.
    func whenMoved(_ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers.append(observer) }
    }
}

extension KnownLeader.Location {
    fileprivate var isHere: Bool {
        if case .here = self { true } else { false }
    }

    /// Where calls are forwarded to.
    var server: KnownLeader.Server? {
        switch self {
        case .at(let server): server
        case .here(let server): server
        case .unknown: nil
        }
    }
}
