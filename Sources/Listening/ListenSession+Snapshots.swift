// Sending what has changed since the last snapshot.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages

extension ListenSession {
    /// Begins a snapshot at the hub's position, unless targets must be judged before.
    /// - Returns: false if there is nothing to send.
    func beginSnapshot() -> Bool {
        if mustSendSnapshot, !hasAdvanced {
            hub.advance()
            hasAdvanced = true
        }
        // A snapshot shows a version at which its targets were judged.
        if mustJudge { return true }
        dirtyWindows.removeAll { !$0.isActive }
        guard mustSendSnapshot || !pending.isEmpty || staleBase != nil || !dirtyWindows.isEmpty else { return false }
        let comparisons = takeComparisons()
        let base = comparisons.reduce(pending.base ?? hub.position) { min($0, $1.base) }
        let begun = Snapshot(
            version: hub.position, base: base, isRequired: mustSendSnapshot, comparisons: comparisons,
            entries: pending.entries,
            messagesBefore: queue.appended)
        pending = PendingChanges()
        mustSendSnapshot = false
        hasAdvanced = false
        step(begun)
        return true
    }

    /// The targets of which two states must be compared.
    private func takeComparisons() -> [Snapshot.Comparison] {
        defer {
            staleBase = nil
            dirtyWindows = []
        }
        let compared = staleBase == nil ? dirtyWindows : targets.values.filter(\.isCurrent)
        return compared.map { target in
            let base = min(target.windowBase ?? hub.position, staleBase ?? hub.position)
            target.windowBase = nil
            target.isBeingRead = true
            let start = max(base, target.since)
            let shared = hub.shared.comparison(of: target, from: start, to: hub.position)
            return Snapshot.Comparison(target: target, base: start, shared: shared)
        }
    }

    /// Continues the snapshot until the queue is full or a step's budget is spent.
    func stepSnapshot() {
        guard let current = snapshot.take() else { return }
        step(current)
    }

    private func step(_ snapshot: consuming Snapshot) {
        do throws(RequestError) {
            try checkStorage()
            while !queue.isFull {
                if let reading = snapshot.reading {
                    let continued = try step(reading)
                    snapshot.reading = continued.isFinished ? nil : continued
                    if !continued.isFinished { break }
                } else if let comparison = snapshot.comparisons.last {
                    if try !begin(comparison, &snapshot) { break }
                    snapshot.comparisons.removeLast()
                } else if snapshot.nextEntry < snapshot.entries.count {
                    try append(snapshot.entries[snapshot.nextEntry], of: snapshot)
                    snapshot.nextEntry += 1
                } else {
                    return end(snapshot)
                }
            }
        } catch {
            if !waitsForStorage(after: error) { return abandon(snapshot, error) }
        }
        self.snapshot = consume snapshot
    }

    /// The snapshot is complete.
    private func end(_ current: borrowing Snapshot) {
        release(current.entries.count)
        guard current.isRequired || queue.appended > current.messagesBefore else { return }
        queue.append(.noChange, [], at: current.version)
        for target in targets.values where target.isOnce && target.isCurrent {
            targets[target.id] = nil
            retire(target)
            queue.append(.remove, [target.id])
        }
    }

    /// A document could not be read. If the client was so slow that the snapshot's version is not readable any more,
    /// the targets are sent again from the start; any other error ends them.
    private func abandon(_ current: borrowing Snapshot, _ error: RequestError) {
        release(current.entries.count)
        for target in targets.values { target.isBeingRead = false }
        if current.version < hub.store.oldestReadTime {
            staleBase = current.base
            return forgetPending()
        }
        for target in targets.values where target.isCurrent { fail(target, error) }
    }

    // MARK: Comparisons

    /// - Returns: false if it must be called again.
    /// - Throws: `pending`.
    private func begin(
        _ comparison: Snapshot.Comparison, _ snapshot: inout Snapshot
    ) throws(RequestError) -> Bool {
        let target = comparison.target
        guard target.isActive else { return true }
        if comparison.base < hub.store.oldestReadTime {
            queue.append(.reset, [target.id])
            snapshot.reading = TargetReading(target, from: nil, to: snapshot.version)
            return true
        }
        do throws(RequestError) {
            if let shared = comparison.shared {
                try shared.step(reader)
                if !shared.isFinished { return false }
                append(shared, of: target, to: &snapshot)
                return true
            }
        } catch {
            if error.isPending { throw error }
            // The target is compared alone, which ends with the same error or without it.
        }
        snapshot.reading = TargetReading(target, from: comparison.base, target.window, to: snapshot.version)
        return true
    }

    /// Adds the differences of a finished comparison to the documents that are sent.
    private func append(_ comparison: WindowComparison, of target: Target, to snapshot: inout Snapshot) {
        target.window = comparison.window
        target.isBeingRead = false
        hold(comparison.differences.count)
        for difference in comparison.differences {
            let hit = PendingChanges.Hit(target: target, matches: difference.isResult)
            snapshot.entries.append(PendingChanges.Entry(document: difference.document, first: hit))
        }
    }

    /// - Returns: the reading to be continued: another one if the base is not readable any more.
    private func step(_ reading: TargetReading) throws(RequestError) -> TargetReading {
        let target = reading.target
        guard target.isActive else {
            reading.cancel()
            return reading
        }
        do throws(RequestError) {
            try reading.step(reader, into: &queue)
        } catch {
            guard error.code == .failedPrecondition, reading.base != nil, reading.version >= hub.store.oldestReadTime
            else { throw error }
            queue.append(.reset, [target.id])
            return TargetReading(target, from: nil, to: reading.version)
        }
        guard reading.isFinished else { return reading }
        target.window = reading.window
        target.isBeingRead = false
        // The client discarded its state at RESET.
        if reading.base == nil { queue.append(.current, [target.id], at: reading.version) }
        return reading
    }

    // MARK: Changed documents

    /// Appends what has become of a document.
    private func append(_ entry: PendingChanges.Entry, of snapshot: borrowing Snapshot) throws(RequestError) {
        let path = entry.document.path
        // The most frequent case: one target, which gets all fields.
        if let target = entry.onlyMatch, target.selection == nil,
            let document = try hub.shared.document(entry.document, at: snapshot.version, reader)
        {
            return queue.appendChange(document, path.byteSpan, nil, targets: [target.id])
        }
        var changed: [Target] = []
        var left: [Target] = []
        entry.forEachHit { hit in
            if hit.matches { changed.append(hit.target) } else { left.append(hit.target) }
        }
        if changed.isEmpty, left.isEmpty { return }
        guard let document = try hub.shared.document(entry.document, at: snapshot.version, reader) else {
            return queue.appendDelete(path.byteSpan, removed: left.map(\.id), at: snapshot.version)
        }
        if changed.isEmpty, document.updateMicroseconds <= snapshot.base {
            return queue.appendRemove(path.byteSpan, removed: left.map(\.id), at: snapshot.version)
        }
        append(document, path, to: changed, left: left, at: snapshot.version)
    }

    /// One message for all targets that get all fields, and one for each of the others.
    private func append(
        _ document: EncodedDocument, _ path: [UInt8], to changed: [Target], left: [Target], at version: UInt64
    ) {
        let whole = changed.filter { $0.selection == nil }.map(\.id)
        let wholeRemoved = left.filter { $0.selection == nil }.map(\.id)
        if !whole.isEmpty || !wholeRemoved.isEmpty {
            queue.appendChange(document, path.byteSpan, nil, targets: whole, removed: wholeRemoved)
        }
        for target in changed {
            guard let selection = target.selection else { continue }
            queue.appendChange(document, path.byteSpan, selection, targets: [target.id])
        }
        let others = left.filter { $0.selection != nil }.map(\.id)
        if !others.isEmpty { queue.appendRemove(path.byteSpan, removed: others, at: version) }
    }
}
