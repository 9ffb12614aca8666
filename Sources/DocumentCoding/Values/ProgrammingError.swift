import Foundation
import Synchronization

/// Reports violated rules of the API that no `throws` and no completion reports: a latitude of 91, an empty field path.
///
/// The Apple SDK raises an Objective-C exception there, which Swift cannot catch. Here the message is written to
/// standard error, and the process traps. Tests can intercept the message.
@_spi(Testing) public enum ProgrammingError {
    /// A closure in a structure: a lock whose state is a closure wraps it in another one at each access.
    private struct Handler: Sendable {
        var report: (@Sendable (String) -> Void)?
    }

    private static let handler = Mutex(Handler())

    /// Called with the message before the process traps. A handler that never returns keeps the process alive.
    ///
    /// Thread-safe; `nil` removes the handler.
    public static func setHandler(_ newHandler: (@Sendable (String) -> Void)?) {
        handler.withLock { $0.report = newHandler }
    }

    fileprivate static func report(_ message: String) {
        handler.withLock { $0 }.report?(message)
    }
}

/// Stops the process because the caller broke a rule of the API.
///
/// - Parameter message: the rule, in words the caller can act on; written to standard error.
package func programmingError(_ message: String) -> Never {
    ProgrammingError.report(message)
    FileHandle.standardError.write(Data("Firestore: \(message)\n".utf8))
    fatalError(message)
}
