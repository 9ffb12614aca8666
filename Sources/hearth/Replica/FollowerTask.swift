// A replica: it keeps a stream from its source, applies what comes, and connects again.

import Authorization
import Basics
import DocumentStore
import FirestoreMessages
import FirestoreService
import HearthClient
import Storage
import Synchronization

/// What a source sends that breaks the rules of the stream, or that this replica cannot use.
struct FollowFailure: Error, CustomStringConvertible {
    let description: String
}

/// When a source has sent something, in milliseconds of the monotonic clock. Thread-safe.
private final class Contact: Sendable {
    private let time = Mutex<UInt64?>(nil)

    var last: UInt64? { time.withLock { $0 } }

    func note() { time.withLock { $0 = SystemClock.monotonicMilliseconds() } }
}

/// Follows a source from a store that is being served. Thread-safe.
final class FollowerTask: Sendable {
    private let client: HearthClient
    private let source: String
    private let log: Log
    /// By which the source knows this process again.
    private let number = UInt64.random(in: 1 ... .max)
    private let rebuild = Mutex<String?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Time before a further attempt, in milliseconds; twice as long after each.
    private static let pauseMillisecondsMin: UInt64 = 50
    private static let pauseMillisecondsMax: UInt64 = 2_000
    /// A source sends something several times a second. After this time without a message its stream is given up.
    private static let silenceMillisecondsMax: UInt64 = 10_000

    init(client: HearthClient, source: String, log: Log) {
        self.client = client
        self.source = source
        self.log = log
    }

    /// Why the replica must be copied again; nil if it can continue.
    var rebuildReason: String? { rebuild.withLock { $0 } }

    /// Begins to follow.
    ///
    /// - Parameters:
    ///   - rules: the keeper of the replica's rules, which become those of the source; nil if it has none.
    ///   - onRebuild: called once if the source does not continue from what the store has, or the store differs.
    func start(_ store: DocumentStore, _ rules: RulesKeeper?, onRebuild: @escaping @Sendable () -> Void) {
        task.withLock {
            $0 = Task { [self] in
                var pause = Self.pauseMillisecondsMin
                while !Task.isCancelled {
                    do {
                        if try await followUntilSilent(store, rules) { pause = Self.pauseMillisecondsMin }
                        if rebuildReason != nil { return onRebuild() }
                    } catch {
                        if Task.isCancelled { return }
                        log(.warning, "follow_interrupted", ["source": source, "message": ErrorText.describe(error)])
                    }
                    store.replication.isConnected = false
                    try? await Task.sleep(for: .milliseconds(pause))
                    pause = min(pause * 2, Self.pauseMillisecondsMax)
                }
            }
        }
    }

    /// Ends, and returns when nothing is applied any more.
    func stop() async {
        let task = task.withLock { $0.take() }
        task?.cancel()
        await task?.value
    }

    /// Follows until the stream ends, or is silent for long.
    /// - Returns: whether the source has sent anything.
    private func followUntilSilent(_ store: DocumentStore, _ rules: RulesKeeper?) async throws -> Bool {
        let contact = Contact()
        let began = SystemClock.monotonicMilliseconds()
        let outcome = await withTaskGroup(of: Result<Void, any Error>?.self) { group in
            group.addTask { [self] in
                do {
                    try await follow(store, rules) { contact.note() }
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(500))
                    let last = contact.last ?? began
                    if SystemClock.monotonicMilliseconds() >= last + Self.silenceMillisecondsMax { break }
                }
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        if let outcome {
            try outcome.get()
        } else if !Task.isCancelled {
            throw FollowFailure(description: "the source is silent")
        }
        return contact.last != nil
    }

    private func follow(
        _ store: DocumentStore, _ rules: RulesKeeper?, onContact: @escaping @Sendable () -> Void
    ) async throws {
        let stream = client.follow(
            FollowRequest(
                version: store.publishedVersion.microseconds, timeline: store.timelineStart.microseconds,
                follower: number))
        while let message = try await stream.next() {
            onContact()
            switch message {
            case .accepted:
                store.replication.isConnected = true
                log(.info, "following", ["source": source, "version": String(store.publishedVersion.microseconds)])
            case .base(let reason, _):
                rebuild.withLock { $0 = reason }
                return
            case .records(let bytes): try await Self.apply(bytes, to: store)
            case .closed(let time):
                store.closeTimes(through: time)
                store.replication.closedMicroseconds = time
            case .derived(let bytes):
                let entries = try Self.derived(bytes)
                guard let version = store.replication.derived.difference(from: entries) else { continue }
                log(.error, "replica_differs", ["source": source, "version": String(version)])
                rebuild.withLock { $0 = "the replica has derived something else from the commit \(version)" }
                return
            case .rules(let text): apply(rules: text, rules)
            case .file, .contents, .baseIsComplete: throw FollowFailure(description: "the source sends a file unasked")
            }
        }
    }

    /// Puts the rules of the source in force.
    private func apply(rules text: String, _ keeper: RulesKeeper?) {
        guard let keeper else { return }
        do throws(RequestError) {
            let answer = try keeper.apply(text)
            if answer.changed { log(.info, "rules_followed", ["number": String(answer.rules.number)]) }
        } catch {
            log(.warning, "rules_not_followed", ["message": error.message])
        }
    }

    /// Reads what a source has derived.
    private static func derived(_ bytes: [UInt8]) throws -> [DerivedHashes.Entry] {
        guard bytes.count % 16 == 0 else { throw FollowFailure(description: "a message is cut") }
        func number(_ offset: Int) -> UInt64 {
            bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        return stride(from: 0, to: bytes.count, by: 16).map {
            DerivedHashes.Entry(version: number($0), hash: number($0 + 8))
        }
    }

    /// Applies the records of a message, durably.
    static func apply(_ bytes: [UInt8], to store: DocumentStore) async throws {
        let records = try Self.records(bytes)
        let outcome: Result<Void, RequestError> = await withCheckedContinuation { continuation in
            store.follow(records) { continuation.resume(returning: $0) }
        }
        try outcome.get()
    }

    /// Reads the records of a message.
    static func records(_ bytes: [UInt8]) throws -> FollowedRecords {
        var records = FollowedRecords()
        guard records.append(logged: bytes) else { throw FollowFailure(description: "a message has a wrong record") }
        return records
    }

    /// Copies a base to a directory.
    ///
    /// - Parameter progress: gets the bytes received and all bytes.
    static func fetchBase(
        from client: HearthClient, source: String, to directory: String,
        progress: @escaping (_ done: Int, _ all: Int) -> Void
    ) async throws {
        let stream = client.follow(FollowRequest(version: 0, timeline: 0))
        var receiver: BaseReceiver?
        var all = 0
        while let message = try await stream.next() {
            switch message {
            case .base(_, let bytes):
                receiver = try BaseReceiver(directory: directory)
                all = Int(clamping: bytes)
            case .file(let path): try receiver?.begin(path)
            case .contents(let bytes):
                try receiver?.append(bytes)
                progress(receiver?.byteCount ?? 0, all)
            case .baseIsComplete:
                guard let receiver else { break }
                return try receiver.complete(source: source)
            case .accepted, .records, .closed, .derived, .rules: break
            }
        }
        throw FollowFailure(description: "the source ended before the base was complete")
    }
}
