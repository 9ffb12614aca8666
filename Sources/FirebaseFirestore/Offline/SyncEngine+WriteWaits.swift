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
    /// The number of the first batch that the call does not wait for.
    let end: UInt64
    let body: @Sendable (RequestError?) -> Void
}

extension SyncEngine {
    /// Calls `body` when every batch of the user that was written before is settled, those of earlier processes
    /// included. Batches of other users wait until these are back, and nobody waits for them; but before the user is
    /// known, those of all users count.
    ///
    /// - Parameters:
    ///   - scope: waits no longer than for the last batch that changes one of these documents.
    ///   - timeout: waits no longer; nil is without a limit.
    ///   - body: called on the engine's queue, with `.cancelled` if the user changes, the engine closes or the time is
    ///     up before.
    /// - Returns: what ``stopWaiting(for:)`` takes.
    func whenWritesAreSettled(
        in scope: ReadScope = .everything, within timeout: DispatchTimeInterval? = nil,
        _ body: @escaping @Sendable (RequestError?) -> Void
    ) -> WriteWait.ID {
        let id = nextWriteWait.add(1, ordering: .relaxed).newValue
        queue.async {
            if self.isClosed { return body(Self.terminatedBeforeWrites) }
            let store = self.store
            let end = scope.isUnbounded ? store.nextBatchNumber : store.endOfBatches(changing: scope.contains)
            if !store.hasBatch(before: end) { return body(nil) }
            self.writeWaits.append(WriteWait(id: id, end: end, body: body))
            if let timeout { self.queue.async(after: timeout) { [weak self] in self?.cancelWait(id) } }
        }
        return id
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

    /// Ends all waits. On the engine's queue.
    func endWriteWaits(_ error: RequestError) {
        let waits = writeWaits
        writeWaits = []
        for wait in waits { wait.body(error) }
    }
}
