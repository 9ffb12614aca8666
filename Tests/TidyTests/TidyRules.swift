// The rules of the source tree that a reader of lines can check.

/// One rule: where it holds, what breaks it, and what to do then.
struct TidyRule: CustomStringConvertible, Sendable {
    let name: String
    /// Folders, or single files.
    let folders: [String]
    var fileExtension = "swift"
    /// What to do about a violation.
    let remedy: String
    /// Indices of the lines that break the rule.
    let broken: @Sendable (SourceFile) -> [Int]

    var description: String { name }

    static let all = [
        lineLength, scriptLineLength, suitesHaveTimeLimits, answersAreNotDiscarded, nothingIsLeftToDo,
        sleepsHaveReasons, plainPages, plainComments, plainNames, publicIsDocumented, inlinableMembersAreUsable,
        stringsLendNoSpans, locksHoldNoClosures, expectationsAreFunctions,
    ]

    /// The files that the rule is about.
    func files() throws -> [SourceFile] {
        try folders.flatMap { try SourceTree.files(below: $0, extension: fileExtension) }
    }
}

extension TidyRule {
    static let columnsMax = 120

    /// Every Swift file of the repository.
    static let swiftSources = ["Sources", "Tools", "Tests", "Benchmarks", "Examples", "Package.swift"]

    static let lineLength = TidyRule(
        name: "Lines have at most 120 columns", folders: swiftSources,
        remedy: "Break the line: one argument or one condition a line."
    ) { file in
        file.lines.indices.filter { index in
            let line = file.lines[index]
            // Bytes first: counting characters is slow, and few lines have more bytes than columns allowed.
            guard line.utf8.count > columnsMax, line.count > columnsMax else { return false }
            // What Tests/Fuzz/run reads stands on one line.
            return !line.hasPrefix("// sources: ")
        }
    }

    static let scriptLineLength = TidyRule(
        name: "Lines of the console's modules have at most 120 columns", folders: ["Sources/CConsole/web"],
        fileExtension: "js", remedy: "Break the line: one property or one argument a line.", broken: lineLength.broken)

    // All tests begin at once and share few threads: the time of a test includes its wait for the others, so a limit
    // must be longer than the whole run on a slow machine.
    static let suitesHaveTimeLimits = TidyRule(
        name: "Every suite has a time limit", folders: ["Tests"],
        remedy: "Write @Suite(.timeLimit(.minutes(20))): a test that hangs then fails with its name."
    ) { file in
        file.lines.indices.filter { index in
            guard attribute("@Suite", on: file.lines[index]) else { return false }
            return !declaration(from: index, in: file).contains(".timeLimit")
        }
    }

    static let answersAreNotDiscarded = TidyRule(
        name: "No helper of tests has an answer that may be ignored", folders: ["Tests"],
        remedy: "Remove the attribute: the compiler then lists the calls that ignore the answer. Assert it there."
    ) { file in
        file.lines.indices.filter { attribute("@discardable" + "Result", on: file.lines[$0]) }
    }

    /// What follows the bracket where the macro remains: errors, ends of processes, and the comment on a closure.
    private static let macroArguments = ["throws:", "processExitsWith:", "\""]

    static let expectationsAreFunctions = TidyRule(
        name: "Conditions are checked by functions", folders: ["Tests"],
        remedy: "Write expect(_:), expectEqual(_:_:) or expectNil(_:) of TestSupport: see docs/decisions/0093."
    ) { file in
        if file.path.hasPrefix("Tests/UserCode") || file.path.hasPrefix("Tests/Interop") { return [] }
        return file.lines.indices.filter { index in
            file.lines[index].ranges(of: "#" + "expect(").contains { call in
                let rest = file.lines[index][call.upperBound...]
                let argument = rest.isEmpty ? file.lines.dropFirst(index + 1).first?.drop { $0 == " " } ?? "" : rest
                return !macroArguments.contains { argument.hasPrefix($0) }
            }
        }
    }

    static let nothingIsLeftToDo = TidyRule(
        name: "No work is left in comments", folders: swiftSources,
        remedy: "Do it now, or write an issue."
    ) { file in
        file.lines.indices.filter { index in
            file.lines[index].split { !$0.isLetter }.contains { $0 == "FIX" + "ME" || $0 == "TO" + "DO" }
        }
    }

    /// Longest sleep of a test that needs no reason.
    static let sleepMillisecondsMax = 20

    static let sleepsHaveReasons = TidyRule(
        name: "A sleep of more than 20 ms has a reason", folders: ["Tests"],
        remedy: "Wait for what is meant (waitUntil), or say in a comment on the line above why time has to pass."
    ) { file in
        file.lines.indices.filter { index in
            guard let milliseconds = sleepMilliseconds(file.lines[index]), milliseconds > sleepMillisecondsMax else {
                return false
            }
            let above = index > 0 ? file.lines[index - 1].drop { $0 == " " } : ""
            return !above.hasPrefix("//") && !file.lines[index].contains("// ")
        }
    }

    /// Optimized code of Swift 6.3 may end the stack frame that the span of a short string lies in before it is read.
    static let stringsLendNoSpans = TidyRule(
        name: "Strings lend no spans", folders: swiftSources,
        remedy: "Use withUTF8Span, or the span of an array."
    ) { file in
        file.lines.indices.filter { index in
            let code = file.lines[index].drop { $0 == " " }
            return !code.hasPrefix("//") && code.contains(".utf8" + "Span")
        }
    }

    /// Each access to a lock whose state is a closure wraps it in another one: calls get deeper until the stack ends.
    static let locksHoldNoClosures = TidyRule(
        name: "No closure is the state of a lock", folders: swiftSources,
        remedy: "Put the closure into a structure, and that into the lock."
    ) { file in
        file.lines.indices.filter { index in
            let code = file.lines[index].drop { $0 == " " }
            if code.hasPrefix("//") { return false }
            return ["Mutex", "Monitor", "WorkThread"].contains { lock in
                ["@Sendable", "(@Sendable"].contains { code.contains("\(lock)<\($0)") }
            }
        }
    }

    // MARK: Reading lines

    /// Whether an attribute stands on a line, and not in a comment.
    private static func attribute(_ name: String, on line: Substring) -> Bool {
        let code = line.drop { $0 == " " }
        return code.hasPrefix(name) && code.dropFirst(name.count).first.map { !$0.isLetter } ?? true
    }

    /// The text from an attribute up to the name of what it declares.
    private static func declaration(from index: Int, in file: SourceFile) -> String {
        var text = ""
        for line in file.lines[index...].prefix(12) {
            text += line + "\n"
            let words = line.split { !$0.isLetter }
            if words.contains(where: { ["struct", "class", "enum", "actor", "extension"].contains($0) }) { break }
        }
        return text
    }

    /// How long a line sleeps; `Int.max` when that is not a number on the line, nil when the line does not sleep.
    private static func sleepMilliseconds(_ line: Substring) -> Int? {
        let calls = [("usleep" + "(", 0.001), ("nanosleep" + "(", .infinity), ("Task" + ".sleep(", .infinity)]
        guard let (call, unit) = calls.first(where: { line.contains($0.0) }),
            let argument = line.range(of: call).map({ line[$0.upperBound...] })
        else { return nil }
        let units = [
            ("for: .seconds(", 1_000.0), ("for: .milliseconds(", 1), ("for: .microseconds(", 0.001), ("", unit),
        ]
        guard let (prefix, scale) = units.first(where: { argument.hasPrefix($0.0) }), scale.isFinite else {
            return .max
        }
        let digits = argument.dropFirst(prefix.count).prefix { $0.isNumber || $0 == "_" }
        let rest = argument.dropFirst(prefix.count + digits.count)
        guard rest.hasPrefix(")"), let number = Double(digits.filter { $0 != "_" }) else { return .max }
        return Int(number * scale)
    }
}
