// The messages of the library on standard error, and how much of it.

import Foundation
import Synchronization

/// How much the library writes to standard error: messages of this level and of those before it.
public enum FirebaseLoggerLevel: Int, Sendable, CaseIterable, Comparable {
    /// Losses and broken rules.
    case error = 3
    /// Troubles that the library can live with, such as a server that cannot be reached.
    case warning = 4
    /// The level unless one is set.
    case notice = 5
    /// Further information about normal operation.
    case info = 6
    /// Every connection and every call.
    case debug = 7

    /// The least verbose level.
    public static let min = FirebaseLoggerLevel.error
    /// The most verbose level.
    public static let max = FirebaseLoggerLevel.debug

    public static func < (left: FirebaseLoggerLevel, right: FirebaseLoggerLevel) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The library's log: one line of standard error for each message. Thread-safe.
package enum FirebaseLog {
    package typealias Sink = @Sendable (FirebaseLoggerLevel, String) -> Void

    private static let threshold = Atomic<Int>(FirebaseLoggerLevel.notice.rawValue)
    private static let sink = Mutex<Sink?>(nil)

    /// The least urgent level that is written.
    package static var level: FirebaseLoggerLevel {
        get { FirebaseLoggerLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .notice }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Sends messages elsewhere, for tests; nil = to standard error.
    package static func setSink(_ newSink: Sink?) { sink.withLock { $0 = newSink } }

    /// Writes a message, which is only made if its level is wanted.
    package static func write(_ level: FirebaseLoggerLevel, _ message: @autoclosure () -> String) {
        guard level.rawValue <= threshold.load(ordering: .relaxed) else { return }
        let text = message()
        if let sink = sink.withLock({ $0 }) { return sink(level, text) }
        let time = Date().formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true))
        FileHandle.standardError.write(Data("\(time) [FirebaseFirestore][\(level)] \(text)\n".utf8))
    }
}
