// What has arrived on a stream and is not read.

import Basics
import Calls
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct StreamInboxTests {
    /// A call that counts how often it is asked to pause and to continue.
    private final class Source: StartedCall {
        private let counts = Mutex((pauses: 0, resumptions: 0))

        var isPaused: Bool { counts.withLock { $0.pauses > $0.resumptions } }
        var pauses: Int { counts.withLock { $0.pauses } }

        func cancel() {}
        func send(_ payload: [UInt8], isLast: Bool) {}
        func pauseMessages() { counts.withLock { $0.pauses += 1 } }
        func resumeMessages() { counts.withLock { $0.resumptions += 1 } }
    }

    @Test
    func `The server is asked to pause while too much is not read, however it is read then`() async throws {
        let (inbox, source) = (StreamInbox(bytesMax: 10), Source())
        for count in [4, 4, 4] { inbox.add([UInt8](repeating: 0, count: count), from: source) }
        expect(source.isPaused && source.pauses == 1)
        try expect(inbox.takeNow()?.get()?.count == 4 && source.isPaused)
        try expect(inbox.takeNow()?.get()?.count == 4 && !source.isPaused)
        try expect(inbox.takeNow()?.get()?.count == 4 && inbox.takeNow() == nil)
        // A reader that has found nothing waits for the next message, and one that is too large comes first.
        inbox.add([UInt8](repeating: 0, count: 20), from: source)
        expect(source.isPaused && source.pauses == 2)
        let step = await withUnsafeContinuation { inbox.take($0) }
        try expect(step.get()?.count == 20 && !source.isPaused)
    }
}
