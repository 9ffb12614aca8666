// Writes: into the queue of the store at once, then to the server in order. Writes and replies that wait for the
// engine's queue are taken together: one commit of the store, one hand-over to the loop.

import Basics
import ClientCache
import Dispatch
import DocumentModel
import FirestoreMessages
import HearthClient

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

    /// Events of the mutation queue of an engine, which stays alive until then.
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

    /// What the server has replied to a batch.
    typealias SentReply = (batch: SentBatch, result: Result<[UInt8], RequestError>)

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
    ///
    /// - Parameters:
    ///   - user: whose batch it is; nil before the user of the program is known.
    ///   - wasAccepted: whether an earlier process has written it.
    func order(
        _ number: UInt64, _ request: [UInt8], _ ticket: CommitSequence.Ticket, user: String?,
        wasAccepted: Bool = false, cancellation: Cancellation?, completion: @escaping WriteCompletion
    ) -> HearthClient.OrderedCommit {
        let sent = SentBatch(number: number, ticket: ticket, completion: completion)
        return HearthClient.OrderedCommit(
            request: request, ticket: ticket, user: user, wasAccepted: wasAccepted, cancellation: cancellation
        ) { result in
            self.replies.add(WriteEvent(engine: self, kind: .reply(sent, result)))
        }
    }

    /// Processes events: first the replies, then the writes, each kind in its order. No write depends on a reply that
    /// came after it. What they change in the store is one commit.
    func take(_ events: [WriteEvent]) {
        var replies: [SentReply] = []
        var orders: [HearthClient.OrderedCommit] = []
        var endings: [(WriteCompletion, RequestError?)] = []
        if !isStoreClosed { store.beginGroup() }
        for event in events {
            guard case .reply(let batch, let result) = event.kind else { continue }
            replies.append((batch, result))
            if case .failure(let error) = result {
                endings.append((batch.completion, error))
            } else {
                endings.append((batch.completion, nil))
            }
        }
        let settled = settle(replies)
        for event in events {
            guard case .write(let request, let cancellation, let completion) = event.kind else { continue }
            do throws(RequestError) {
                orders.append(try enqueue(request, cancellation, completion))
            } catch {
                endings.append((completion, error))
            }
        }
        if !settled.isEmpty { collectEagerly() }
        do throws(RequestError) {
            if !isStoreClosed { try store.endGroup() }
        } catch {
            report(error)
        }
        if !settled.isEmpty {
            // Only then will no process send the batches again.
            store.whenDurable { [numbers] in for batch in settled { numbers.finish(batch.ticket) } }
        }
        client.commitInOrder(orders, of: numbers)
        for (completion, error) in endings { completion(error) }
        if !settled.isEmpty { resumeWriteWaits() }
    }

    private func enqueue(
        _ request: [UInt8], _ cancellation: Cancellation?, _ completion: @escaping WriteCompletion
    ) throws(RequestError) -> HearthClient.OrderedCommit {
        if isClosed { throw RequestError(.cancelled, "The client is closed.") }
        if nextUser != nil { throw RequestError(.resourceExhausted, "The cache has no room to change the user.") }
        if store.isUnshown {
            var changes: [LocalChange] = []
            defer { broadcast(changes) }
            try store.showRest(changing: &changes)
        }
        let ticket = numbers.begin()
        do throws(RequestError) {
            let (number, changes) = try store.enqueue(request, identity: ticket.identity)
            broadcast(changes)
            let user = store.isUserKnown ? store.user : nil
            return order(number, request, ticket, user: user, cancellation: cancellation, completion: completion)
        } catch {
            numbers.finish(ticket)
            throw error
        }
    }

    /// Removes the batches from the queue to which the server has replied. If the store cannot take the replies, it
    /// gets them again after a pause.
    ///
    /// - Returns: the batches that were removed. Batches stay in the queue if the client ends its calls.
    private func settle(_ replies: [SentReply]) -> [SentBatch] {
        if isStoreClosed { return [] }
        unsettled += isClosed ? replies.filter { !Self.isCancellation($0.result) } : replies
        if unsettled.isEmpty || isSettlingLater { return [] }
        var batches: [SentBatch] = []
        do throws(RequestError) {
            while !unsettled.isEmpty {
                let settled = try store.settle(unsettled.map { BatchReply($0.batch.number, Self.outcome($0.result)) })
                if !readsInFlight.isEmpty {
                    eventNumber += 1
                    for name in settled.acknowledgedNames { acknowledged.append((eventNumber, name)) }
                }
                batches += unsettled.prefix(settled.replyCount).map(\.batch)
                unsettled.removeFirst(settled.replyCount)
                if isClosed { continue }
                broadcast(settled.changes)
                resolveLimbo(after: settled.acknowledgedNames)
            }
            settlingFailure.ended()
        } catch {
            settlingFailure.occurred(error)
            isSettlingLater = true
            queue.async(after: Self.pause) { [weak self] in
                guard let self else { return }
                isSettlingLater = false
                take([])
            }
        }
        return batches
    }

    private static func isCancellation(_ result: Result<[UInt8], RequestError>) -> Bool {
        if case .failure(let error) = result { error.code == .cancelled } else { false }
    }

    private static func outcome(_ result: Result<[UInt8], RequestError>) -> BatchReply.Outcome {
        switch result.flatMap({ bytes in HearthClient.decode { try CommitResponse(wire: bytes.span.bytes) } }) {
        case .success(let response):
            .acknowledged(
                results: response.writeResults,
                commitMicroseconds: UInt64(clamping: response.commitTime.microseconds))
        case .failure: .rejected
        }
    }
}
