// Lays out `hearth --help` and `hearth VERB --help`.

/// Help texts, 80 columns wide.
enum HelpText {
    private static let width = 80

    /// The list of verbs.
    static func overview(of subcommands: [any Subcommand.Type]) -> String {
        let subcommands = subcommands.filter { !$0.isHidden }
        let column = (subcommands.map { $0.name.count }.max() ?? 0) + 4
        var lines = [
            "hearth: a durable document database that speaks Firestore.",
            "",
            "usage: hearth COMMAND [FLAGS] [WORDS]",
            "",
        ]
        for subcommand in subcommands {
            let name = "  " + subcommand.name
            lines.append(name + String(repeating: " ", count: column - name.count + 2) + subcommand.summary)
        }
        lines += [
            "",
            "Start a server on 127.0.0.1:8080 with its data in ./hearth-data:",
            "",
            "  hearth serve",
            "",
            "Store a document and query for it, in another terminal:",
            "",
            #"  echo '{"__name__": "emma", "title": "Emma", "year": 1815}' | hearth load --collection books -"#,
            "  hearth query books --where 'year < 1900'",
            "",
            "Which command do I want?",
            "",
        ]
        let taskColumn = (CommandGuide.tasks.map { $0.task.count }.max() ?? 0) + 2
        lines += CommandGuide.tasks.map { row in
            "  " + row.task + String(repeating: " ", count: taskColumn - row.task.count) + "hearth " + row.command
        }
        lines += ["", "Exit statuses:", ""]
        for row in CommandGuide.statuses { lines += wrap("\(row.status): \(row.meaning)", indent: 2) }
        lines += ["", "Run hearth COMMAND --help for the arguments and flags of a command."]
        return lines.joined(separator: "\n")
    }

    /// The page of one verb.
    static func page(of subcommand: any Subcommand.Type) -> String {
        let hasFlags = subcommand.flagGroups.contains { !$0.flags.isEmpty }
        let usage = (["usage: hearth", subcommand.name] + (hasFlags ? ["[FLAGS]"] : []) + subcommand.words)
        var lines = [usage.joined(separator: " "), "", subcommand.summary]
        if !subcommand.discussion.isEmpty { lines += ["", subcommand.discussion] }
        for group in subcommand.flagGroups where !group.flags.isEmpty {
            lines += ["", "\(group.heading):"]
            for flag in group.flags { lines += describe(flag) }
        }
        if hasFlags {
            lines +=
                [""]
                + wrap(
                    "Every flag can also be set by an environment variable: HEARTH_ and the flag's name in capitals "
                        + "(HEARTH_DATA for --data). The command line takes precedence.", indent: 0)
        }
        return lines.joined(separator: "\n")
    }

    /// What `--help` and the manual say of a flag.
    static func text(of flag: any FlagDeclaration) -> String {
        var text = flag.help
        if let value = flag.defaultText { text += " Default \(value)." }
        if flag.isRequired { text += " Required." }
        if flag.isRepeatable { text += " May be given several times." }
        if !flag.aliases.isEmpty {
            text += " Also accepted as \(flag.aliases.map { "--\($0)" }.joined(separator: " and "))."
        }
        return text
    }

    private static func describe(_ flag: any FlagDeclaration) -> [String] {
        let head = "  --\(flag.name)" + (flag.isSwitch ? "" : " \(flag.placeholder)")
        return [head] + wrap(text(of: flag), indent: 6)
    }

    /// Breaks a text into lines of at most 80 columns.
    private static func wrap(_ text: String, indent: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        if !line.isEmpty { lines.append(line) }
        return lines.map { String(repeating: " ", count: indent) + $0 }
    }
}
