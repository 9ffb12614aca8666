// The network switch, waiting for writes, and the end of an instance; in forms with completion and in async forms.

import Basics
import ClientCache
import DocumentCoding
import DocumentModel
import FirebaseCore
import Foundation
import HearthClient

extension Firestore {
    /// Allows connections again after `disableNetwork`.
    public func enableNetwork(completion: (((any Error)?) -> Void)?) {
        switchNetwork(true)
        inBackground(completion) { try await self.networkSwitched() }
    }

    /// Allows connections again after `disableNetwork`. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func enableNetwork() { enableNetwork(completion: nil) }

    /// Allows connections again after `disableNetwork`.
    nonisolated(nonsending) public func enableNetwork() async throws {
        switchNetwork(true)
        try await rethrowing { try await self.networkSwitched() }
    }

    /// Closes all connections: reads fail with `.unavailable`, writes wait.
    public func disableNetwork(completion: (((any Error)?) -> Void)?) {
        switchNetwork(false)
        inBackground(completion) { try await self.networkSwitched() }
    }

    /// Closes all connections: reads fail with `.unavailable`, writes wait. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func disableNetwork() { disableNetwork(completion: nil) }

    /// Closes all connections: reads fail with `.unavailable`, writes wait.
    nonisolated(nonsending) public func disableNetwork() async throws {
        switchNetwork(false)
        try await rethrowing { try await self.networkSwitched() }
    }

    /// Waits until every write of the user that was issued before the call is acknowledged or rejected, those of
    /// earlier processes in a persistent cache included. The error is `.failedPrecondition` if another process uses the
    /// cache, and `.cancelled` if the user changes or the instance is terminated before.
    public func waitForPendingWrites(completion: @escaping ((any Error)?) -> Void) {
        checkUsable()
        let box = UncheckedBox(completion)
        awaitWrites { error in self.callBack { box.value(error?.asNSError) } }
    }

    /// Waits until every write of the user that was issued before the call is acknowledged or rejected, those of
    /// earlier processes in a persistent cache included. Throws `.failedPrecondition` if another process uses the
    /// cache, and `.cancelled` if the user changes or the instance is terminated before.
    nonisolated(nonsending) public func waitForPendingWrites() async throws {
        checkUsable()
        let (error, isCancelled) = await waiting { cancellation, completion in
            awaitWrites(cancellation) { completion(($0, cancellation.isCancelled)) }
        }
        guard let error else { return }
        throw isCancelled ? NSError.taskWasCancelled : error.asNSError
    }

    /// Opens the cache, whose queue counts, and calls `body` when all writes are settled.
    ///
    /// - Parameter body: called on any thread, maybe before this returns, with the reason if they are not.
    func awaitWrites(_ cancellation: Cancellation? = nil, _ body: @escaping @Sendable (RequestError?) -> Void) {
        do throws(RequestError) {
            let engine = try engine()
            let wait = engine.whenWritesAreSettled(body)
            cancellation?.onCancel { engine.stopWaiting(for: wait) }
        } catch {
            body(error)
        }
    }

    /// Closes all connections and the cache for good. Writes that are not acknowledged stay in a persistent cache and
    /// are sent when it is opened again; a cache in memory loses them. Their completions report `.cancelled`. Later
    /// calls are programming errors, except `clearPersistence`.
    public func terminate(completion: (((any Error)?) -> Void)?) {
        let ending = beginShutDown()
        inBackground(completion) { await ending.value }
    }

    /// Closes all connections for good. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func terminate() { terminate(completion: nil) }

    /// Closes all connections for good.
    nonisolated(nonsending) public func terminate() async throws { await shutDown() }

    /// Removes the persistent cache with its pending writes, after the end of `terminate` if that was called;
    /// `.failedPrecondition` while the instance is in use, or while another process uses the cache.
    public func clearPersistence(completion: (((any Error)?) -> Void)?) {
        if let ending {
            return inBackground(completion) {
                await ending.value
                try self.removeCache()
            }
        }
        let result = Result { try removeCache() }
        inBackground(completion) { try result.get() }
    }

    /// Removes the persistent cache with its pending writes.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func clearPersistence() { clearPersistence(completion: nil) }

    /// Removes the persistent cache with its pending writes.
    nonisolated(nonsending) public func clearPersistence() async throws {
        if let ending { await ending.value }
        try removeCache()
    }

    /// Writes every connection and every call to standard error, or goes back to troubles alone.
    ///
    /// The same switch as `FirebaseConfiguration.shared.setLoggerLevel(_:)`, set to `.debug` or `.notice`.
    public static func enableLogging(_ loggingEnabled: Bool) { FirebaseLog.level = loggingEnabled ? .debug : .notice }

    private func removeCache() throws {
        if isInUse {
            throw NSError.firestore(.failedPrecondition, "Persistence cannot be cleared while the client is running.")
        }
        guard let directory = cacheDirectory else { return }
        do throws(RequestError) {
            try LocalStore.remove(directory: directory)
        } catch {
            throw error.asNSError
        }
    }

    /// Runs `body` in a task, then the user's completion on the user's queue.
    private func inBackground(
        _ completion: (((any Error)?) -> Void)?, _ body: @escaping @Sendable () async throws -> Void
    ) {
        let box = UncheckedBox(completion)
        Task {
            var failure: NSError?
            do { try await self.rethrowing(body) } catch { failure = error as NSError }
            guard let completion = box.value else { return }
            let call = UncheckedBox(completion)
            self.callBack { [failure] in call.value(failure) }
        }
    }

    /// Turns errors of requests into those of the SDK.
    nonisolated(nonsending) private func rethrowing(
        _ body: nonisolated(nonsending) () async throws -> Void
    ) async throws {
        do {
            try await body()
        } catch let error as RequestError {
            throw error.asNSError
        }
    }
}
