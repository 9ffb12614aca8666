// Waiting for what happens on other threads, without sleeping and without timed assertions.

import Basics
import Glibc
import Synchronization

/// Wakes those who wait for a condition whenever something changed.
package final class Signal: @unchecked Sendable {
    // Sendable: the two pthread objects are made for it; they live at fixed addresses until `deinit`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        condition.deallocate()
    }

    package func notify() {
        pthread_mutex_lock(mutex)
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Returns when `isTrue` holds; false after 60 seconds, which only a bug can take.
    package func wait(until isTrue: () -> Bool) -> Bool {
        var end = timespec()
        clock_gettime(CLOCK_REALTIME, &end)
        end.tv_sec += 60
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !isTrue() {
            if pthread_cond_timedwait(condition, mutex, &end) != 0 { return isTrue() }
        }
        return true
    }
}

/// A value that some other thread will provide.
package final class Promise<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let signal = Signal()

    package init() {}

    package func fulfil(_ newValue: Value) {
        value.withLock { $0 = newValue }
        signal.notify()
    }

    /// The value, or nil when it never came.
    package func wait() -> Value? {
        guard signal.wait(until: { value.withLock { $0 != nil } }) else { return nil }
        return value.withLock { $0 }
    }
}
