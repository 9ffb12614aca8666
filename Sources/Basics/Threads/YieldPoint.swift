// Where a test may choose which thread runs next.
//
// In a build for tests (a debug build, or one with HEARTH_YIELD_POINTS) a thread can belong to a `ThreadScheduler`,
// which runs its threads one at a time. Such a thread asks it at every lock, wait, wake-up, start and end of a
// thread (`Monitor`, `SystemThread`), for the time (`SystemClock`) and at each `yieldPoint`. All other threads, and
// all threads of the builds that users run, pass these places as if they were not there.
//
// A yield point may stand where the thread holds monitors: another thread that wants one of them then lets the holder
// run. It must not stand where the thread holds a `Mutex`, which knows no scheduler: another thread would block in it.

internal import Glibc

/// Lets the scheduler of the calling thread, if it has one, run another thread here. Nothing in what users run.
///
/// Stands before each access to an atomic whose order with the atomics of other threads matters.
@inlinable @inline(__always)
package func yieldPoint(_ place: StaticString = #function) {
    #if HEARTH_YIELD_POINTS
        SchedulerOfThread.yield(at: place)
    #endif
}

/// Runs threads one at a time. All methods but `adopt` are called by the one thread that runs.
package protocol ThreadScheduler: AnyObject, Sendable {
    /// Another thread may run before this returns.
    func yield(at place: StaticString)

    /// Another thread runs before this returns, if one can: the calling one needs what another one has.
    func giveWay(at place: StaticString)

    /// Stops the calling thread until `wake` is called for an object, or until the scheduler's time is `deadline`.
    /// - Returns: false after the deadline.
    func wait(for object: ObjectIdentifier, untilNanoseconds deadline: UInt64) -> Bool

    /// Ends the waits for an object.
    func wake(_ object: ObjectIdentifier)

    /// Adds a thread that is about to be started.
    /// - Returns: what the thread has to call.
    func adopt(_ thread: ThreadEnd, name: String, _ body: @escaping () -> Void) -> () -> Void

    /// The time of the scheduler's threads, in nanoseconds; it never steps back.
    var nowNanoseconds: UInt64 { get }
}

/// Whether a scheduler's thread has ended. Used by one thread at a time, as the scheduler chooses.
package final class ThreadEnd: @unchecked Sendable {
    package var hasEnded = false

    init() {}
}

/// The scheduler that a thread belongs to.
@usableFromInline package enum SchedulerOfThread {
    /// Whether threads ask their schedulers at all: in builds for tests.
    package static var isAsked: Bool {
        #if HEARTH_YIELD_POINTS
            true
        #else
            false
        #endif
    }

    private final class Holder {
        let scheduler: any ThreadScheduler

        init(_ scheduler: any ThreadScheduler) { self.scheduler = scheduler }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        precondition(unsafe pthread_key_create(&key, nil) == 0)
        return key
    }()

    /// That of the calling thread; nil outside of simulations.
    package static var current: (any ThreadScheduler)? {
        guard let pointer = unsafe pthread_getspecific(key) else { return nil }
        return unsafe Unmanaged<Holder>.fromOpaque(pointer).takeUnretainedValue().scheduler
    }

    @usableFromInline static func yield(at place: StaticString) { current?.yield(at: place) }

    /// Calls `body` on the calling thread as one of the scheduler's threads.
    package static func with<Output>(_ scheduler: any ThreadScheduler, _ body: () throws -> Output) rethrows
        -> Output
    {
        let holder = Holder(scheduler)
        unsafe pthread_setspecific(key, Unmanaged.passUnretained(holder).toOpaque())
        defer {
            pthread_setspecific(key, nil)
            withExtendedLifetime(holder) {}
        }
        return try body()
    }
}
