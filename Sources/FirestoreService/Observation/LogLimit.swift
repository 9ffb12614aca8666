// A bound on how often one event is written to the log: what a client can cause without end must not fill a disk.

internal import Synchronization

/// How many lines of one event are written in a period; the others are counted. Thread-safe.
///
/// The first line written after the period's end, of whatever event, is followed by one that says how many were left
/// out.
final class LogLimit: Sendable {
    /// Lines of one event in a period; of one at the debug level, which is only enabled in a search for something.
    static let linesPerPeriod = 20
    static let debugLinesPerPeriod = 2_000
    static let periodMilliseconds: UInt64 = 10_000

    /// Lines that were left out of one period.
    struct Suppression: Equatable {
        let event: String
        let level: LogLevel
        let lines: Int
    }

    fileprivate struct Period {
        let level: LogLevel
        let start: UInt64
        var lines = 0
        var suppressed = 0
    }

    fileprivate struct State {
        /// By event. An event's name is a word of the program's text, so they are few.
        var periods: [String: Period] = [:]
        /// When the earliest period ends that has left lines out; `UInt64.max` when none has.
        var summaryDue = UInt64.max
    }

    private let state = Mutex(State())

    /// Counts a line, and says whether to write it and what to say first about lines left out before.
    ///
    /// - Parameter now: monotonic milliseconds; may be before those of a line that another thread has counted already.
    func admit(_ event: String, _ level: LogLevel, now: UInt64) -> (isAdmitted: Bool, before: [Suppression]) {
        state.withLock { state in
            let before = now >= state.summaryDue ? state.takeEnded(now) : []
            if let period = state.periods[event], now >= period.start + Self.periodMilliseconds {
                state.periods[event] = nil
            }
            var period = state.periods[event] ?? Period(level: level, start: now)
            let limit = level == .debug ? Self.debugLinesPerPeriod : Self.linesPerPeriod
            let isAdmitted = period.lines < limit
            if isAdmitted {
                period.lines += 1
            } else {
                period.suppressed += 1
                state.summaryDue = min(state.summaryDue, period.start + Self.periodMilliseconds)
            }
            state.periods[event] = period
            return (isAdmitted, before)
        }
    }

    /// The lines that were left out and not yet reported.
    func takeAll() -> [Suppression] { state.withLock { $0.takeEnded(.max) } }
}

extension LogLimit.State {
    /// Ends the periods that are over, and returns what they left out.
    fileprivate mutating func takeEnded(_ now: UInt64) -> [LogLimit.Suppression] {
        summaryDue = .max
        var found: [LogLimit.Suppression] = []
        for (event, period) in periods where period.suppressed > 0 {
            let end = period.start + LogLimit.periodMilliseconds
            if now >= end {
                found.append(LogLimit.Suppression(event: event, level: period.level, lines: period.suppressed))
                periods[event] = nil
            } else {
                summaryDue = min(summaryDue, end)
            }
        }
        return found.sorted { $0.event < $1.event }
    }
}
