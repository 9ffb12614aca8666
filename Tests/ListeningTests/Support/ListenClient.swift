// A client like the SDKs: at a global NO_CHANGE it applies the messages before, and checks what the server promises.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import TestSupport
import Testing

@testable import Listening

/// What a test listens to.
enum Subject {
    /// Paths below the documents root.
    case documents([String])
    /// A query below the documents root.
    case query(StructuredQuery)
}

/// One client with its targets, over one session at a time.
final class ListenClient {
    /// What the client has of a target.
    struct TargetState {
        let subject: Subject
        /// Documents with their update times, as of the last snapshot.
        var documents: [String: UInt64] = [:]
        /// Documents that have entered and left since the last snapshot.
        var passed: Set<String> = []
        var isCurrent = false
        var isAdded = false
        /// Whether the server has sent RESET on this stream.
        var wasReset = false
        /// What was acknowledged when it was asked for: its snapshots show that.
        var acknowledged: UInt64 = 0
    }

    let harness: ListenHarness
    /// Judges the targets of the sessions that follow.
    var judge: TestJudge?
    private(set) var session: ListenSession?
    /// The server of the present session, if it is not that of the harness.
    private var follower: FollowerHarness?
    private var hub: ListenHub { follower?.hub ?? harness.hub }
    private(set) var targets: [Int32: TargetState] = [:]
    /// Targets as they are with the messages since the last snapshot.
    private var staged: [Int32: TargetState] = [:]
    /// The read time of the last snapshot, in microseconds.
    private(set) var readTime: UInt64 = 0
    private var latestTime: UInt64 = 0
    private(set) var snapshots = 0
    private(set) var wakes = 0
    /// Targets that the server removed with an error.
    private(set) var denied: Set<Int32> = []
    /// Messages since the last call of `takeMessages`.
    private var messages: [ListenResponse] = []

    init(_ harness: ListenHarness) {
        self.harness = harness
    }

    // MARK: Requests

    /// - Parameter follower: the server to connect to; nil is that of the harness.
    func connect(to follower: FollowerHarness? = nil) throws {
        self.follower = follower
        session = ListenSession(
            hub, database: harness.database, judge: judge,
            whenNewest: follower.map { follower in { follower.questions.append($0) } },
            wake: { [weak self] in self?.wakes += 1 })
        latestTime = readTime
    }

    /// The connection breaks: what came after the last snapshot is dropped.
    func disconnect() {
        session?.close()
        session = nil
        staged = targets
        for id in Array(staged.keys) {
            staged[id]?.isAdded = false
            staged[id]?.wasReset = false
        }
    }

    /// Connects and lists every target again, from the last snapshot.
    func resume(at follower: FollowerHarness? = nil, expectedCount: Bool = false) throws {
        try connect(to: follower)
        let token = ResumeToken(microseconds: readTime)
        var writer = ByteBuffer()
        token.encode(into: &writer)
        for (id, state) in targets.sorted(by: { $0.key < $1.key }) {
            let hasState = state.isCurrent
            if !hasState { staged[id]?.documents = [:] }
            try send(
                id, state.subject, resume: hasState ? .token(writer.copyBytes()) : nil,
                expectedCount: hasState && expectedCount ? Int32(state.documents.count) : nil)
        }
    }

    func listen(_ id: Int32, to subject: Subject) throws {
        targets[id] = TargetState(subject: subject)
        staged[id] = TargetState(subject: subject)
        try send(id, subject, resume: nil, expectedCount: nil)
    }

    func send(
        _ id: Int32, _ subject: Subject, resume: ListenTarget.Resume?, expectedCount: Int32?, once: Bool = false
    ) throws {
        staged[id]?.acknowledged = harness.acknowledged
        let kind: ListenTarget.Kind =
            switch subject {
            case .documents(let paths): .documents(paths.map(harness.name))
            case .query(let query): .query(parent: harness.database.documentsRoot, query)
            }
        try receive(
            .add(ListenTarget(kind, id: id, resume: resume, once: once, expectedCount: expectedCount)))
    }

    func receive(_ change: ListenRequest.Change?) throws {
        let session = try #require(session)
        try session.receive(ListenRequest(database: "\(harness.database)", change))
    }

    func stopListening(_ id: Int32) throws {
        targets[id] = nil
        staged[id] = nil
        try receive(.remove(id))
    }

    // MARK: Messages

    func takeMessages() -> [ListenResponse] {
        defer { messages = [] }
        return messages
    }

    /// Takes messages until the session has none, or `atMost` have come.
    func drain(atMost: Int = .max) throws {
        let session = try #require(session)
        var left = atMost
        while left > 0 {
            var output = ByteBuffer()
            switch session.next(into: &output) {
            case .waiting:
                if !session.isWaitingForStorage { return }
                try waitUntil("storage is ready") {
                    hub.continueReads()
                    return !session.isWaitingForStorage
                }
            case .yielding: continue
            case .failed(let error): throw error
            case .message:
                left -= 1
                let bytes = output.copyBytes()
                try apply(try ListenResponse(wire: bytes.byteSpan))
            }
        }
    }

    private func apply(_ message: ListenResponse) throws {
        messages.append(message)
        switch message {
        case .targetChange(let change): try apply(change)
        case .documentChange(let change):
            let document = try DocumentMessage(wire: change.document.byteSpan)
            let path = String(document.name.dropFirst(harness.name("").count))
            let update = UInt64(try #require(document.updateTime).microseconds)
            for id in change.targets + change.removedTargets { try expectAllowed(id) }
            for id in change.targets where isAdded(id) {
                let known = staged[id]?.documents.updateValue(update, forKey: path)
                expect(known != update, "\(path) was sent twice to target \(id)")
            }
            for id in change.removedTargets { try remove(path, id) }
        case .documentDelete(let removal), .documentRemove(let removal):
            let path = String(removal.name.dropFirst(harness.name("").count))
            noteTime(removal.readTime)
            for id in removal.removedTargets { try expectAllowed(id) }
            for id in removal.removedTargets { try remove(path, id) }
        case .filter(let filter):
            guard isAdded(filter.target) else { return }
            expectEqual(staged[filter.target]?.documents.count, Int(filter.count))
        case .unknown: Issue.record("an unknown message")
        }
    }

    /// Messages before ADD are for an earlier target with the same id.
    private func isAdded(_ id: Int32) -> Bool { staged[id]?.isAdded ?? false }

    /// A message of a target is sent only while the verdict at the hub's position allows it.
    private func expectAllowed(_ id: Int32) throws {
        expect(!denied.contains(id), "a message of target \(id), which is removed")
        guard let judge, isAdded(id), let subject = staged[id]?.subject else { return }
        let isAllowed = try judge.allows(subject, at: hub.position)
        expect(isAllowed, "a message of target \(id), \(subject)")
    }

    private func remove(_ path: String, _ id: Int32) throws {
        guard isAdded(id) else { return }
        let isQuery = if case .query = staged[id]?.subject { true } else { false }
        let known = staged[id]?.documents.removeValue(forKey: path)
        guard known == nil, isQuery, let subject = staged[id]?.subject else { return }
        expect(staged[id]?.passed.insert(path).inserted ?? false, "\(path) was removed twice from target \(id)")
        // States before the retention are not readable.
        let oldest = harness.store.oldestReadTime
        let hasPassed = try harness.commitTimes.reversed().prefix { $0 > readTime }.contains { time in
            try time < oldest || harness.results(of: subject, at: time)[path] != nil
        }
        expect(hasPassed, "\(path) was removed from target \(id), which did not have it")
    }

    private func apply(_ change: ListenResponse.TargetChange) throws {
        if let time = change.readTime {
            noteTime(time)
            let token = ResumeToken(bytes: change.resumeToken.byteSpan)
            expectEqual(token?.microseconds, UInt64(time.microseconds))
        }
        switch change.kind {
        case .add:
            for id in change.targets {
                staged[id]?.isAdded = true
                denied.remove(id)
            }
        case .remove:
            for id in change.targets where change.cause != nil && isAdded(id) {
                targets[id] = nil
                staged[id] = nil
                denied.insert(id)
            }
        case .current:
            for id in change.targets where isAdded(id) { staged[id]?.isCurrent = true }
        case .reset:
            for id in change.targets where isAdded(id) {
                staged[id]?.documents = [:]
                staged[id]?.isCurrent = false
                staged[id]?.wasReset = true
            }
        case .noChange:
            guard change.targets.isEmpty, let time = change.readTime else { return }
            try applySnapshot(UInt64(time.microseconds))
        }
    }

    /// Times on a stream never go back.
    private func noteTime(_ time: TimestampValue?) {
        guard let time else { return }
        expect(UInt64(time.microseconds) >= latestTime, "the read time went back")
        latestTime = max(latestTime, UInt64(time.microseconds))
    }

    /// A snapshot: every target is what the query returns at its time.
    private func applySnapshot(_ time: UInt64) throws {
        snapshots += 1
        readTime = time
        for id in staged.keys { staged[id]?.passed = [] }
        targets = staged
        for (id, state) in targets where state.isCurrent {
            let expected = try harness.results(of: state.subject, at: time)
            expectEqual(state.documents, expected, "target \(id), \(state.subject), at \(time)")
            expect(time >= state.acknowledged, "target \(id) lacks what was acknowledged before it was asked for")
        }
    }
}
