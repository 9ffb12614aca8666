// Writes: into the queue of the store at once, then to the server in order.

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
    /// Applies a batch for the program, and sends it.
    ///
    /// - Parameters:
    ///   - request: a `CommitRequest` of the engine's database.
    ///   - completion: called on the engine's queue when the server has acknowledged or rejected the batch.
    func write(
        _ request: [UInt8], cancellation: Cancellation?, completion: @escaping @Sendable (RequestError?) -> Void
    ) {
        queue.async {
            if self.isClosed { return completion(RequestError(.cancelled, "The client is closed.")) }
            let ticket = self.numbers.begin()
            do throws(RequestError) {
                let (number, changes) = try self.store.enqueue(request, identity: ticket.identity)
                self.broadcast(changes)
                self.send(number, request, ticket, cancellation: cancellation, completion: completion)
            } catch {
                self.numbers.finish(ticket)
                completion(error)
            }
        }
    }

    /// Sends a batch of the queue.
    func send(
        _ number: UInt64, _ request: [UInt8], _ ticket: CommitSequence.Ticket, cancellation: Cancellation?,
        completion: @escaping @Sendable (RequestError?) -> Void
    ) {
        client.commitInOrder(
            request, ticket: ticket, of: numbers, options: .standard.cancelled(by: cancellation)
        ) { [self] result in
            queue.async {
                self.sent(number, ticket, result)
                switch result {
                case .success: completion(nil)
                case .failure(let error): completion(error)
                }
            }
        }
    }

    /// The server has acknowledged or rejected a batch.
    private func sent(_ number: UInt64, _ ticket: CommitSequence.Ticket, _ result: Result<[UInt8], RequestError>) {
        // The batch stays in the queue if the client ends its calls.
        if isClosed { return }
        do throws(RequestError) {
            let changes: [LocalChange]
            switch result.flatMap({ bytes in
                HearthClient.decode { try CommitResponse(wire: bytes.span.bytes) }
            }) {
            case .success(let response):
                changes = try store.acknowledge(
                    number, results: response.writeResults,
                    commitMicroseconds: UInt64(clamping: response.commitTime.microseconds))
                if !readsInFlight.isEmpty {
                    eventNumber += 1
                    for change in changes { acknowledged.append((eventNumber, change.name)) }
                }
            case .failure: changes = try store.reject(number)
            }
            // Only now will no process send the batch again.
            store.whenDurable { [numbers] in numbers.finish(ticket) }
            broadcast(changes)
            if readsInFlight.isEmpty { collectEagerly() }
        } catch {
            report(error)
        }
    }
}
