#if THREAD_SANITIZER
    internal import Glibc

    /// Takes the place of `Synchronization.Mutex` under the thread sanitizer, which does not know the futex of that
    /// type and would report everything that it guards as a race. Thread-safe.
    ///
    /// Each module with a `Mutex` names this one so in its `ThreadSanitizer.swift`, in builds with `THREAD_SANITIZER`
    /// alone (`Tools/test-sanitizer`).
    package struct SanitizedMutex<State: ~Copyable>: ~Copyable, Sendable {
        private let storage: Storage

        @safe private final class Storage: @unchecked Sendable {  // `state` is only touched while `mutex` is held.
            let mutex: UnsafeMutablePointer<pthread_mutex_t>
            var state: State

            init(_ state: consuming State) {
                self.state = state
                unsafe mutex = .allocate(capacity: 1)
                unsafe mutex.initialize(to: pthread_mutex_t())
                precondition(unsafe pthread_mutex_init(mutex, nil) == 0)
            }

            deinit {
                unsafe pthread_mutex_destroy(mutex)
                unsafe mutex.deallocate()
            }
        }

        package init(_ state: consuming State) { storage = Storage(state) }

        /// Calls `body` under the lock.
        package borrowing func withLock<Output: ~Copyable, Failure: Error>(
            _ body: (inout State) throws(Failure) -> Output
        ) throws(Failure) -> Output {
            precondition(unsafe pthread_mutex_lock(storage.mutex) == 0)
            defer { precondition(unsafe pthread_mutex_unlock(storage.mutex) == 0) }
            return try body(&storage.state)
        }
    }
#endif
