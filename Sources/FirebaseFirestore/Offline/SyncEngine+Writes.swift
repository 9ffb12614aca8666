// Writes: into the queue of the store at once, then to the server in order. Writes and replies that wait for the
// engine's queue are taken together: one commit of the store, one hand-over to the loop.

import Basics
import DocumentModel
import FirestoreMessages
import LocalStore

extension CommitSequence.Ticket {
    init(_ identity: BatchIdentity) {
        self.init(
            session: CommitSequence.SessionID(high: identity.sessionHigh, low: identity.sessionLow),
            sequence: identity.sequence)
    }

    var identity: BatchIdentity {
        BatchIdentity(sessionHigh: session.high, sessionLow: session.low, sequence: sequence)
    }
}

extension SyncEngine {
    typealias WriteCompletion = @Sendable (RequestError?) -> Void

    /// What happens to the mutation queue of an engine, which lives until then.
    struct WriteEvent: Sendable {
        enum Kind: Sendable {
            /// The program writes.
            case write(request: [UInt8], cancellation: Cancellation?, completion: WriteCompletion)
            /// The server has acknowledged or rejected a batch.
            case reply(SentBatch, Result<[UInt8], RequestError>)
        }

        let engine: SyncEngine
        let kind: Kind
    }

    /// A batch on its way to the server.
    struct SentBatch: Sendable {
        let number: UInt64
        let ticket: CommitSequence.Ticket
        let completion: WriteCompletion
    }

    /// Applies a batch for the program, and sends it.
    ///
    /// - Parameters:
    ///   - request: a `CommitRequest` of the engine's database.
    ///   - completion: called by the engine's queue when the server has acknowledged or rejected the batch.
    func write(_ request: [UInt8], cancellation: Cancellation?, completion: @escaping WriteCompletion) {
        let kind = WriteEvent.Kind.write(request: request, cancellation: cancellation, completion: completion)
        queue.submit([WriteEvent(engine: self, kind: kind)], mayRun: isLight)
    }

    /// The order of a call that sends a batch.
    func order(
        _ number: UInt64, _ request: [UInt8], _ ticket: CommitSequence.Ticket, cancellation: Cancellation?,
        completion: @escaping WriteCompletion
    ) -> HearthClient.OrderedCommit {
        let sent = SentBatch(number: number, ticket: ticket, completion: completion)
        return HearthClient.OrderedCommit(request: request, ticket: ticket, cancellation: cancellation) { result in
            self.replies.add(WriteEvent(engine: self, kind: .reply(sent, result)))
        }
    }

    /// Processes events in their order. What they change in the store is one commit.
    func take(_ events: [WriteEvent]) {
        var orders: [HearthClient.OrderedCommit] = []
        var endings: [(WriteCompletion, RequestError?)] = []
        var finished: [CommitSequence.Ticket] = []
        if !isClosed { store.beginGroup() }
        for event in events {
            switch event.kind {
            case .write(let request, let cancellation, let completion):
                do throws(RequestError) {
                    orders.append(try enqueue(request, cancellation, completion))
                } catch {
                    endings.append((completion, error))
                }
            case .reply(let batch, let result):
                if remove(batch, result) { finished.append(batch.ticket) }
                if case .failure(let error) = result {
                    endings.append((batch.completion, error))
                } else {
                    endings.append((batch.completion, nil))
                }
            }
        }
        if !finished.isEmpty, readsInFlight.isEmpty { collectEagerly() }
        do throws(RequestError) {
            if !isClosed { try store.endGroup() }
        } catch {
            report(error)
        }
        if !finished.isEmpty {
            // Only now will no process send the batches again.
            store.whenDurable { [numbers, finished] in for ticket in finished { numbers.finish(ticket) } }
        }
        client.commitInOrder(orders, of: numbers)
        for (completion, error) in endings { completion(error) }
    }

    private func enqueue(
        _ request: [UInt8], _ cancellation: Cancellation?, _ completion: @escaping WriteCompletion
    ) throws(RequestError) -> HearthClient.OrderedCommit {
        if isClosed { throw RequestError(.cancelled, "The client is closed.") }
        let ticket = numbers.begin()
        do throws(RequestError) {
            let (number, changes) = try store.enqueue(request, identity: ticket.identity)
            broadcast(changes)
            return order(number, request, ticket, cancellation: cancellation, completion: completion)
        } catch {
            numbers.finish(ticket)
            throw error
        }
    }

    /// Removes a batch from the queue to which the server has replied.
    ///
    /// - Returns: whether it was removed. A batch stays in the queue if the client ends its calls.
    private func remove(_ batch: SentBatch, _ result: Result<[UInt8], RequestError>) -> Bool {
        if isClosed { return false }
        do throws(RequestError) {
            let changes: [LocalChange]
            switch result.flatMap({ bytes in HearthClient.decode { try CommitResponse(wire: bytes.span.bytes) } }) {
            case .success(let response):
                changes = try store.acknowledge(
                    batch.number, results: response.writeResults,
                    commitMicroseconds: UInt64(clamping: response.commitTime.microseconds))
                if !readsInFlight.isEmpty {
                    eventNumber += 1
                    for change in changes { acknowledged.append((eventNumber, change.name)) }
                }
            case .failure: changes = try store.reject(batch.number)
            }
            broadcast(changes)
            return true
        } catch {
            report(error)
            return false
        }
    }
}
