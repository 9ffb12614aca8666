// The stream of groups from the server that leads, whichever it is.

import Basics
import FirestoreMessages
import FirestoreService
import HearthClient
import PostgreSQLLog
import Synchronization

/// Keeps a stream from the server that leads. Without one the member reads the database. Thread-safe.
final class LeaderStream: Sendable {
    /// The stream from one server.
    private struct Source {
        let address: String
        let client: HearthClient
        let task: FollowerTask
    }

    private struct State {
        var source: Source?
        var isStopped = false
    }

    private let driver: MemberDriver
    private let log: Log
    private let configuration: @Sendable (String) throws -> HearthClient.Configuration
    private let state = Mutex(State())

    /// - Parameter configuration: how a server is reached by its address.
    init(
        _ driver: MemberDriver, log: Log,
        _ configuration: @escaping @Sendable (String) throws -> HearthClient.Configuration
    ) {
        self.driver = driver
        self.log = log
        self.configuration = configuration
    }

    /// Another server leads. Does not wait.
    /// - Parameter address: of the server; nil if none leads, or this one does.
    func move(to address: String?) {
        state.withLock { state in
            guard !state.isStopped, state.source?.address != address else { return }
            end(state.source)
            state.source = nil
            guard let address else { return }
            do {
                let client = try HearthClient(configuration(address))
                let task = FollowerTask(client: client, source: address, log: log)
                task.start(MemberStream(source: address, driver, log: log)) {}
                state.source = Source(address: address, client: client, task: task)
            } catch {
                log(.warning, "follow_interrupted", ["source": address, "message": ErrorText.describe(error)])
            }
        }
    }

    /// Ends without waiting; what comes later is not taken any more.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            end(state.source)
            state.source = nil
        }
    }

    private func end(_ source: Source?) {
        guard let source else { return }
        source.task.cancel()
        Task {
            await source.task.stop()
            await source.client.close()
        }
    }
}

/// Hands the groups of a stream to the member. Thread-safe.
private struct MemberStream: FollowTarget {
    private let source: String
    private let driver: MemberDriver
    private let log: Log

    init(source: String, _ driver: MemberDriver, log: Log) {
        self.source = source
        self.driver = driver
        self.log = log
    }

    func request(follower: UInt64) -> FollowRequest {
        let (store, place) = (driver.settings.store, driver.streamStart)
        return FollowRequest(
            version: 0, timeline: 0,
            place: LogPlaceMessage(
                storeHigh: store.high, storeLow: store.low, sequence: place.sequence, hash: place.hash))
    }

    func ended() { driver.endStream() }

    func take(_ message: FollowResponse) async throws -> Bool {
        switch message {
        case .accepted:
            log(.info, "following", ["source": source, "sequence": String(driver.streamStart.sequence)])
        case .groups(let bytes):
            guard let groups = LoggedGroup.decode(bytes, of: driver.settings.store) else {
                throw FollowFailure(description: "the leader sends groups that are damaged")
            }
            try await deliver(groups, closed: 0)
        case .closed(let time): try await deliver([], closed: time)
        case .base, .file, .contents, .baseIsComplete, .records, .derived, .rules:
            throw FollowFailure(description: "the leader sends something unasked")
        }
        return true
    }

    private func deliver(_ groups: [LoggedGroup], closed: UInt64) async throws {
        let isTaken = await withCheckedContinuation { continuation in
            driver.receive(groups, closed: closed) { continuation.resume(returning: $0) }
        }
        guard isTaken else { throw FollowFailure(description: "what the leader sends does not continue what is here") }
    }
}
