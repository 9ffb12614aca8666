// Parses the arguments of a subcommand: flags, their environment variables, settings of a file, and other words.

import Glibc

/// What the user asked for wrongly; printed with a pointer to `--help`, exit status 2.
struct UsageError: Error {
    let message: String
}

/// The result of parsing: typed values by flag, and the words that are not flags.
struct ParsedArguments {
    /// The words that are not flags, in order; everything after `--` is here.
    fileprivate(set) var words: [String] = []
    private var texts: [String: [String]] = [:]
    /// Names of the flags that the command line gives.
    fileprivate(set) var given: Set<String> = []

    /// The value of a flag that has a default or is required.
    subscript<Value>(flag: Flag<Value>) -> Value {
        guard let value = value(of: flag) else {
            preconditionFailure("--\(flag.name) has no default: use value(of:) or mark the flag as required")
        }
        return value
    }

    /// The value of a flag, or nil where it was not given and has no default.
    func value<Value>(of flag: Flag<Value>) -> Value? {
        guard let text = texts[flag.name]?.last else { return flag.defaultValue }
        // Every text was checked when it was stored.
        return try? flag.parse(text)
    }

    /// The values of a flag that may be given several times, in order.
    func values<Value>(of flag: Flag<Value>) -> [Value] { (texts[flag.name] ?? []).compactMap { try? flag.parse($0) } }

    /// - Parameter isFurther: not the first time that the command line gives the flag.
    fileprivate mutating func store(
        _ text: String, for flag: any FlagDeclaration, from origin: String, isFurther: Bool = false
    ) throws(UsageError) {
        try Self.check(text, of: flag, from: origin)
        // The command line wins over the environment.
        if isFurther { texts[flag.name]?.append(text) } else { texts[flag.name] = [text] }
    }

    /// - Parameter origin: where the text comes from, for the message.
    fileprivate static func check(
        _ text: String, of flag: any FlagDeclaration, from origin: String
    ) throws(UsageError) {
        do throws(FlagTextError) {
            try flag.check(text)
        } catch {
            throw UsageError(message: "\(origin) must be \(error.expected), not \"\(text)\"")
        }
    }

    /// The texts of a flag's values: those that were given, or the default.
    func texts(of flag: any FlagDeclaration) -> [String] { texts[flag.name] ?? flag.defaultText.map { [$0] } ?? [] }

    /// Whether the command line or the environment gives a flag.
    func has(_ flag: any FlagDeclaration) -> Bool { texts[flag.name] != nil }
}

/// The parser of one subcommand's words.
struct ArgumentParser {
    let flags: [any FlagDeclaration]
    /// The words the subcommand takes beside flags, for example `["NAME"]`. A last one in brackets may be left out, one
    /// with `...` may be repeated.
    let words: [String]
    /// What the first of these words may be; empty if that is for the user to choose.
    var actions: [String] = []
    /// Looks an environment variable up.
    var environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } }

    /// Parses; `--help` and `-h` are the caller's to look for first.
    func parse(_ arguments: [String]) throws -> ParsedArguments {
        var parsed = ParsedArguments()
        for flag in flags {
            if let text = environment(flag.environmentVariable) {
                try parsed.store(text, for: flag, from: flag.environmentVariable)
            }
        }
        try readWords(arguments, into: &parsed)
        if flags.contains(where: { $0.name == ConfigurationFile.flag.name }),
            let path = parsed.value(of: ConfigurationFile.flag)
        {
            try readSettings(ConfigurationFile(path), into: &parsed)
        }
        for flag in flags where flag.isRequired && !parsed.has(flag) {
            throw UsageError(message: "missing --\(flag.name) \(flag.placeholder): \(flag.help)")
        }
        try checkWordCount(parsed.words)
        return parsed
    }

    private func readWords(_ arguments: [String], into parsed: inout ParsedArguments) throws {
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            if argument == "--" {
                parsed.words.append(contentsOf: arguments[index...])
                return
            }
            // A lone dash stands for standard input or output and is a word.
            guard argument.hasPrefix("-"), argument != "-" else {
                parsed.words.append(argument)
                continue
            }
            let (flag, attached) = try flag(of: argument)
            let isFurther = !parsed.given.insert(flag.name).inserted
            if isFurther, !flag.isRepeatable { throw UsageError(message: "--\(flag.name) may be given only once") }
            let text: String
            if let attached {
                text = attached
            } else if flag.isSwitch {
                text = "true"
            } else if index < arguments.count {
                text = arguments[index]
                index += 1
            } else {
                throw UsageError(message: "--\(flag.name) needs a value: --\(flag.name) \(flag.placeholder)")
            }
            try parsed.store(text, for: flag, from: "--\(flag.name)", isFurther: isFurther)
        }
    }

    /// Adds the settings of a file that neither the environment nor the command line has.
    private func readSettings(_ file: ConfigurationFile, into parsed: inout ParsedArguments) throws(UsageError) {
        let overridden = flags.filter { parsed.has($0) }.map(\.name)
        var names: Set<String> = []
        for setting in file.settings {
            let place = file.place(setting)
            let known = flags.filter { $0.name != ConfigurationFile.flag.name }
            guard let flag = known.first(where: { $0.name == setting.name }) else {
                let nearest = Spelling.nearest(to: setting.name, among: known.map(\.name))
                throw UsageError(
                    message: "\(place) is not a setting" + (nearest.map { "; did you mean \($0)?" } ?? ""))
            }
            let isFurther = !names.insert(flag.name).inserted
            if isFurther, !flag.isRepeatable { throw UsageError(message: "\(place) may be set only once") }
            if overridden.contains(flag.name) {
                try ParsedArguments.check(setting.value, of: flag, from: place)
            } else {
                try parsed.store(setting.value, for: flag, from: place, isFurther: isFurther)
            }
        }
    }

    /// The flag that a word names, and the value attached with `=`.
    private func flag(of argument: String) throws -> (any FlagDeclaration, String?) {
        let body = argument.drop { $0 == "-" }
        let name = String(body.prefix { $0 != "=" })
        let attached = body.firstIndex(of: "=").map { String(body[body.index(after: $0)...]) }
        if argument.hasPrefix("--"), let flag = flags.first(where: { $0.names.contains(name) }) {
            return (flag, attached)
        }
        let nearest = Spelling.nearest(to: name, among: flags.flatMap(\.names))
        throw UsageError(message: "unknown flag \(argument)" + (nearest.map { "; did you mean --\($0)?" } ?? ""))
    }

    /// `list, check or prune`.
    static func choice(of words: [String]) -> String {
        words.count < 2 ? words.joined() : "\(words.dropLast().joined(separator: ", ")) or \(words[words.count - 1])"
    }

    private func checkWordCount(_ given: [String]) throws {
        let repeats = words.last?.contains("...") ?? false
        let isOptional = words.last?.hasPrefix("[") ?? false
        if given.count < words.count - (isOptional ? 1 : 0) {
            let word = words[given.count].filter { $0 != "." && $0 != "[" && $0 != "]" }
            let choice = given.isEmpty && !actions.isEmpty ? ": \(Self.choice(of: actions))" : ""
            throw UsageError(message: "missing argument \(word)\(choice)")
        }
        if given.count > words.count, !repeats {
            throw UsageError(message: "unexpected argument \"\(given[words.count])\"")
        }
    }
}

/// Finds the name that is closest to a mistyped one.
enum Spelling {
    /// The candidate within two edits of the word (one for short words), the nearest first; nil if none is.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let scored = candidates.map { (distance(Array(word), Array($0)), $0) }
        guard let best = scored.min(by: { $0.0 < $1.0 }), best.0 <= (word.count <= 4 ? 1 : 2) else { return nil }
        return best.1
    }

    /// Edits that lead from one word to the other: a letter more, less or different, or two neighbours swapped.
    private static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var rows = [Array(0...right.count)]
        for (row, letter) in left.enumerated() {
            var next = [row + 1]
            for (column, other) in right.enumerated() {
                var edits = min(
                    rows[row][column] + (letter == other ? 0 : 1), rows[row][column + 1] + 1, next[column] + 1)
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    edits = min(edits, rows[row - 1][column - 1] + 1)
                }
                next.append(edits)
            }
            rows.append(next)
        }
        return rows[left.count][right.count]
    }
}
