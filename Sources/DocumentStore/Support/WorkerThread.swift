// A thread of our own: the commit thread must not share a pool with anybody.

internal import Glibc
internal import KeyValueStore

enum WorkerThread {
    /// What a new thread runs. Holds what the body holds until the thread ends.
    private final class Start {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    /// Runs `body` on a new thread; join it to wait for its end.
    ///
    /// The caller hands over what the body uses, and does not touch it again.
    static func start(_ body: @escaping () -> Void) throws(StorageError) -> pthread_t {
        // Retained here, released by the thread.
        let start = unsafe Unmanaged.passRetained(Start(body)).toOpaque()
        var thread = pthread_t()
        let status = unsafe pthread_create(&thread, nil, { argument in
            guard let argument = unsafe argument else { return nil }
            unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, start)
        if status == 0 { return thread }
        unsafe Unmanaged<Start>.fromOpaque(start).release()
        throw StorageError(.inputOutput, "the commit thread could not be started: error \(status)")
    }
}
