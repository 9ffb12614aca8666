// Judging targets: whether the client may see them, at first and whenever that may have changed.
//
//     a target is loaded at version R          each part is judged at R, which the first snapshot shows
//     a document of its verdict has changed,   the parts that rest on it, or all of them, are judged at the hub's
//     changes are lost, judgeAgain()           position
//
// `next(into:)` judges first: while a part waits for its verdict, no message of the stream is sent and no snapshot
// begins. So what is sent was allowed at the snapshot's version, and at the hub's position when it is sent.
//
// Parts whose rules read what is not in memory stay due, and are judged when it is there. The others of the step are
// judged meanwhile, so that everything that lacks is asked for at once.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import Storage

extension ListenSession {
    /// Parts that are judged in one step, at most: rules may be costly, and then the time ends the step.
    private static let judgementsPerStep = 64

    /// Whether a part waits for its verdict.
    var mustJudge: Bool { !dueParts.isEmpty }

    // MARK: What is judged

    /// Has all targets judged again: what the judge decides by has changed, other than documents.
    package func judgeAgain() {
        makeAllDue()
        if !mustJudge { return }
        touch()
        hub.wakeTouched()
    }

    func makeAllDue() {
        if judge == nil { return }
        for target in targets.values where target.isRouted { makeDue(target) }
    }

    /// Has a target judged that is loaded at `target.since`.
    func judgeFirst(_ target: Target) {
        guard let judgement = target.judgement else { return }
        for index in judgement.parts.indices { judgement.parts[index].isJudged = false }
        makeDue(target)
    }

    /// A document has changed that the verdict of a part rests on.
    func noteChange(under part: TargetPart) {
        makeDue(part)
        touch()
    }

    private func makeDue(_ target: Target) {
        guard let judgement = target.judgement else { return }
        for index in judgement.parts.indices { makeDue(TargetPart(target: target, index: index)) }
    }

    private func makeDue(_ part: TargetPart) {
        guard let judgement = part.target.judgement, !judgement.parts[part.index].isDue else { return }
        judgement.parts[part.index].isDue = true
        dueParts.append(part)
    }

    /// The verdicts of a target that is removed do not matter any more.
    func removeJudgement(of target: Target) {
        guard let judgement = target.judgement else { return }
        target.judgement = nil
        for (index, part) in judgement.parts.enumerated() where !part.basis.isEmpty {
            hub.move(TargetPart(target: target, index: index), from: part.basis, to: [], of: database)
        }
    }

    // MARK: Verdicts

    /// Judges some of the parts that are due. None of them waits for storage.
    func stepJudgement() {
        guard let judge else { return dueParts.removeAll() }
        // A stream may have been idle for longer than the retention.
        if hub.position < hub.store.oldestReadTime { hub.advance() }
        let start = SystemClock.monotonicNanoseconds()
        let cold = takeColdRead()
        var lacking: [TargetPart] = []
        for _ in 0..<Self.judgementsPerStep {
            guard let part = dueParts.popLast() else { break }
            if !decide(part, by: judge, cold) { lacking.append(part) }
            if SystemClock.monotonicNanoseconds() - start >= hub.limits.judgementNanoseconds { break }
        }
        if lacking.isEmpty { return }
        dueParts += lacking
        waitForStorage()
    }

    /// - Returns: false if the judge must wait for storage; the part is due then.
    private func decide(_ part: TargetPart, by judge: any TargetJudge, _ cold: ColdRead) -> Bool {
        guard let judgement = part.target.judgement else { return true }
        let isFirst = !judgement.parts[part.index].isJudged
        let version = isFirst ? part.target.since : hub.position
        do throws(RequestError) {
            let paths = try Self.verdict(on: part.index, of: judgement.subject, by: judge, at: version, cold)
            judgement.parts[part.index].isDue = false
            try keep(Set(paths), judgement, part)
            judgement.parts[part.index].isJudged = true
            // The changes since that version did not find the part: it rested on nothing yet.
            if version < hub.position { makeDue(part) }
        } catch {
            if error.isPending { return false }
            judgement.parts[part.index].isDue = false
            if !isFirst || !loadAgain(part.target, after: error) { deny(part.target, error) }
        }
        return true
    }

    /// Removes a target, and what is in the queue of it: REMOVE is the next message that concerns it.
    ///
    /// A target for one snapshot (`once`) ends when its snapshot is in the queue. It is not judged after that, and the
    /// rest of the queue, one page, is still sent.
    private func deny(_ target: Target, _ error: RequestError) {
        targets[target.id] = nil
        retire(target)
        queue.remove(target.id, cause: error)
    }

    private static func verdict(
        on index: Int, of subject: TargetJudgement.Subject, by judge: any TargetJudge, at version: UInt64,
        _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]] {
        switch subject {
        case .documents(let paths):
            let path = paths[index]
            return try judge.judge(document: path.byteSpan, at: version, cold)
        case .query(let query, let parent):
            return try judge.judge(query: query, parent: parent.byteSpan, at: version, cold)
        }
    }

    /// From now on changes of these documents, and of no others, have the part judged again.
    private func keep(
        _ basis: Set<[UInt8]>, _ judgement: TargetJudgement, _ part: TargetPart
    ) throws(RequestError) {
        let old = judgement.parts[part.index].basis
        if basis == old { return }
        let growth = TargetJudgement.byteCount(of: basis) - TargetJudgement.byteCount(of: old)
        if growth > 0, hub.targetBytes + growth > hub.limits.targetBytes { throw .noMemoryForListeners }
        hub.targetBytes += growth
        judgement.setBasis(basis, ofPart: part.index)
        hub.move(part, from: old, to: basis, of: database)
    }
}

extension RequestError {
    static let noMemoryForListeners = RequestError(
        .resourceExhausted, "The server has no memory for more listeners. Try again later.")
}
