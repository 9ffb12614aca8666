// Listeners for whose snapshots the disk of the cache has no room. They show the cache, and the server is asked for
// them again after a pause.

import Basics
import ClientCache

extension SyncEngine {
    private static let suspensionSecondsMax = 64

    /// The store has no room for what the server has sent, or for a target. On the engine's queue.
    ///
    /// - Parameter changes: what has changed in the cache nevertheless.
    func suspend(because error: RequestError, _ changes: [LocalChange] = []) {
        listenFailure.occurred(error)
        for channel in channels { stopWatching(channel) }
        if !isSuspended {
            isSuspended = true
            queue.async(after: .seconds(suspensionSeconds)) { [weak self] in self?.resume() }
            // The server sends everything again.
            suspensionSeconds = min(2 * suspensionSeconds, Self.suspensionSecondsMax)
        }
        showCacheAlone(changes)
    }

    private func resume() {
        isSuspended = false
        if isClosed { return }
        for channel in channels where channel.watchID == nil && channel.wantsServer {
            do throws(RequestError) {
                try watch(channel, try use(targetOf: channel))
            } catch {
                if error.code == .resourceExhausted { return suspend(because: error) }
                fail(channel, error)
            }
        }
    }

    /// What the server has sent is stored: after a suspension, that of all listeners may be. On the engine's queue.
    func endSuspensions() {
        guard listenFailure.isLasting, !isSuspended,
            channels.allSatisfy({ $0.view.isCurrent || !$0.wantsServer })
        else { return }
        listenFailure.ended()
        suspensionSeconds = 1
    }
}
