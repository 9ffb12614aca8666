// Work that blocks its thread, kept off the threads that Swift's tasks share.

import Glibc

enum BlockingWork {
    private final class Job {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` on a thread of its own.
    static func run(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let job = Unmanaged.passRetained(Job(body))
        let error = pthread_create(&thread, nil, { argument in
            Unmanaged<Job>.fromOpaque(argument!).takeRetainedValue().body()
            return nil
        }, job.toOpaque())
        guard error == 0 else {
            job.release()
            // No thread to be had: better to block this one than to lose the work.
            return body()
        }
        pthread_detach(thread)
    }
}
