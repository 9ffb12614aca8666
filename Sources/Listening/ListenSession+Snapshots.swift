// Sending what has changed since the last snapshot.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages

extension ListenSession {
    /// Begins a snapshot at the hub's position.
    /// - Returns: false if there is nothing to send.
    func beginSnapshot() -> Bool {
        if owesSnapshot { hub.advance() }
        dirtyWindows.removeAll { !$0.isActive }
        guard owesSnapshot || !pending.isEmpty || staleBase != nil || !dirtyWindows.isEmpty else { return false }
        let comparisons = takeComparisons()
        let base = comparisons.reduce(pending.base ?? hub.position) { min($0, $1.base) }
        snapshot = Snapshot(
            version: hub.position, base: base, isOwed: owesSnapshot, comparisons: comparisons, entries: pending.entries,
            messagesBefore: queue.appended)
        pending = PendingChanges()
        owesSnapshot = false
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
            return Snapshot.Comparison(target: target, base: max(base, target.since))
        }
    }

    /// Continues the snapshot until the queue is full or a step's budget is spent.
    func stepSnapshot() {
        guard var current = snapshot.take() else { return }
        do throws(RequestError) {
            if var reading = current.reading.take() {
                try step(&reading)
                if !reading.isFinished { current.reading = consume reading }
            } else if let comparison = current.comparisons.popLast() {
                current.reading = begin(comparison, to: current.version)
            } else if current.nextEntry < current.entries.count {
                try appendEntries(&current)
            } else {
                return end(current)
            }
        } catch {
            return abandon(current, error)
        }
        snapshot = consume current
    }

    /// The snapshot is complete.
    private func end(_ current: borrowing Snapshot) {
        release(current.entries.count)
        guard current.isOwed || queue.appended > current.messagesBefore else { return }
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

    private func begin(_ comparison: Snapshot.Comparison, to version: UInt64) -> TargetReading? {
        let target = comparison.target
        guard target.isActive else { return nil }
        if comparison.base >= hub.store.oldestReadTime {
            return TargetReading(target, from: comparison.base, target.window, to: version)
        }
        queue.append(.reset, [target.id])
        return TargetReading(target, from: nil, to: version)
    }

    private func step(_ reading: inout TargetReading) throws(RequestError) {
        let target = reading.target
        guard target.isActive else { return reading.cancel() }
        do throws(RequestError) {
            try reading.step(reader, into: &queue)
        } catch {
            guard error.code == .failedPrecondition, reading.base != nil, reading.version >= hub.store.oldestReadTime
            else { throw error }
            // The base is not readable any more.
            queue.append(.reset, [target.id])
            reading = TargetReading(target, from: nil, to: reading.version)
            return
        }
        guard reading.isFinished else { return }
        target.window = reading.window
        target.isBeingRead = false
        // The client discarded its state at RESET.
        if reading.base == nil { queue.append(.current, [target.id], at: reading.version) }
    }

    // MARK: Changed documents

    private func appendEntries(_ current: inout Snapshot) throws(RequestError) {
        while current.nextEntry < current.entries.count, !queue.isFull {
            try append(current.entries[current.nextEntry], at: current.version)
            current.nextEntry += 1
        }
    }

    /// Appends what has become of a document.
    private func append(_ entry: PendingChanges.Entry, at version: UInt64) throws(RequestError) {
        var changed: [Target] = []
        var left: [Target] = []
        entry.forEachHit { hit in
            if hit.matches { changed.append(hit.target) } else if hit.matchedBefore { left.append(hit.target) }
        }
        if changed.isEmpty, left.isEmpty { return }
        try reader.withDocument(entry.path.byteSpan, at: version) { document in
            guard let document else {
                return queue.appendDelete(entry.path.byteSpan, removed: left.map(\.id), at: version)
            }
            append(document, to: changed, left: left, at: version)
        }
    }

    /// One message for all targets that get all fields, and one for each of the others.
    private func append(_ document: DocumentFields, to changed: [Target], left: [Target], at version: UInt64) {
        let whole = changed.filter { $0.selection == nil }.map(\.id)
        let wholeLeft = left.filter { $0.selection == nil }.map(\.id)
        if !whole.isEmpty || !wholeLeft.isEmpty {
            queue.appendChange(document, nil, targets: whole, removed: wholeLeft)
        }
        for target in changed {
            guard let selection = target.selection else { continue }
            queue.appendChange(document, selection, targets: [target.id], removed: [])
        }
        let others = left.filter { $0.selection != nil }.map(\.id)
        if !others.isEmpty { queue.appendRemove(document.path, removed: others, at: version) }
    }
}
