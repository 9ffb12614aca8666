// Settings of the whole library, and its version.

import Foundation

/// Settings that all apps of the process share. Thread-safe.
public final class FirebaseConfiguration: NSObject, Sendable {
    /// The one instance.
    public static let shared = FirebaseConfiguration()

    private override init() {}

    /// Sets how much the library writes to standard error; `.notice` unless set.
    public func setLoggerLevel(_ loggerLevel: FirebaseLoggerLevel) { FirebaseLog.level = loggerLevel }
}

/// The version of this library, the newest heading of CHANGELOG.md; not that of the Apple SDK whose surface it has.
public func FirebaseVersion() -> String { "0.1.0" }
