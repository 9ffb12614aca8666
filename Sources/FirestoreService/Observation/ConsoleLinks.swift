internal import Synchronization

/// Links from lines of the log into the console. Thread-safe.
package final class ConsoleLinks: Sendable {
    private let state = Mutex("")

    package init() {}

    /// What the links begin with, such as `http://127.0.0.1:8080`; empty while there is no console.
    package var server: String {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// The views that explain events.
    private static let views = [
        "ready": "start", "slow_call": "watch", "call_broken": "watch", "access_denied": "rules",
        "rules_not_applied": "rules", "store_full": "start", "store_retrying": "start", "damage_found": "start",
        "housekeeping_failed": "indexes", "text_libraries_missing": "indexes", "copy_failed": "indexes",
    ]

    /// The address of the view for an event; nil without a console, and for most events.
    func link(for event: String) -> String? {
        guard let view = Self.views[event] else { return nil }
        let server = server
        return server.isEmpty ? nil : "\(server)/console#/\(view)"
    }
}
