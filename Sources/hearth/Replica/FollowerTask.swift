// The stream from another server: it is kept, and begun again when it ends.

import Basics
import DocumentStore
import FirestoreMessages
import FirestoreService
import HearthClient
import Identity
import Storage
import Synchronization

/// What a source sends that breaks the rules of the stream, or that this server cannot use.
struct FollowFailure: Error, CustomStringConvertible {
    let description: String
}

/// What takes the messages of a stream. Thread-safe.
protocol FollowTarget: Sendable {
    /// What a stream that begins now asks for.
    /// - Parameter follower: by which the source knows this process again.
    func request(follower: UInt64) -> FollowRequest
    /// Takes a message, and returns when the next one is wanted.
    /// - Returns: false if no further stream is wanted.
    func take(_ message: FollowResponse) async throws -> Bool
    /// The stream has ended.
    /// - Parameter isLogged: whether the reason was logged. Otherwise it is that of before.
    func ended(isLogged: Bool)
}

/// When it is logged that a stream has begun: once a minute, and whenever the log says that it was interrupted.
/// Thread-safe.
final class FollowingReport: Sendable {
    private let report = Mutex(RepeatedReport())

    func isDue(of source: String) -> Bool {
        report.withLock { $0.isDue(source, at: SystemClock.monotonicMilliseconds()) }
    }

    /// The log says that the stream was interrupted.
    func reset() { report.withLock { $0 = RepeatedReport() } }
}

/// When a source has sent something, in milliseconds of the monotonic clock. Thread-safe.
private final class Contact: Sendable {
    private let time = Mutex<UInt64?>(nil)

    var last: UInt64? { time.withLock { $0 } }

    func note() { time.withLock { $0 = SystemClock.monotonicMilliseconds() } }
}

/// Follows a source. Thread-safe.
final class FollowerTask: Sendable {
    private let client: HearthClient
    private let source: String
    private let log: Log
    private let number = UInt64.random(in: 1 ... .max)
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

    /// Begins to follow.
    /// - Parameter onEnd: called once if the target wants no further stream.
    func start(_ target: some FollowTarget, onEnd: @escaping @Sendable () -> Void) {
        task.withLock {
            $0 = Task { [self] in
                var pause = Self.pauseMillisecondsMin
                var report = RepeatedReport()
                while !Task.isCancelled {
                    var isLogged = false
                    do {
                        let contact = Contact()
                        let isWanted = try await followUntilSilent(target, contact)
                        if contact.last != nil { pause = Self.pauseMillisecondsMin }
                        if !isWanted { return onEnd() }
                    } catch {
                        if Task.isCancelled { return }
                        let message = ErrorText.describe(error)
                        isLogged = report.isDue(message, at: SystemClock.monotonicMilliseconds())
                        if isLogged {
                            log(.warning, "follow_interrupted", ["source": source, "message": message])
                        }
                    }
                    target.ended(isLogged: isLogged)
                    try? await Task.sleep(for: .milliseconds(pause))
                    pause = min(pause * 2, Self.pauseMillisecondsMax)
                }
            }
        }
    }

    /// Ends without waiting.
    func cancel() { task.withLock { $0 }?.cancel() }

    /// Ends, and returns when nothing is applied any more.
    func stop() async {
        let task = task.withLock { $0.take() }
        task?.cancel()
        await task?.value
    }

    /// Follows until the stream ends, or is silent for long.
    /// - Returns: false if no further stream is wanted.
    private func followUntilSilent(_ target: some FollowTarget, _ contact: Contact) async throws -> Bool {
        let began = SystemClock.monotonicMilliseconds()
        let outcome = await withTaskGroup(of: Result<Bool, any Error>?.self) { group in
            group.addTask { [self] in
                do { return .success(try await follow(target, contact)) } catch { return .failure(error) }
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
        if let outcome { return try outcome.get() }
        if Task.isCancelled { return true }
        throw FollowFailure(description: "the source is silent")
    }

    private func follow(_ target: some FollowTarget, _ contact: Contact) async throws -> Bool {
        let stream = client.follow(target.request(follower: number))
        while let message = try await stream.next() {
            contact.note()
            guard try await target.take(message) else { return false }
        }
        return true
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
        var revocations: Revocations.Moments = [:]
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
                return try receiver.complete(source: source) { directory in
                    if revocations.isEmpty { return }
                    try IdentityDirectory(dataDirectory: directory).revocations().add(revocations)
                }
            case .revocations(let bytes): revocations.merge(try Revocations.decode(bytes), uniquingKeysWith: max)
            case .accepted, .records, .closed, .derived, .rules, .groups: break
            }
        }
        throw FollowFailure(description: "the source ended before the base was complete")
    }
}
