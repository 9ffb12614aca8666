// A server that takes commits later.

import ClientTestSupport
import Synchronization

/// A server over a database. Until ``release()`` it is not available for commits, which a client then sends again.
final class HeldCommits: Sendable {
    private final class Hold: Sendable { let isOver = Atomic(false) }

    private let hold = Hold()
    let database = ScriptedDatabase()
    let server: FakeServer

    init() throws {
        server = try FakeServer { [hold, database] call in
            let isHeld = call.method == .commit && !hold.isOver.load(ordering: .acquiring)
            return isHeld ? .fail(.unavailable, "later") : database.react(to: call)
        }
    }

    func release() { hold.isOver.store(true, ordering: .releasing) }
}
