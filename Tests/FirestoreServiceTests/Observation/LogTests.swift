// The log's line format.

import FirestoreService
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct LogTests {
    /// Collects lines.
    private final class Lines: Sendable {
        let lines = Mutex<[String]>([])
    }

    private func line(_ value: String) -> String {
        let lines = Lines()
        let log = Log(level: .debug) { line in lines.lines.withLock { $0.append(line) } }
        log(.info, "tested", ["value": value])
        return lines.lines.withLock { $0.first ?? "" }
    }

    @Test(arguments: [
        ("plain", "plain"), ("127.0.0.1:80", "127.0.0.1:80"), ("", "\"\""), ("two words", "\"two words\""),
        ("a=b", "\"a=b\""), ("say \"x\"", "\"say \\\"x\\\"\""), ("back\\slash", "back\\slash"),
        ("back \\slash", "\"back \\\\slash\""), ("line\nbreak", "\"line\\nbreak\""), ("\u{1}", "\"\\u0001\""),
        ("é", "é"), ("日本", "日本"), ("\u{7F}", "\"\\u007f\""),
        // What a terminal obeys, what turns the direction of a text round, and what ends a line for some readers.
        ("a\u{9B}31m", "\"a\\u009b31m\""), ("a\u{80}", "\"a\\u0080\""), ("a\u{A0}", "a\u{A0}"),
        ("a\u{202E}b", "\"a\\u202eb\""), ("\u{2066}a\u{2069}", "\"\\u2066a\\u2069\""),
        ("\u{200E}\u{200F}\u{61C}", "\"\\u200e\\u200f\\u061c\""), ("a\u{2028}b\u{2029}", "\"a\\u2028b\\u2029\""),
    ])
    func `Values are quoted where they could be misread`(_ value: String, _ expected: String) {
        expect(line(value).hasSuffix(" level=info event=tested value=\(expected)\n"))
    }

    @Test
    func `A line begins with the time in UTC`() {
        expect(
            line("x").wholeMatch(
                of: /time=\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z level=info event=tested value=x\n/) != nil)
    }

    @Test
    func `A part of the program adds a pair to its lines, unless an event has its key`() {
        let lines = Lines()
        let log = Log(level: .debug) { line in lines.lines.withLock { $0.append(line) } }
        let part = log.with("store", "a b")
        part(.info, "first", ["epoch": "2"])
        part(.info, "second", ["store": "c"])
        log(.info, "third")
        let texts = lines.lines.withLock { $0.map { $0.drop { $0 != " " } } }
        expectEqual(
            texts,
            [
                " level=info event=first store=\"a b\" epoch=2\n", " level=info event=second store=c\n",
                " level=info event=third\n",
            ])
    }

    @Test
    func `Events below the level are dropped without asking for their values`() {
        let lines = Lines()
        let log = Log(level: .warning) { line in lines.lines.withLock { $0.append(line) } }
        func value() -> KeyValuePairs<String, String> {
            Issue.record("a dropped event's values were asked for")
            return [:]
        }
        log(.info, "dropped", value())
        log(.error, "kept")
        let kept = lines.lines.withLock { $0 }
        expectEqual(kept.count, 1)
        expectEqual(LogLevel(name: "debug"), .debug)
        expectNil(LogLevel(name: "loud"))
    }

    /// A log with a clock that the test sets.
    private final class TimedLog: Sendable {
        let now = Mutex<UInt64>(0)
        let lines = Lines()

        func make(_ level: LogLevel) -> Log {
            Log(level: level, clock: { self.now.withLock { $0 } }) { line in
                self.lines.lines.withLock { $0.append(line) }
            }
        }

        func count(_ event: String) -> Int { lines.lines.withLock { $0.count { $0.contains(" event=\(event)") } } }
        var last: String { lines.lines.withLock { $0.last ?? "" } }
    }

    @Test
    func `Lines of events that a view of the console explains end with its address`() {
        let lines = Lines()
        let log = Log(level: .info) { line in lines.lines.withLock { $0.append(line) } }
        log(.warning, "slow_call")
        log.console.server = "http://127.0.0.1:1"
        log(.warning, "slow_call", ["method": "RunQuery"])
        log(.warning, "other")
        let written = lines.lines.withLock { $0 }
        expectEqual(written.map { $0.contains("console") }, [false, true, false])
        expect(written[1].hasSuffix(" method=RunQuery console=http://127.0.0.1:1/console#/watch\n"))
    }

    @Test
    func `An event that repeats is written a number of times, and the rest is counted`() {
        let timed = TimedLog()
        let log = timed.make(.info)
        for _ in 0..<1_000 { log(.warning, "repeated") }
        expectEqual(timed.count("repeated"), 20)
        // Other events are not held back by it.
        log(.info, "another")
        expect(timed.count("another") == 1 && timed.count("lines_suppressed") == 0)
        timed.now.withLock { $0 = 10_000 }
        log(.info, "another")
        expectEqual(timed.count("lines_suppressed of=repeated lines=980"), 1)
        for _ in 0..<30 { log(.warning, "repeated") }
        expectEqual(timed.count("repeated"), 40)
        log.reportSuppressed()
        expect(timed.last.hasSuffix(" level=warning event=lines_suppressed of=repeated lines=10\n"))
        log.reportSuppressed()
        expectEqual(timed.count("lines_suppressed"), 2)
    }

    @Test
    func `A line whose time was read before that of another thread's line, and which comes after it, is written`() {
        let timed = TimedLog()
        let log = timed.make(.info)
        timed.now.withLock { $0 = 10 }
        log(.info, "first")
        timed.now.withLock { $0 = 9 }
        log(.info, "first")
        expectEqual(timed.count("first"), 2)
    }

    @Test
    func `An event that repeats slowly is always written`() {
        let timed = TimedLog()
        let log = timed.make(.info)
        for second in 0..<100 {
            timed.now.withLock { $0 = UInt64(second) * 1_000 }
            log(.info, "figures")
        }
        log.reportSuppressed()
        expect(timed.count("figures") == 100 && timed.count("lines_suppressed") == 0)
    }

    @Test
    func `A search at the debug level sees many more lines, and has a bound too`() {
        let timed = TimedLog()
        let log = timed.make(.debug)
        for _ in 0..<10_000 { log(.debug, "connection_opened") }
        expectEqual(timed.count("connection_opened"), 2_000)
    }
}
