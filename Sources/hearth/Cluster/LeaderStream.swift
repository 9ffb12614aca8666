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
        let task: FollowerTask
    }

    private struct State {
        var source: Source?
        var isStopped = false
    }

    private let driver: MemberDriver
    private let log: Log
    private let clients: LeaderClients
    private let configuration: @Sendable (String) throws -> HearthClient.Configuration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - clients: shared by the stores of this server.
    ///   - configuration: how a server is reached by its address.
    init(
        _ driver: MemberDriver, log: Log, _ clients: LeaderClients,
        _ configuration: @escaping @Sendable (String) throws -> HearthClient.Configuration
    ) {
        self.driver = driver
        self.log = log
        self.clients = clients
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
                let client = try clients.take(address, configuration)
                let task = FollowerTask(client: client, source: address, log: log)
                task.start(MemberStream(source: address, driver, log: log)) {}
                state.source = Source(address: address, task: task)
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
        Task { [clients] in
            await source.task.stop()
            await clients.release(source.address)
        }
    }
}

/// Hands the groups of a stream to the member, which applies those together that come meanwhile. Thread-safe.
private final class MemberStream: FollowTarget {
    private struct State {
        /// Bytes of groups that the member has not applied.
        var byteCount = 0
        /// The member has refused something since the last request.
        var isRefused = false
        /// Of requests: what an earlier stream has brought does not count for the next.
        var requests = 0
        /// The last group of the present stream, or the one that it began after.
        var sequence: UInt64 = 0
        /// Waits until there is room.
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let source: String
    private let driver: MemberDriver
    private let log: Log
    private let state = Mutex(State())
    private let report = FollowingReport()

    /// The stream waits beyond so many bytes that are not applied.
    private static let bytesMax = 4 << 20

    init(source: String, _ driver: MemberDriver, log: Log) {
        self.source = source
        self.driver = driver
        self.log = log
    }

    func request(follower: UInt64) -> FollowRequest {
        let (store, place) = (driver.settings.store, driver.streamStart)
        state.withLock { state in
            state.isRefused = false
            state.requests += 1
            state.sequence = place.sequence
        }
        return FollowRequest(
            version: 0, timeline: 0, follower: follower,
            place: LogPlaceMessage(
                storeHigh: store.high, storeLow: store.low, sequence: place.sequence, hash: place.hash))
    }

    func ended(isLogged: Bool) {
        if isLogged { report.reset() }
        driver.endStream()
    }

    func take(_ message: FollowResponse) async throws -> Bool {
        switch message {
        case .accepted:
            if report.isDue(of: source) {
                log(.info, "following", ["source": source, "sequence": String(driver.streamStart.sequence)])
            }
        case .groups(let bytes):
            guard let groups = LoggedGroup.decode(bytes, of: driver.settings.store) else {
                throw FollowFailure(description: "the leader sends groups that are damaged")
            }
            try await deliver(groups, byteCount: bytes.count, closed: 0)
        case .closed(let time): try await deliver([], byteCount: 0, closed: time)
        case .base, .file, .contents, .baseIsComplete, .records, .derived, .rules, .revocations:
            throw FollowFailure(description: "the leader sends something unasked")
        }
        return true
    }

    private func deliver(_ groups: [LoggedGroup], byteCount: Int, closed: UInt64) async throws {
        let (request, sequenceBefore) = state.withLock { state in
            defer { state.sequence = groups.last?.header.sequence ?? state.sequence }
            state.byteCount += byteCount
            return (state.requests, state.sequence)
        }
        driver.receive(groups, after: sequenceBefore, closed: closed) { [self] isTaken in
            let waiting = state.withLock { state in
                state.byteCount -= byteCount
                if !isTaken, request == state.requests { state.isRefused = true }
                return state.byteCount <= Self.bytesMax ? state.waiting.take() : nil
            }
            waiting?.resume()
        }
        await waitForRoom()
        if state.withLock({ $0.isRefused }) {
            throw FollowFailure(description: "what the leader sends does not continue what is here")
        }
    }

    private func waitForRoom() async {
        if state.withLock({ $0.byteCount <= Self.bytesMax }) { return }
        await withCheckedContinuation { continuation in
            let isRoom = state.withLock { state in
                if state.byteCount <= Self.bytesMax { return true }
                state.waiting = continuation
                return false
            }
            if isRoom { continuation.resume() }
        }
    }
}
