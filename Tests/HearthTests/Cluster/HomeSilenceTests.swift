// Reading the silence of the home database takes the same time and stack, however often it was read.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct HomeSilenceTests {
    @Test
    func `It is read ten thousand times on a small stack`() {
        let sum = Mutex<UInt64>(0)
        let ended = DispatchSemaphore(value: 0)
        let thread = Thread {
            let silence = HomeSilence()
            silence.set { 7 }
            for _ in 0..<10_000 { sum.withLock { $0 += silence.milliseconds ?? 0 } }
            ended.signal()
        }
        thread.stackSize = 128 << 10
        thread.start()
        ended.wait()
        expectEqual(sum.withLock { $0 }, 70_000)
    }

    @Test
    func `It is not known before it is set`() { expectNil(HomeSilence().milliseconds) }
}
