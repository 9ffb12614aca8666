// A service for tests: the method says what it does with a call.

package import Basics
package import Calls

#if !THREAD_SANITIZER
    // See ThreadSanitizer.swift.
    package import Synchronization
#endif

/// - GetDocument: echoes the message.
/// - Commit: keeps the call open until the test answers it.
/// - RunQuery: the message is a count and a size, both `u32`; streams so many messages of that size, numbered.
/// - Write: echoes each message as it comes, ends when the client does.
/// - Rollback: fails with ABORTED and the message as text.
/// - DeleteDocument: answers with as many bytes as the message's `u32` says.
package final class EchoService: ServiceHandler {
    package let record: Record

    /// What happened, for any thread.
    package final class Record: Sendable {
        package struct State {
            package var pending: [Call] = []
            package var cancelled: [CancellationReason] = []
            package var sourcesCancelled = 0
            package var messagesProduced = 0
            /// Heads of the calls that began.
            package var heads: [RequestHead] = []
            /// What clients showed with the calls that began.
            package var authorizations: [String?] = []
            /// Where these calls came from.
            package var origins: [Origin] = []
            /// Write asks its clients to stop after each message.
            package var holdsWrites = false
        }
        /// Where a call came from, and over what.
        package struct Origin: Equatable, Sendable {
            package var certificateNames: [String] = []
            package var isLoopback = true
            package var isProxied = false
            /// The client that a trusted proxy names, or the proxy itself; nil if no trusted proxy has sent the call.
            package var forwardedFor: String?

            package init(
                certificateNames: [String] = [], isLoopback: Bool = true, isProxied: Bool = false,
                forwardedFor: String? = nil
            ) {
                self.certificateNames = certificateNames
                self.isLoopback = isLoopback
                self.isProxied = isProxied
                self.forwardedFor = forwardedFor
            }

            init(_ call: Call) {
                let origin = call.origin
                self.init(
                    certificateNames: call.certificateNames, isLoopback: call.isLoopback, isProxied: call.isProxied,
                    forwardedFor: origin.isForwarded ? origin.client : nil)
            }
        }

        package let state = Mutex(State())
        package let changed = Signal()

        package init() {}

        /// Waits until the state is as `condition` says; false when it is not after a minute.
        package func reaches(_ condition: (State) -> Bool) -> Bool {
            changed.wait { state.withLock { condition($0) } }
        }
    }

    package init(record: Record = Record()) { self.record = record }

    package func begin(_ call: Call, payload: RawSpan) {
        record.state.withLock {
            $0.heads.append(call.head)
            $0.authorizations.append(call.authorization)
            $0.origins.append(Record.Origin(call))
        }
        switch call.rpc {
        case .getDocument: call.respond { $0.append(payload) }
        case .commit:
            record.state.withLock { $0.pending.append(call) }
            record.changed.notify()
        case .runQuery:
            let count = Int(UInt32(littleEndian: payload.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self)))
            let size = Int(UInt32(littleEndian: payload.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt32.self)))
            call.stream(CountingSource(count: count, size: size, record: record))
        case .write:
            let stream = EchoStream(call, record)
            stream.received(payload)
            call.open(stream)
        case .rollback: call.fail(.aborted, String(repairingUTF8: payload))
        case .deleteDocument:
            let size = Int(UInt32(littleEndian: payload.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self)))
            call.respond { $0.append([UInt8](repeating: 7, count: size)) }
        default: call.fail(.unimplemented, "not in this service")
        }
    }

    package func abandoned(_ reason: CancellationReason) {
        record.state.withLock {
            $0.cancelled.append(reason)
            $0.pending.removeAll { !$0.isOpen }
        }
        record.changed.notify()
    }
}

/// Sends back what it receives.
private final class EchoStream: CallStream {
    private let call: Call
    private let record: EchoService.Record
    private var waiting: [[UInt8]] = []
    /// Messages received.
    private var count = 0
    private var clientEnded = false

    init(_ call: Call, _ record: EchoService.Record) {
        self.call = call
        self.record = record
    }

    func received(_ message: RawSpan) {
        if count > 0, record.state.withLock({ $0.holdsWrites }) { call.pauseMessages() }
        count += 1
        waiting.append([UInt8](copying: message))
        call.resume()
    }

    func halfClosed() {
        clientEnded = true
        call.resume()
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        guard !waiting.isEmpty else { return clientEnded ? .finished : .waiting }
        output.append(waiting.removeFirst())
        return .message
    }

    func cancelled() {}
}

/// Numbered messages of one size.
package final class CountingSource: ResponseSource {
    private var next = 0
    private let count: Int
    private let size: Int
    private let record: EchoService.Record

    package init(count: Int, size: Int, record: EchoService.Record) {
        self.count = count
        self.size = size
        self.record = record
    }

    package func next(into output: inout ByteBuffer) -> SourceStep {
        guard next < count else { return .finished }
        output.append(littleEndian: UInt32(next))
        output.append([UInt8](repeating: UInt8(truncatingIfNeeded: next), count: max(0, size - 4)))
        next += 1
        record.state.withLock { $0.messagesProduced += 1 }
        return .message
    }

    package func cancelled() {
        record.state.withLock { $0.sourcesCancelled += 1 }
        record.changed.notify()
    }
}
