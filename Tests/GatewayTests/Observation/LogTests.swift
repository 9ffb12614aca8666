// The log's line format.

import Gateway
import Synchronization
import Testing

@Suite("The log")
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

    @Test(
        "Values are quoted where they could be misread",
        arguments: [
            ("plain", "plain"), ("127.0.0.1:80", "127.0.0.1:80"), ("", "\"\""), ("two words", "\"two words\""),
            ("a=b", "\"a=b\""), ("say \"x\"", "\"say \\\"x\\\"\""), ("back\\slash", "back\\slash"),
            ("back \\slash", "\"back \\\\slash\""), ("line\nbreak", "\"line\\nbreak\""), ("\u{1}", "\"\\u0001\""),
            ("é", "é"),
        ])
    func quoting(_ value: String, _ expected: String) {
        #expect(line(value).hasSuffix(" level=info event=tested value=\(expected)\n"))
    }

    @Test("A line begins with the time in UTC")
    func time() {
        #expect(line("x").wholeMatch(of: /time=\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z level=info event=tested value=x\n/) != nil)
    }

    @Test("Events below the level are dropped without asking for their values")
    func levels() {
        let lines = Lines()
        let log = Log(level: .warning) { line in lines.lines.withLock { $0.append(line) } }
        func value() -> KeyValuePairs<String, String> {
            Issue.record("a dropped event's values were asked for")
            return [:]
        }
        log(.info, "dropped", value())
        log(.error, "kept")
        let kept = lines.lines.withLock { $0 }
        #expect(kept.count == 1)
        #expect(LogLevel(name: "debug") == .debug)
        #expect(LogLevel(name: "loud") == nil)
    }
}
