// What the SDK raises as an Objective-C exception ends a process with this library. The tests intercept it before.

@_spi(Testing) import DocumentCoding
import Foundation
import Synchronization

enum FSTExceptionCatcher {
    struct Caught: Error { var reason: String }

    /// Runs a block in another thread, which does not end if the block breaks a rule of the API.
    ///
    /// - Throws: the rule.
    static func catchException(_ block: @escaping () -> Void) throws {
        let reason = Mutex<String?>(nil)
        let done = DispatchSemaphore(value: 0)
        ProgrammingError.setHandler { message in
            reason.withLock { $0 = message }
            done.signal()
            while true { sleep(1000) }
        }
        defer { ProgrammingError.setHandler(nil) }
        Thread {
            block()
            done.signal()
        }.start()
        done.wait()
        if let reason = reason.withLock({ $0 }) { throw Caught(reason: reason) }
    }
}

enum FSTNSExceptionUtil {
    static func testForException(_ block: @escaping () -> Any?, reasonContains text: String) -> Bool {
        do {
            try FSTExceptionCatcher.catchException { _ = block() }
            return false
        } catch {
            return (error as? FSTExceptionCatcher.Caught)?.reason.contains(text) ?? false
        }
    }
}
