internal import Glibc

/// A POSIX thread. Work that blocks belongs on one: neither an event loop nor Swift's cooperative pool may block.
package struct SystemThread: Sendable {
    private let handle: pthread_t
    #if HEARTH_YIELD_POINTS
        private let end: ThreadEnd?
    #endif

    /// The size of each thread's stack, in bytes of address space: memory is used as far as the stack grows.
    ///
    /// It does not depend on the limit of the process (`ulimit -s`): what clients send may nest as deeply as is
    /// permitted, and takes up to 2 MiB then.
    package static let stackBytes = 8 << 20

    /// Why a thread could not be started.
    package struct StartFailure: Error, CustomStringConvertible {
        /// The thread's name.
        package let name: String
        /// The error number of `pthread_create`.
        package let errorNumber: Int32

        package var description: String {
            "cannot start the thread \(name): \(unsafe String(cString: strerror(errorNumber)))"
        }
    }

    /// Starts a thread that calls `body` once.
    ///
    /// The caller hands over what `body` uses and does not touch it again. End the thread's use with ``join()`` or
    /// ``detach()``.
    /// - Parameter name: shown by `top` and debuggers; Linux keeps its first 15 bytes.
    package init(name: String, _ body: @escaping () -> Void) throws(StartFailure) {
        // Retained here, released by the new thread.
        #if HEARTH_YIELD_POINTS
            let scheduler = SchedulerOfThread.current
            let end = scheduler.map { _ in ThreadEnd() }
            self.end = end
            let body = end.flatMap { scheduler?.adopt($0, name: name, body) } ?? body
        #endif
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
        var created = pthread_t()
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setstacksize(&attributes, Self.stackBytes)
        let status = unsafe pthread_create(
            &created, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                SystemThread.setName(start.name)
                start.body()
                return nil
            }, start)
        guard status == 0 else {
            unsafe Unmanaged<Start>.fromOpaque(start).release()
            throw StartFailure(name: name, errorNumber: status)
        }
        handle = created
    }

    /// Waits until the thread has ended. Call it once, and not on the thread itself.
    package func join() {
        #if HEARTH_YIELD_POINTS
            if let end, let scheduler = SchedulerOfThread.current {
                while !end.hasEnded { _ = scheduler.wait(for: ObjectIdentifier(end), untilNanoseconds: .max) }
            }
        #endif
        pthread_join(handle, nil)
    }

    /// Stops the calling thread for some time.
    package static func sleep(microseconds: UInt32) {
        #if HEARTH_YIELD_POINTS
            if let scheduler = SchedulerOfThread.current {
                let deadline = scheduler.nowNanoseconds + UInt64(microseconds) * 1_000
                while scheduler.nowNanoseconds < deadline {
                    _ = scheduler.wait(for: ObjectIdentifier(scheduler), untilNanoseconds: deadline)
                }
                return
            }
        #endif
        usleep(microseconds)
    }

    /// Lets other threads have the processor before the calling one from now on, for work that may take longer.
    package static func giveWay() {
        // Of the calling thread alone on Linux. A refusal changes nothing.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
    }

    /// Gives up the right to join: the system frees the thread when it ends.
    package func detach() { pthread_detach(handle) }

    /// Calls `body` on a detached thread; on the calling one if the system has no thread left.
    package static func runDetached(name: String, _ body: @escaping @Sendable () -> Void) {
        do { try SystemThread(name: name, body).detach() } catch { body() }
    }

    /// Names the calling thread. Nothing depends on it, so a failure is ignored.
    private static func setName(_ name: String) {
        // Glibc declares pthread_setname_np only under _GNU_SOURCE, which Swift's import does not set.
        let file = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        var name = name
        name.withUTF8 { _ = unsafe write(file, $0.baseAddress, $0.count) }
        close(file)
    }

    private final class Start {
        let name: String
        let body: () -> Void

        init(name: String, body: @escaping () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
