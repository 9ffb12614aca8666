/// Completion of command lines by fish.
enum FishCompletion {
    /// The file `hearth.fish`, for these commands.
    static func text(of commands: [CompletedCommand]) -> String {
        var lines = [
            "# Completion of hearth(1) for fish, made by `hearth completion fish`.",
            "complete -c hearth -n __fish_use_subcommand -f",
        ]
        lines += commands.map {
            "complete -c hearth -n __fish_use_subcommand -f -a \($0.name) -d \(quoted($0.summary))"
        }
        for command in commands {
            let condition = "complete -c hearth -n '__fish_seen_subcommand_from \(command.name)'"
            if !command.actions.isEmpty {
                lines.append("\(condition) -a \(quoted(command.actions.joined(separator: " ")))")
            }
            lines += command.flags.map { "\(condition) -l \($0.name)\(value(of: $0)) -d \(quoted($0.summary))" }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func value(of flag: CompletedFlag) -> String {
        switch flag.value {
        case .none: ""
        case .file: " -r -F"
        case .directory: " -x -a '(__fish_complete_directories)'"
        case .unknown: " -x"
        }
    }

    /// The text between single quotes.
    private static func quoted(_ text: String) -> String {
        "'" + String(text.flatMap { "'\\".contains($0) ? ["\\", $0] : [$0] }) + "'"
    }
}
