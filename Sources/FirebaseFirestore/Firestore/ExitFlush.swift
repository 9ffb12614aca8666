import Dispatch
import FirebaseCore
import Foundation
import Synchronization

/// Waits at the end of the process for writes that are not acknowledged, reports writes that may be lost, and closes
/// the stores that are open in this process.
///
///     return from main ─┐
///     exit(status)      ┴─▶ atexit: wait for pending writes ─▶ all acknowledged: close stores, end
///                                                         └─▶ time is up: a line on standard error, the same
///
/// `_exit`, signals and traps end the process without this.
enum ExitFlush {
    /// The environment variable with the seconds that the end of the process waits for writes; 0 = it does not wait.
    static let variable = "HEARTH_EXIT_WAIT"
    private static let standardSeconds = 5.0
    private static let secondsMax = 3600.0

    private enum Stage { case running, ended }
    private static let stage = Mutex(Stage.running)

    private static let registration: Void = register()

    /// Makes the end of the process wait for pending writes. Cheap after the first call.
    static func enable() { _ = registration }

    private static func register() { atexit { ExitFlush.run() } }

    /// Runs among the process's exit functions, on the thread that ends it.
    private static func run() {
        guard stage.withLock({ $0 == .running }) else { return }
        // Another thread that calls `exit` meanwhile would run the next exit function: it finds this one, and waits for
        // the lock.
        register()
        stage.withLock { stage in
            guard stage == .running else { return }
            flush(within: seconds(in: ProcessInfo.processInfo.environment))
            stage = .ended
        }
    }

    /// The seconds to wait. What cannot be read counts as not set.
    static func seconds(in environment: [String: String]) -> Double {
        guard let text = environment[variable], let seconds = Double(text), seconds >= 0 else { return standardSeconds }
        return min(seconds, secondsMax)
    }

    private static func flush(within seconds: Double) {
        let instances = FirestoreInstances.shared.all
        let deadline = DispatchTime.now() + seconds
        // Other threads may issue further writes meanwhile, so once is not enough.
        while DispatchTime.now() < deadline {
            let busy = instances.filter { $0.canSend && $0.hasPendingWrites }
            if busy.isEmpty { break }
            let waiting = DispatchGroup()
            for instance in busy {
                waiting.enter()
                instance.awaitWrites { _ in waiting.leave() }
            }
            _ = waiting.wait(timeout: deadline)
        }
        for instance in instances {
            report(instance)
            instance.closeCacheAtExit()
        }
        // A directory that was closed opens faster: nothing has to be recovered.
        for instance in instances { instance.closeStore(before: .now() + standardSeconds) }
    }

    private static func report(_ instance: Firestore) {
        let count = instance.pendingWrites.count
        guard count > 0 else { return }
        let writes = count == 1 ? "1 write waits" : "\(count) writes wait"
        let reason = "The process ends while \(writes) for a reply of \(instance.host)."
        if let directory = instance.cacheDirectory {
            return FirebaseLog.write(
                .notice, "\(reason) The cache in \(directory) keeps them: they are sent when a program opens it again.")
        }
        FirebaseLog.write(
            .error,
            """
            \(reason) These writes may be lost. Await writes, or call waitForPendingWrites() before the process ends.
            """)
    }
}
