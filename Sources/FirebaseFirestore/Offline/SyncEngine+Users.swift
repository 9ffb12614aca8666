// Another user: other pending writes in the views, and a new stream for the listeners.

import Basics
import ClientCache
import FirebaseCore
import HearthClient
import Synchronization

extension SyncEngine {
    /// The token is of another user, or the first one is there.
    ///
    /// - Parameter user: nil for none. May be called on any thread, before calls show the token.
    func userChanged(_ user: String?) {
        queue.async {
            self.nextUser = user ?? ""
            self.useNextUser()
        }
    }

    /// Tries again after a pause if the store cannot change the user, for example because its disk is full.
    private func useNextUser() {
        guard !isClosed, let user = nextUser else { return }
        let isOther = !user.hasSameUTF8(as: store.user)
        let wasKnown = store.isUserKnown
        var changes: [LocalChange] = []
        do throws(RequestError) {
            try store.use(user: user, changing: &changes)
            nextUser = nil
            if wasKnown, isOther {
                stream?.restart()
                changeUserOfWriteWaits()
            }
            userFailure.ended()
            // No view keeps what another user's writes were before the replies to them.
            broadcast(changes, snapshotMicroseconds: isOther ? .max : nil)
            resumeWriteWaits()
        } catch {
            userFailure.occurred(error)
            broadcast(changes)
            if isChangingUserLater { return }
            isChangingUserLater = true
            queue.async(after: Self.pause) { [weak self] in
                self?.isChangingUserLater = false
                self?.useNextUser()
            }
        }
    }
}

/// Refers to an engine for its client, which is made before it. Thread-safe.
final class EngineReference: Sendable {
    private struct Reference: Sendable {
        weak var engine: SyncEngine?
    }

    private let reference = Mutex(Reference())

    var engine: SyncEngine? {
        get { reference.withLock { $0.engine } }
        set { reference.withLock { $0.engine = newValue } }
    }
}
