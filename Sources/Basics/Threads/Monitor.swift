internal import Glibc

/// A lock with a condition variable, and the state that it guards. Thread-safe.
///
/// Built on pthreads rather than on `Synchronization.Mutex` because waiting is needed, and because the thread sanitizer
/// understands it.
@safe
@usableFromInline package final class Monitor<State: ~Copyable>: @unchecked Sendable {
    // Unchecked: `state` is only touched while `mutex` is held.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    @usableFromInline var state: State

    package init(_ state: consuming State) {
        self.state = state
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe Self.expectSuccess(pthread_mutex_init(mutex, nil))
        unsafe Self.expectSuccess(pthread_cond_init(condition, &attributes))
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    @usableFromInline
    func lock() {
        #if HEARTH_YIELD_POINTS
            if let scheduler = SchedulerOfThread.current {
                scheduler.yield(at: "lock")
                while unsafe pthread_mutex_trylock(mutex) != 0 { scheduler.giveWay(at: "lock") }
                return
            }
        #endif
        unsafe Self.expectSuccess(pthread_mutex_lock(mutex))
    }

    @usableFromInline
    func unlock() { unsafe Self.expectSuccess(pthread_mutex_unlock(mutex)) }

    /// Calls `body` under the lock.
    @inlinable
    package func withLock<Output, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Output
    ) throws(Failure) -> Output {
        lock()
        defer { unlock() }
        return try body(&state)
    }

    /// Calls `body` under the lock, then wakes all waiting threads.
    package func update<Output, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Output
    ) throws(Failure) -> Output {
        defer {
            wakeWaitsOfScheduler()
            unsafe Self.expectSuccess(pthread_cond_broadcast(condition))
        }
        return try withLock(body)
    }

    /// Wakes all waiting threads. They evaluate their conditions again, which may depend on something outside the
    /// state.
    package func wake() {
        update { _ in }
    }

    /// Wakes one waiting thread, without the lock. For monitors with a single waiting thread, after a change.
    package func wakeOne() {
        wakeWaitsOfScheduler()
        unsafe Self.expectSuccess(pthread_cond_signal(condition))
    }

    /// Waits until `body`, called under the lock, returns a value.
    @inlinable
    package func wait<Output, Failure: Error>(
        until body: (inout State) throws(Failure) -> Output?
    ) throws(Failure) -> Output {
        lock()
        defer { unlock() }
        while true {
            if let output = try body(&state) { return output }
            waitForChange()
        }
    }

    /// Waits for a change. The caller holds the lock, which is free meanwhile.
    @usableFromInline
    func waitForChange() {
        if waitWithScheduler(untilNanoseconds: .max) != nil { return }
        unsafe Self.expectSuccess(pthread_cond_wait(condition, mutex))
    }

    /// Waits until `body` returns a value, at most until `deadline` on the monotonic clock; returns nil after the
    /// deadline.
    package func wait<Output, Failure: Error>(
        untilNanoseconds deadline: UInt64, _ body: (inout State) throws(Failure) -> Output?
    ) throws(Failure) -> Output? {
        var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
        lock()
        defer { unlock() }
        while true {
            if let output = try body(&state) { return output }
            if let isInTime = waitWithScheduler(untilNanoseconds: deadline) {
                if isInTime { continue }
                return try body(&state)
            }
            let status = unsafe pthread_cond_timedwait(condition, mutex, &time)
            if status == ETIMEDOUT { return try body(&state) }
            Self.expectSuccess(status)
        }
    }

    /// Waits for a change as the calling thread's scheduler wants it; the lock is free meanwhile.
    /// - Returns: false after the deadline; nil if the thread has no scheduler, and nothing was done.
    private func waitWithScheduler(untilNanoseconds deadline: UInt64) -> Bool? {
        #if HEARTH_YIELD_POINTS
            guard let scheduler = SchedulerOfThread.current else { return nil }
            unlock()
            defer { lock() }
            return scheduler.wait(for: ObjectIdentifier(self), untilNanoseconds: deadline)
        #else
            return nil
        #endif
    }

    /// Wakes the threads of the calling thread's scheduler that wait.
    private func wakeWaitsOfScheduler() {
        #if HEARTH_YIELD_POINTS
            SchedulerOfThread.current?.wake(ObjectIdentifier(self))
        #endif
    }

    private static func expectSuccess(_ status: Int32) {
        precondition(status == 0, "invalid use of a lock: pthread error \(status)")
    }
}
