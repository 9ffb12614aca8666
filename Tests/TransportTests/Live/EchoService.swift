// A service for tests: what it does with a call is told by the method.

import DocumentModel
import Synchronization

@testable import Transport

/// - GetDocument: echoes the message.
/// - Commit: keeps the call open until the test answers it.
/// - RunQuery: the message is a count and a size, both `u32`; streams so many messages of that size, numbered.
/// - Write: echoes each message as it comes, ends when the client does.
/// - Rollback: fails with ABORTED and the message as text.
/// - DeleteDocument: answers with as many bytes as the message's `u32` says.
final class EchoService: ServiceHandler {
    let record: Record

    /// What happened, for any thread.
    final class Record: Sendable {
        struct State {
            var pending: [Call] = []
            var cancelled: [CancellationReason] = []
            var sourcesCancelled = 0
            var messagesProduced = 0
            /// Heads of the calls that began.
            var heads: [RequestHead] = []
            /// What clients showed with the calls that began.
            var authorizations: [String?] = []
            /// Write asks its clients to stop after each message.
            var holdsWrites = false
        }
        let state = Mutex(State())
        let changed = Signal()

        /// Waits until the state is as `condition` says; false when it is not after a minute.
        func reaches(_ condition: (State) -> Bool) -> Bool {
            changed.wait { state.withLock { condition($0) } }
        }
    }

    init(record: Record = Record()) { self.record = record }

    func begin(_ call: Call, _ head: RequestHead, payload: RawSpan) {
        record.state.withLock {
            $0.heads.append(head)
            $0.authorizations.append(call.authorization)
        }
        switch head.method {
        case .getDocument: call.respond { $0.append(payload) }
        case .commit:
            record.state.withLock { $0.pending.append(call) }
            record.changed.notify()
        case .runQuery:
            let count = Int(UInt32(littleEndian: payload.loadInteger(at: 0)))
            let size = Int(UInt32(littleEndian: payload.loadInteger(at: 4)))
            call.stream(CountingSource(count: count, size: size, record: record))
        case .write:
            call.context = record
            call.send { $0.append(payload) }
            if head.isComplete { call.finish(.ok) }
        case .rollback: call.fail(.aborted, String(repairingUTF8: payload))
        case .deleteDocument:
            let size = Int(UInt32(littleEndian: payload.loadInteger(at: 0)))
            call.respond { $0.append([UInt8](repeating: 7, count: size)) }
        default: call.fail(.unimplemented, "not in this service")
        }
    }

    func message(_ call: Call, payload: RawSpan) {
        if record.state.withLock({ $0.holdsWrites }) { call.holdMessages() }
        call.send { $0.append(payload) }
    }

    func halfClosed(_ call: Call) { call.finish(.ok) }

    func cancelled(_ call: Call, _ reason: CancellationReason, context: AnyObject?) {
        record.state.withLock {
            $0.cancelled.append(reason)
            $0.pending.removeAll { $0 == call }
        }
        record.changed.notify()
    }
}

/// Numbered messages of one size.
final class CountingSource: ResponseSource {
    private var next = 0
    private let count: Int
    private let size: Int
    private let record: EchoService.Record

    init(count: Int, size: Int, record: EchoService.Record) {
        self.count = count
        self.size = size
        self.record = record
    }

    func next(into output: inout WireWriter) -> SourceStep {
        guard next < count else { return .finished }
        output.append(littleEndian: UInt32(next))
        output.append([UInt8](repeating: UInt8(truncatingIfNeeded: next), count: max(0, size - 4)))
        next += 1
        record.state.withLock { $0.messagesProduced += 1 }
        return .message
    }

    func cancelled() {
        record.state.withLock { $0.sourcesCancelled += 1 }
        record.changed.notify()
    }
}
