import Basics
import CArguments
import Glibc

/// Stacks that do not depend on the limit of the process (`ulimit -s`).
enum CommandThread {
    /// Runs `body` on a thread that takes the part of the main thread, whose stack may be small; on the calling one if
    /// the system has no thread left. Threads that libraries start have the same stack from now on.
    static func run<Output>(_ body: () -> Output) -> Output {
        hearth_set_stack_bytes(SystemThread.stackBytes)
        var everySignal = sigset_t()
        var before = sigset_t()
        sigfillset(&everySignal)
        // Signals to the process come to the other thread, which may take them from there.
        pthread_sigmask(SIG_SETMASK, &everySignal, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var output: Output?
        withoutActuallyEscaping({
            pthread_sigmask(SIG_SETMASK, &before, nil)
            output = body()
        }) { work in
            do { try SystemThread(name: "command", work).join() } catch { work() }
        }
        guard let output else { preconditionFailure("a thread ended without its result") }
        return output
    }
}
