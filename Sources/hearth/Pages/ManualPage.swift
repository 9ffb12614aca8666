// Manual pages, from the table of commands.

/// Pages of section 1 in the language of man(7).
enum ManualPage {
    /// The page `hearth(1)`: the list of commands.
    static func overview(of commands: [any Subcommand.Type]) -> String {
        var page = Roff(title: "HEARTH")
        page.heading("NAME")
        page.text("hearth - durable document database that speaks Firestore")
        page.heading("SYNOPSIS")
        page.preformatted(["hearth COMMAND [FLAGS] [WORDS]", "hearth COMMAND --help", "hearth --version"])
        page.heading("COMMANDS")
        for command in commands { page.item("hearth-\(command.name)(1)", command.summary) }
        page.heading("EXIT STATUS")
        for (status, meaning) in exitStatuses { page.item(status, meaning) }
        page.heading("ENVIRONMENT")
        page.text(environment)
        page.heading("SEE ALSO")
        page.text(commands.map { "hearth-\($0.name)(1)" }.joined(separator: ", "))
        return page.source
    }

    /// The page of one command, for example `hearth-serve(1)`.
    static func page(of command: any Subcommand.Type) -> String {
        var page = Roff(title: "HEARTH-\(command.name.uppercased())")
        let flags = command.flagGroups.contains { !$0.flags.isEmpty } ? ["[FLAGS]"] : []
        page.heading("NAME")
        page.text("hearth-\(command.name) - \(nameLine(command.summary))")
        page.heading("SYNOPSIS")
        page.preformatted([(["hearth", command.name] + flags + command.words).joined(separator: " ")])
        page.heading("DESCRIPTION")
        for paragraph in paragraphs(command.discussion) { page.paragraph(paragraph) }
        for group in command.flagGroups where !group.flags.isEmpty {
            page.heading(group.heading.uppercased())
            for flag in group.flags {
                let value = flag.isSwitch ? "" : " \(flag.placeholder)"
                page.item("--\(flag.name)\(value)", HelpText.text(of: flag))
            }
        }
        page.heading("EXIT STATUS")
        for (status, meaning) in exitStatuses { page.item(status, meaning) }
        page.heading("ENVIRONMENT")
        page.text(environment)
        page.heading("SEE ALSO")
        page.text("hearth(1)")
        return page.source
    }

    private static let exitStatuses = [
        ("0", "The command has done its work."), ("1", "It has failed; standard error has the reason."),
        ("2", "Its words, flags or environment variables are invalid."),
    ]

    private static let environment = """
        Every flag can also be set by an environment variable: HEARTH_ and the flag's name in capitals, with _ for - \
        (HEARTH_DATA for --data). The command line takes precedence.
        """

    /// A summary as the line of a page's name has it: with a small letter and without the full stop.
    private static func nameLine(_ summary: String) -> String {
        let text = summary.hasSuffix(".") ? summary.dropLast() : summary[...]
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Lines between empty lines.
    private static func paragraphs(_ text: String) -> [[String]] {
        text.split(separator: "\n", omittingEmptySubsequences: false).split(whereSeparator: \.isEmpty)
            .map { $0.map(String.init) }
    }
}

/// Builds a page of man(7).
private struct Roff {
    private var lines: [String]

    var source: String { lines.joined(separator: "\n") + "\n" }

    init(title: String) {
        lines = [
            #".\" Made by `hearth manual` from the tables of `hearth --help`."#,
            ".TH \(title) 1 \"\" \"hearth \(BuildVersion.number)\" Hearth", ".nh", ".ad l",
        ]
    }

    mutating func heading(_ text: String) { lines.append(".SH \"\(Self.escaped(text))\"") }

    mutating func text(_ text: String) { lines.append(Self.line(text)) }

    /// A paragraph; lines that are indented keep their form.
    mutating func paragraph(_ text: [String]) {
        lines.append(".PP")
        if text.allSatisfy({ $0.hasPrefix("  ") }) { preformatted(text) } else { lines += text.map(Self.line) }
    }

    mutating func preformatted(_ text: [String]) { lines += [".nf"] + text.map(Self.line) + [".fi"] }

    /// A term and its description.
    mutating func item(_ term: String, _ text: String) {
        lines += [".TP", #"\fB"# + Self.escaped(term) + #"\fR"#, Self.line(text)]
    }

    /// A line of text, which is never a request.
    private static func line(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? #"\&"# + escaped : escaped
    }

    private static func escaped(_ text: String) -> String {
        String(
            text.flatMap { character -> [Character] in
                switch character {
                case "\\": Array(#"\e"#)
                case "-": Array(#"\-"#)
                case "'": Array(#"\(aq"#)
                case "\"": Array(#"\(dq"#)
                case "`": Array(#"\(ga"#)
                case "^": Array(#"\(ha"#)
                case "~": Array(#"\(ti"#)
                default: [character]
                }
            })
    }
}
