// From a host name to addresses, without libuv's thread pool.
//
// libuv joins its pool's threads in a destructor of the library. A process that ends while such a thread still waits
// for a name server aborts there. The threads here are detached: the process can end while they wait.

internal import Basics
import Synchronization

/// Looks host names up on its own threads. Thread-safe.
final class HostResolver: Sendable {
    /// Receives the addresses, without ports, on a thread of the resolver.
    typealias Completion = @Sendable (Result<[ResolvedAddress], SocketError>) -> Void

    static let shared = HostResolver()

    /// Who waits for each host that is being looked up.
    private let waiting = Mutex<[String: [Completion]]>([:])

    /// Looks a host up. Calls for a host that is being looked up already share that thread's result, so a name server
    /// that does not answer holds one thread for each host, however often a client tries again.
    func resolve(_ host: String, completion: @escaping Completion) {
        let isFirst = waiting.withLock { waiting in
            waiting[host, default: []].append(completion)
            return waiting[host]?.count == 1
        }
        guard isFirst else { return }
        SystemThread.runDetached(name: "hearth-resolver") { [self] in
            let result: Result<[ResolvedAddress], SocketError>
            do throws(SocketError) {
                result = .success(try SocketAddress.resolve(host, port: 0, forListening: false))
            } catch {
                result = .failure(error)
            }
            for completion in waiting.withLock({ $0.removeValue(forKey: host) }) ?? [] { completion(result) }
        }
    }
}
