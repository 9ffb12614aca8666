// `hearth manual`: the manual pages.

/// Prints a manual page. Packages have its output; the list of commands leaves it out.
enum ManualCommand: BlockingSubcommand {
    static let name = "manual"
    static let summary = "Prints a manual page for man(1)."
    static let words = ["[PAGE]"]
    static let isHidden = true
    static let flagGroups: [FlagGroup] = []

    static let discussion = """
        PAGE is hearth, or hearth- and the name of a command. Without PAGE the names of all
        pages are printed.

        Example:

          hearth manual hearth-serve | man -l -
        """

    static func run(_ arguments: ParsedArguments) throws {
        let commands = CommandTable.shown
        guard let name = arguments.words.first else {
            return try StandardOutput.print((["hearth"] + commands.map { "hearth-\($0.name)" }).joined(separator: "\n"))
        }
        if name == "hearth" { return try print(ManualPage.overview(of: commands)) }
        guard let command = commands.first(where: { "hearth-\($0.name)" == name }) else {
            throw UsageError(message: "there is no page \"\(name)\"")
        }
        try print(ManualPage.page(of: command))
    }

    private static func print(_ page: String) throws { try StandardOutput.write(Array(page.utf8)) }
}
