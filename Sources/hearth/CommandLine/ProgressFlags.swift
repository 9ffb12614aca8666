// The flags of the commands that take long.

/// Flags of the commands that print progress.
enum ProgressFlags {
    static let quiet = Flag(switch: "quiet", help: "Do not print progress.")
    static let interval = Flag(
        "progress", "TIME", default: TimeSpan.seconds(5),
        help: "The time between two lines of progress on standard error. A terminal shows one line that changes.")

    static let all: [any FlagDeclaration] = [quiet, interval]

    /// The line of a command that begins now.
    static func line(_ arguments: ParsedArguments) -> ProgressLine {
        ProgressLine(isQuiet: arguments[quiet], interval: .milliseconds(arguments[interval].milliseconds))
    }
}
