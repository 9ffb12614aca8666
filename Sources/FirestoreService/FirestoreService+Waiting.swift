// Calls whose reads have to wait for storage.
//
//     read ──▶ pending ──▶ reader.whenReady ─ ─ threads of the storage ─ ─ ▶ the loop ──▶ the same read again
//
// A call that waits holds its request and a read point, and nothing of the storage. Its loop serves others meanwhile.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore

extension FirestoreService {
    /// Does the work of a call again when what it lacked is in memory. An error ends the call.
    ///
    /// - Parameter work: changes nothing before it throws `pending`. It is not done if the call is over by then.
    func repeatWhenReady(_ call: Call, _ work: @escaping (FirestoreService) throws -> Void) {
        whenReady(call) { service, ready in
            guard call.isOpen else { return }
            do {
                try ready.get()
                try work(service)
            } catch {
                service.failOrRepeat(call, error, work)
            }
        }
    }

    /// Continues the work of a call after the other work of its loop has had its turn. An error ends the call.
    ///
    /// - Parameter work: changes nothing before it throws `pending`. It is not done if the call is over by then.
    func continueLater(_ call: Call, _ work: @escaping (FirestoreService) throws -> Void) {
        let bound = LoopBound((service: self, work: work))
        call.loop.execute {
            let (service, work) = bound.value
            guard call.isOpen else { return }
            do {
                try work(service)
            } catch {
                service.failOrRepeat(call, error, work)
            }
        }
    }

    /// Continues on the loop's thread when what the last read lacked is in memory, or cannot be read. The call may be
    /// over by then.
    func whenReady(_ call: Call, _ body: @escaping (FirestoreService, Result<Void, RequestError>) -> Void) {
        let bound = LoopBound((service: self, body: body))
        reader.whenReady { ready in
            call.loop.execute {
                let (service, body) = bound.value
                body(service, ready)
            }
        }
    }

    /// Ends a call with what its work has thrown, unless storage must be waited for.
    func failOrRepeat(_ call: Call, _ error: any Error, _ work: @escaping (FirestoreService) throws -> Void) {
        if (error as? RequestError)?.isPending == true { repeatWhenReady(call, work) } else { fail(call, error) }
    }
}

/// A source of a streaming reply that waits for storage. Confined to the loop.
final class StorageWait {
    /// Nil while it waits.
    private var outcome: Result<Void, RequestError>?

    /// Waits for what the last read lacked, and then has the source of the call asked again.
    init(_ service: FirestoreService, _ call: Call) {
        let bound = LoopBound(self)
        service.reader.whenReady { ready in
            call.loop.execute {
                bound.value.outcome = ready
                call.resume()
            }
        }
    }

    var isOver: Bool { outcome != nil }

    /// - Throws: why what was waited for cannot be read.
    func finish() throws(RequestError) { try outcome?.get() }
}

/// Commits that wait until the documents they are about are in memory. The commits of a connection keep their order.
/// Confined to the loop.
final class WaitingCommits {
    /// Hands a commit over. Gets why what it waited for cannot be read; may add the commit again, which then stays
    /// before those of its connection that came later.
    typealias Submission = (_ ready: Result<Void, RequestError>) -> Void

    private let confined = Confined<[ObjectIdentifier: [Submission]]>([:])

    private var waiting: [ObjectIdentifier: [Submission]] {
        _read { yield confined.state }
        _modify { yield &confined.state }
    }

    /// Whether a commit must wait: for what it writes and what its transaction has read, or for the commits of its
    /// connection before it.
    func mustWait(_ call: Call, _ request: CommitRequest, _ reader: StoreReader) -> Bool {
        if !waiting.isEmpty, waiting[ObjectIdentifier(call.carrier.orderedConnection)] != nil { return true }
        guard reader.mayBePending else { return false }
        let lacksWritten = reader.prefetch(request.writes)
        let lacksRead = request.transaction.map { reader.prefetchReads(of: $0) } ?? false
        return lacksWritten || lacksRead
    }

    /// Keeps a commit that must wait.
    ///
    /// - Parameter submit: called on the loop's thread.
    func add(_ call: Call, _ reader: StoreReader, _ submit: @escaping Submission) {
        let carrier = ObjectIdentifier(call.carrier.orderedConnection)
        if waiting[carrier] != nil {
            waiting[carrier]?.append(submit)
            return
        }
        waiting[carrier] = [submit]
        let bound = LoopBound((self, call.carrier.orderedConnection))
        reader.whenReady { ready in
            call.loop.execute { bound.value.0.submitAll(of: ObjectIdentifier(bound.value.1), ready) }
        }
    }

    /// - Parameter ready: what the first of them waited for.
    private func submitAll(of carrier: ObjectIdentifier, _ ready: Result<Void, RequestError>) {
        var ready = ready
        var submissions = waiting.removeValue(forKey: carrier) ?? []
        while !submissions.isEmpty {
            submissions.removeFirst()(ready)
            ready = .success(())
            if waiting[carrier] != nil {
                waiting[carrier]? += submissions
                return
            }
        }
    }
}
