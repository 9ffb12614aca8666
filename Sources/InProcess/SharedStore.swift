package import Basics
import Dispatch
import DocumentStore
import EmbeddedEngine
package import EventLoops
package import HearthClient
import MemoryEngine
import Storage
import Synchronization

/// A store that is open in this process, shared by all clients that use its location. Thread-safe.
///
///     client ──┐
///     client ──┴─▶ SharedStore (one for each location) ──▶ DocumentStore
///
/// The first client opens it and the last one closes it. The lock of the directory keeps other processes out.
package final class SharedStore: OpenStore, @unchecked Sendable {
    // Unchecked: a dispatch source may be used by all threads; the rest is Sendable.

    let store: DocumentStore
    private let location: StoreLocation
    /// Removed when the store is closed.
    private let fork: TemporaryFork?
    /// Ends reads that have waited for too long, once a second.
    private let timer: any DispatchSourceTimer

    private struct Entry {
        let store: SharedStore
        var users: Int
    }
    private static let open = Mutex<[StoreLocation: Entry]>([:])

    /// How often expired documents are deleted (fields with `ttl`), in milliseconds: the default of `hearth serve`.
    private static let expiryMilliseconds: UInt64 = 60_000

    private init(_ location: StoreLocation) throws(RequestError) {
        do {
            fork = try Self.makeFork(location)
        } catch {
            throw Self.requestError(error, location)
        }
        do {
            store = try DocumentStore.open(Self.configuration(location, fork))
        } catch {
            fork?.remove()
            throw Self.requestError(error, location)
        }
        self.location = location
        let store = self.store
        timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
        timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(500))
        timer.setEventHandler { store.endExpiredWaits() }
        timer.activate()
    }

    private static func configuration(_ location: StoreLocation, _ fork: TemporaryFork?) -> StoreConfiguration {
        var configuration = StoreConfiguration(directory: fork?.directory ?? "")
        switch location {
        case .directory(let path): configuration.directory = path
        case .memory: configuration.volume = MemoryVolume()
        case .fork: break
        }
        configuration.expiryIntervalMilliseconds = expiryMilliseconds
        return configuration
    }

    /// A fork of the directory that a location names for that; else nil.
    private static func makeFork(_ location: StoreLocation) throws -> TemporaryFork? {
        guard case .fork(let source, _) = location else { return nil }
        let fork = try TemporaryFork(of: source)
        do {
            _ = try DocumentStore.fork(source, to: fork.directory)
            return fork
        } catch {
            fork.remove()
            throw error
        }
    }

    /// The store of a location, opened if no client uses it yet. `release()` must follow.
    ///
    /// - Throws: `.failedPrecondition` if another process has the directory open or its format is not known,
    ///   `.dataLoss` if it is damaged, `.resourceExhausted` if the disk is full, `.unavailable` if the system refuses
    ///   access.
    package static func use(_ location: StoreLocation) throws(RequestError) -> SharedStore {
        // Under the lock: a store that is being closed is closed before it is opened again.
        let result = open.withLock { open -> Result<SharedStore, RequestError> in
            if let entry = open[location] {
                open[location]?.users += 1
                return .success(entry.store)
            }
            return Result { () throws(RequestError) in
                let made = try SharedStore(location)
                open[location] = Entry(store: made, users: 1)
                return made
            }
        }
        return try result.get()
    }

    package func makeService(on loop: EventLoop, log: ClientLog?) -> any StoreService {
        InProcessService(of: self, on: loop, log: log)
    }

    package func release() {
        Self.open.withLock { open in
            guard var entry = open[location] else { return }
            entry.users -= 1
            open[location] = entry.users > 0 ? entry : nil
            if entry.users == 0 { close() }
        }
    }

    private func close() {
        timer.cancel()
        store.close()
        fork?.remove()
    }

    private static func requestError(_ error: any Error, _ location: StoreLocation) -> RequestError {
        let storage = error as? StorageError
        let code: StatusCode =
            switch storage?.code {
            case .locked?, .unsupportedFormat?: .failedPrecondition
            case .corrupt?: .dataLoss
            case .full?: .resourceExhausted
            default: .unavailable
            }
        let remedy =
            storage?.code == .locked
            ? " A data directory belongs to one process at a time: end the other one, or start a server on the"
                + " directory and let both connect to it." : ""
        return RequestError(code, "The data directory \(location) cannot be opened: \(error).\(remedy)")
    }
}
