// Strict reads at a follower: one question to the server that takes the writes for all reads of a loop's turn.
//
//     read, read, read ──► asked once: the newest version ──► visible here ──► all three are made
//
// So are the first snapshots of listeners.
//
// A read that comes while a question is under way waits for the next one: the answer under way may be older than what
// was acknowledged since.

internal import Basics
internal import Calls
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import NativeProtocol

/// Reads that wait for the newest version. Confined to the loop.
final class NewestVersions {
    fileprivate struct Read {
        let call: Call
        /// Whether it is one of ``NewestVersions/countMax``.
        let isCounted: Bool
        let completion: (Result<Void, RequestError>) -> Void
        var attempts: ForwardedAttempts
    }

    /// Reads that the next question is for.
    fileprivate var waiting: [Read] = []
    fileprivate var isAsking = false
    fileprivate var isScheduled = false
    fileprivate var count = 0

    /// Reads of one loop that may wait.
    fileprivate static let countMax = 10_000
    /// How long reads without a deadline wait, and how long a question may take, in milliseconds.
    fileprivate static let patienceMilliseconds: UInt64 = 10_000
    fileprivate static let questionMilliseconds: UInt32 = 2_000
}

extension LeaderLink {
    func whenNewest(
        _ call: Call, isListener: Bool, _ completion: @escaping (Result<Void, RequestError>) -> Void
    ) throws(RequestError) {
        if !isListener {
            guard newest.count < NewestVersions.countMax else {
                throw RequestError(.resourceExhausted, "Too many reads wait for the server that takes the writes.")
            }
            newest.count += 1
        }
        var attempts = ForwardedAttempts(of: call)
        let end = min(attempts.endsAt - min(attempts.endsAt, loop.nowMilliseconds), NewestVersions.patienceMilliseconds)
        attempts.restart(loop.nowMilliseconds, milliseconds: end)
        newest.waiting.append(
            NewestVersions.Read(call: call, isCounted: !isListener, completion: completion, attempts: attempts))
        askLater(milliseconds: 0)
    }

    /// Asks after the other work of the turn, whose reads share the question.
    private func askLater(milliseconds: UInt64) {
        guard !newest.isAsking, !newest.isScheduled else { return }
        newest.isScheduled = true
        let bound = LoopBound(self)
        if milliseconds == 0 {
            loop.execute { bound.value.ask() }
        } else {
            loop.schedule(afterMilliseconds: milliseconds) { bound.value.ask() }
        }
    }

    private func ask() {
        newest.isScheduled = false
        let reads = newest.waiting
        newest.waiting = []
        guard !reads.isEmpty else { return }
        // This server may have become the one that takes the writes.
        if context.leader.isNewest { return resume(reads) }
        guard let connection = connect() else { return failed(reads, "") }
        newest.isAsking = true
        let bound = LoopBound((self, reads))
        connection.unary(
            FirestoreMessages.Method.adminNewestVersion.rpc,
            NewestVersionRequest(store: context.storeName, called).encodedBytes(),
            RequestOptions(deadlineMilliseconds: NewestVersions.questionMilliseconds)
        ) { outcome, reply in
            let (link, reads) = bound.value
            link.newest.isAsking = false
            if outcome.code == .ok, let version = try? StepDownResponse(wire: reply).version {
                link.wait(for: version, reads)
            } else {
                link.failed(reads, outcome.message)
            }
            if !link.newest.waiting.isEmpty { link.askLater(milliseconds: 0) }
        }
    }

    private func wait(for version: UInt64, _ reads: [NewestVersions.Read]) {
        let bound = LoopBound((self, reads))
        let loop = loop
        context.store.whenVisible(version) { outcome in
            loop.execute {
                let (link, reads) = bound.value
                switch outcome {
                case .success: link.resumeUnlessAhead(reads, acknowledged: version)
                case .failure(let error): link.failed(reads, error.message)
                }
            }
        }
    }

    /// While this server catches up from the database it may have a commit that the leader has not acknowledged yet.
    /// Then the leader is asked again: a read at another server must not miss what this one has seen.
    private func resumeUnlessAhead(_ reads: [NewestVersions.Read], acknowledged version: UInt64) {
        let replication = context.store.replication
        replication.noteAcknowledged(through: version)
        if replication.mayBeBeforeLeader { return failed(reads, "its commits are not known yet") }
        resume(reads)
    }

    private func resume(_ reads: [NewestVersions.Read]) {
        for read in reads { end(read, .success(())) }
    }

    private func end(_ read: NewestVersions.Read, _ outcome: Result<Void, RequestError>) {
        if read.isCounted { newest.count -= 1 }
        if read.call.isOpen { read.completion(outcome) }
    }

    /// Ends the reads that wait for the next question.
    func failReads(_ error: RequestError) {
        let reads = newest.waiting
        newest.waiting = []
        for read in reads { end(read, .failure(error)) }
    }

    /// Those that have time left are asked for again.
    private func failed(_ reads: [NewestVersions.Read], _ reason: String) {
        if hasEnded {
            for read in reads { end(read, .failure(.storeIsBeingOpened)) }
            return
        }
        var pause: UInt64 = 0
        for var read in reads {
            let isOver = read.attempts.isOver(loop.nowMilliseconds) || context.store.isCutOff
            guard read.call.isOpen, !isOver else {
                end(read, .failure(.noLeader(reason)))
                continue
            }
            pause = max(pause, read.attempts.nextPause())
            newest.waiting.append(read)
        }
        if !newest.waiting.isEmpty { askLater(milliseconds: pause) }
    }
}
