// Calls that wait until the pending writes of the user are acknowledged or rejected.

import Basics
import ClientCache
import Dispatch
import Synchronization

/// A call that waits for pending writes.
struct WriteWait {
    /// Names a wait.
    typealias ID = Int

    let id: ID
    /// What a read depends on: it waits for the writes of the user, also of another one after a change. Nil for a call
    /// that is about the writes of one user.
    let scope: ReadScope?
    /// The number of the first batch that the call does not wait for.
    var end: UInt64
    let body: @Sendable (RequestError?) -> Void
}

extension SyncEngine {
    /// Calls `body` when every batch of the user that was written before is settled, those of earlier processes
    /// included. Batches of other users wait until these are back, and nobody waits for them; but before the user is
    /// known, those of all users count.
    ///
    /// - Parameters:
    ///   - scope: waits no longer than for the last batch that changes one of these documents, and for those of the new
    ///     user if the user changes meanwhile. Nil waits for all batches, and ends as cancelled if the user changes.
    ///   - timeout: waits no longer; nil is without a limit.
    ///   - body: called on the engine's queue, with `.cancelled` if the engine closes or the time is up before.
    /// - Returns: what ``stopWaiting(for:)`` takes.
    func whenWritesAreSettled(
        in scope: ReadScope? = nil, within timeout: DispatchTimeInterval? = nil,
        _ body: @escaping @Sendable (RequestError?) -> Void
    ) -> WriteWait.ID {
        let id = nextWriteWait.add(1, ordering: .relaxed).newValue
        queue.async {
            if self.isClosed { return body(Self.terminatedBeforeWrites) }
            let end = self.endOfBatches(in: scope)
            if !self.store.hasBatch(before: end) { return body(nil) }
            self.writeWaits.append(WriteWait(id: id, scope: scope, end: end, body: body))
            if let timeout { self.queue.async(after: timeout) { [weak self] in self?.cancelWait(id) } }
        }
        return id
    }

    /// The number after the last pending batch that a read of these documents waits for.
    private func endOfBatches(in scope: ReadScope?) -> UInt64 {
        guard let scope, !scope.isUnbounded else { return store.nextBatchNumber }
        return store.endOfBatches(changing: scope.contains)
    }

    /// Ends a wait as cancelled, unless it has ended.
    func stopWaiting(for id: WriteWait.ID) {
        queue.async { self.cancelWait(id) }
    }

    private func cancelWait(_ id: WriteWait.ID) {
        guard let index = writeWaits.firstIndex(where: { $0.id == id }) else { return }
        writeWaits.remove(at: index).body(RequestError(.cancelled, "The call was cancelled."))
    }

    /// Whether writes of the user are pending. Waits for the engine's queue; not to be called on it.
    var hasPendingWrites: Bool {
        let isPending = Atomic(false)
        queue.sync { isPending.store(!self.isClosed && !self.store.isQueueEmpty, ordering: .relaxed) }
        return isPending.load(ordering: .relaxed)
    }

    static let terminatedBeforeWrites = RequestError(
        .cancelled, "The client was terminated before all writes were settled.")

    /// Ends the waits whose batches are settled. On the engine's queue.
    func resumeWriteWaits() {
        if writeWaits.isEmpty { return }
        let ready = writeWaits.filter { !store.hasBatch(before: $0.end) }
        if ready.isEmpty { return }
        writeWaits.removeAll { wait in ready.contains { $0.id == wait.id } }
        for wait in ready { wait.body(nil) }
    }

    /// The store has another user: reads wait for the writes of this one, and calls about those of the one before end.
    /// On the engine's queue.
    func changeUserOfWriteWaits() {
        let ended = writeWaits.filter { $0.scope == nil }
        writeWaits.removeAll { $0.scope == nil }
        for index in writeWaits.indices { writeWaits[index].end = endOfBatches(in: writeWaits[index].scope) }
        let error = RequestError(.cancelled, "The user has changed before all writes were settled.")
        for wait in ended { wait.body(error) }
    }

    /// Ends all waits. On the engine's queue.
    func endWriteWaits(_ error: RequestError) {
        let waits = writeWaits
        writeWaits = []
        for wait in waits { wait.body(error) }
    }
}
