// A thread of the engine's own: blocking work must not sit on the cooperative pool or on an event loop.

internal import Glibc

/// A running thread. Join it before letting go of what it uses.
struct EngineThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread. Linux shows the first 15 bytes of its name.
    init(name: String, _ body: @escaping @Sendable () -> Void) throws(StorageError) {
        let start = ThreadStart(name: name, body: body)
        var handle = pthread_t()
        let status = unsafe pthread_create(
            &handle, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                // Balances `passRetained` below: the new thread owns the box.
                let start = unsafe Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
                EngineThread.showName(start.name)
                start.body()
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        guard status == 0 else { throw .system(status, "cannot start the thread \(name)") }
        self.handle = handle
    }

    /// Gives the calling thread its name, for `top` and debuggers; nothing depends on it.
    fileprivate static func showName(_ name: String) {
        // Glibc's function for it hides behind _GNU_SOURCE, which Swift's import does not set.
        guard let file = try? File("/proc/thread-self/comm", flags: O_WRONLY) else { return }
        var name = name
        name.withUTF8 { try? unsafe file.write(UnsafeRawBufferPointer($0), at: 0) }
    }

    /// Waits until the thread has ended. Call it once.
    func join() {
        pthread_join(handle, nil)
    }
}

private final class ThreadStart: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}
