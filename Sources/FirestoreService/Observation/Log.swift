// Structured logs: one line an event, `key=value` pairs separated by spaces, on stderr.
//
//   time=2031-05-02T08:15:30.123Z level=info event=listening address=127.0.0.1:8080 loops=2
//
// `time` (UTC), `level` and `event` come first in this order; `event` is a fixed word that scripts can match. A value
// is quoted as a JSON string where it holds a space, a quote, `=`, a control character, or nothing at all.
//
// Of one event a limited number of lines is written in a while (``LogLimit``); `lines_suppressed` says how many were
// not.

internal import Basics
internal import Glibc

/// How much an event matters, in rising order.
package enum LogLevel: UInt8, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error

    package var name: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }

    /// The level of a name, or nil.
    package init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// Writes events from any thread; a line goes out in one write, so lines never mix.
package struct Log: Sendable {
    /// Events below this level are dropped.
    package let level: LogLevel
    private let sink: @Sendable (String) -> Void
    /// Where the lines of some events point to.
    package let console = ConsoleLinks()
    private let limit = LogLimit()
    private let clock: @Sendable () -> UInt64
    /// Pairs of every line that do not come from its event.
    private var context: [(key: String, value: String)] = []

    /// A log that hands each whole line, its newline included, to `sink`, which any thread may call.
    ///
    /// - Parameter clock: monotonic milliseconds, for the limit of repeated lines.
    package init(
        level: LogLevel, clock: @escaping @Sendable () -> UInt64 = { SystemClock.monotonicMilliseconds() },
        sink: @escaping @Sendable (String) -> Void
    ) {
        self.level = level
        self.clock = clock
        self.sink = sink
    }

    /// A log on stderr.
    package static func standardError(level: LogLevel) -> Log {
        Log(level: level) { line in
            var line = line
            // A failed write to the log cannot be reported; the server continues.
            line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
    }

    /// The same log for what a part of the program writes: each line has a further pair, unless its event has one with
    /// that key.
    package func with(_ key: String, _ value: String) -> Log {
        var part = self
        part.context.append((key, value))
        return part
    }

    /// Writes one event. Values are taken only where the line is written.
    package func callAsFunction(
        _ level: LogLevel, _ event: StaticString, _ pairs: @autoclosure () -> KeyValuePairs<String, String> = [:]
    ) {
        guard admits(level, event) else { return }
        put(level, event, pairs().map { ($0, $1) })
    }

    /// The same for pairs that are put together.
    package func write(_ level: LogLevel, _ event: StaticString, _ pairs: [(String, String)]) {
        guard admits(level, event) else { return }
        put(level, event, pairs)
    }

    /// Writes how many lines were left out and not reported yet; for the end of the program.
    package func reportSuppressed() { report(limit.takeAll()) }

    private func admits(_ level: LogLevel, _ event: StaticString) -> Bool {
        guard level >= self.level else { return false }
        let (isAdmitted, before) = limit.admit("\(event)", level, now: clock())
        report(before)
        return isAdmitted
    }

    private func report(_ suppressions: [LogLimit.Suppression]) {
        for suppression in suppressions {
            let pairs = [("of", suppression.event), ("lines", String(suppression.lines))]
            put(suppression.level, "lines_suppressed", pairs)
        }
    }

    private func put(_ level: LogLevel, _ event: StaticString, _ pairs: [(String, String)]) {
        var line = "time=\(Self.timestamp()) level=\(level.name) event=\(event)"
        let added = context.filter { added in !pairs.contains { $0.0 == added.key } }
        for (key, value) in added + pairs { line += " \(key)=\(Self.quoteIfNeeded(value))" }
        if let link = console.link(for: "\(event)") { line += " console=\(Self.quoteIfNeeded(link))" }
        sink(line + "\n")
    }

    /// Now in UTC with milliseconds, RFC 3339.
    private static func timestamp() -> String {
        let now = SystemClock.wallNanoseconds()
        var text: [UInt8] = []
        CalendarDate(secondsSinceEpoch: now / 1_000_000_000).appendRFC3339(to: &text)
        text.append(UInt8(ascii: "."))
        CalendarDate.append(Int(now / 1_000_000 % 1_000), width: 3, to: &text)
        return String(decoding: text, as: UTF8.self) + "Z"
    }

    /// The value as it is, or as a string of JSON. Characters that a reader of the log would obey are escaped.
    static func quoteIfNeeded(_ value: String) -> String {
        let isPlain =
            !value.isEmpty
            && value.unicodeScalars.allSatisfy { $0 != " " && $0 != "\"" && $0 != "=" && !PlainText.isObeyed($0) }
        return isPlain ? value : PlainText.escaped(JSONText.quoted(value))
    }
}

/// Texts for logs and terminals, which may have ids and messages of strangers.
package enum PlainText {
    /// The text with `\u001b` and the like for each character that its reader would obey.
    ///
    /// - Parameter keepsLines: whether tabs and the ends of lines stay.
    package static func escaped(_ text: String, keepsLines: Bool = false) -> String {
        var result = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            let isOfLine = scalar == "\t" || scalar == "\n" || scalar == "\r" && rest.first == "\n"
            if isObeyed(scalar), !(keepsLines && isOfLine) {
                result += "\\u" + Hexadecimal.text(UInt64(scalar.value)).suffix(4)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Whether a character controls a terminal, turns the direction of the text around it, or ends a line. All have
    /// four digits.
    fileprivate static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
