// What a subcommand is, and how a command line finds its way to one.

import Glibc

/// One verb of `hearth`, in a separate file under `Commands/`.
///
/// Its work is in one of two refinements: ``BlockingSubcommand``, ``AsyncSubcommand``.
protocol Subcommand {
    /// The verb: `serve`.
    static var name: String { get }
    /// One line for the list of verbs.
    static var summary: String { get }
    /// The paragraphs of `hearth VERB --help` between the usage line and the flags.
    static var discussion: String { get }
    /// The words it takes beside flags.
    static var words: [String] { get }
    /// Its flags in the order of the help text, by heading.
    static var flagGroups: [FlagGroup] { get }
    /// What the first word may be; empty if that is for the user to choose.
    static var actions: [String] { get }
    /// Whether the list of verbs leaves it out.
    static var isHidden: Bool { get }
}

extension Subcommand {
    static var actions: [String] { [] }
    static var isHidden: Bool { false }

    /// The first word of a command line, one of ``actions``.
    static func action(_ arguments: ParsedArguments) throws(UsageError) -> String {
        let word = arguments.words.first ?? ""
        if actions.contains(word) { return word }
        throw UsageError(message: "\"\(word)\" is not \(ArgumentParser.choice(of: actions))")
    }
}

/// A verb that does its work on one thread, which it may block, before Swift's concurrency has started any.
///
/// It also works where /proc is not mounted.
protocol BlockingSubcommand: Subcommand {
    /// Does the work; a thrown error is printed to stderr and ends with status 1.
    static func run(_ arguments: ParsedArguments) throws
}

/// A verb that waits for calls by Swift's concurrency.
protocol AsyncSubcommand: Subcommand {
    /// Does the work; a thrown error is printed to stderr and ends with status 1.
    static func run(_ arguments: ParsedArguments) async throws
}

/// Flags under one heading of the help text.
struct FlagGroup: Sendable {
    let heading: String
    let flags: [any FlagDeclaration]
}

/// An error whose text is all that the user needs.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Finds the subcommand, parses, runs, and turns errors into exit statuses: 0 done, 1 failed, 2 not understood.
struct CommandRouter {
    /// What `hearth --version` prints.
    static let version = BuildVersion.current.description

    let subcommands: [any Subcommand.Type]

    /// Does what the command line asks on the calling thread; nil when the verb is one for ``runAsync(_:)``.
    func run(_ arguments: [String]) -> Int32? {
        do {
            if let status = try answer(arguments) {
                try StandardOutput.flush()
                return status
            }
            guard let subcommand = subcommand(arguments[0]) as? any BlockingSubcommand.Type else { return nil }
            try subcommand.run(Self.parse(Array(arguments.dropFirst()), for: subcommand))
            try StandardOutput.flush()
            return 0
        } catch {
            return Self.report(error, of: arguments.first ?? "")
        }
    }

    /// Runs a verb that ``run(_:)`` left.
    func runAsync(_ arguments: [String]) async -> Int32 {
        guard let subcommand = arguments.first.flatMap(subcommand) as? any AsyncSubcommand.Type else { return 2 }
        do {
            try Self.checkProcessFiles(subcommand.name)
            try await subcommand.run(Self.parse(Array(arguments.dropFirst()), for: subcommand))
            try StandardOutput.flush()
            return 0
        } catch {
            return Self.report(error, of: subcommand.name)
        }
    }

    /// libdispatch runs Swift's tasks. It reads the states of its threads in /proc each second, and traps if it cannot.
    private static func checkProcessFiles(_ verb: String) throws {
        guard access("/proc/self/stat", R_OK) != 0 else { return }
        throw CommandFailure("hearth \(verb) needs /proc, which is not mounted: mount -t proc proc /proc")
    }

    /// Prints help or the version, or that there is no such verb; nil if a verb is to run.
    /// - Throws: as `StandardOutput.print`.
    private func answer(_ arguments: [String]) throws -> Int32? {
        guard let verb = arguments.first, !["--help", "-h"].contains(verb) else {
            try StandardOutput.print(HelpText.overview(of: subcommands))
            return arguments.isEmpty ? 2 : 0
        }
        if verb == "help" { return try help(arguments.dropFirst().first) }
        if verb == "--version" || verb == "version" {
            try StandardOutput.print("hearth \(Self.version)")
            return 0
        }
        guard let subcommand = subcommand(verb) else { return refuse(verb) }
        guard Self.asksForHelp(Array(arguments.dropFirst())) else { return nil }
        try StandardOutput.print(HelpText.page(of: subcommand))
        return 0
    }

    /// Says that there is no such verb.
    /// - Returns: the exit status.
    private func refuse(_ verb: String) -> Int32 {
        let nearest = Spelling.nearest(to: verb, among: subcommands.map { $0.name })
        let hint = nearest.map { "; did you mean \($0)?" } ?? ""
        Self.complain("unknown command \"\(verb)\"\(hint)\n\nRun hearth --help for the list of commands.")
        return 2
    }

    private func subcommand(_ verb: String) -> (any Subcommand.Type)? { subcommands.first { $0.name == verb } }

    /// A `--help` anywhere before `--` asks for help.
    private static func asksForHelp(_ words: [String]) -> Bool {
        words.prefix { $0 != "--" }.contains { $0 == "--help" || $0 == "-h" }
    }

    private static func parse(_ words: [String], for subcommand: any Subcommand.Type) throws -> ParsedArguments {
        try ArgumentParser(
            flags: subcommand.flagGroups.flatMap(\.flags), words: subcommand.words, actions: subcommand.actions
        ).parse(words)
    }

    /// Prints an error and returns the exit status.
    private static func report(_ error: any Error, of verb: String) -> Int32 {
        if error is StandardOutput.Closed { StandardOutput.endOfPipe() }
        if let error = error as? UsageError {
            complain("\(error.message)\n\nRun hearth \(verb) --help for its arguments and flags.")
            return 2
        }
        // What was printed before comes before the error.
        try? StandardOutput.flush()
        complain(ErrorText.describe(error))
        return 1
    }

    private func help(_ verb: String?) throws -> Int32 {
        guard let verb else {
            try StandardOutput.print(HelpText.overview(of: subcommands))
            return 0
        }
        guard let subcommand = subcommand(verb) else { return refuse(verb) }
        try StandardOutput.print(HelpText.page(of: subcommand))
        return 0
    }

    /// Writes a message to stderr.
    static func complain(_ message: String) {
        let text = String(decoding: StandardOutput.printable(Array(message.utf8)), as: UTF8.self)
        StandardError.write("hearth: \(text)\n")
    }
}
