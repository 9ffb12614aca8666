// `hearth completion`: what a shell needs to complete command lines of hearth.

/// Prints the completion of a shell. Packages have its output; the list of commands leaves it out.
enum CompletionCommand: BlockingSubcommand {
    static let name = "completion"
    static let summary = "Prints the completion of command lines for a shell."
    static let words = ["SHELL"]
    static let actions = ["bash", "zsh", "fish"]
    static let isHidden = true
    static let flagGroups: [FlagGroup] = []

    static let discussion = """
        SHELL is bash, zsh or fish.

        Example:

          source <(hearth completion bash)
        """

    static func run(_ arguments: ParsedArguments) throws {
        let commands = CommandTable.shown.map(CompletedCommand.init)
        let text =
            switch try action(arguments) {
            case "bash": BashCompletion.text(of: commands)
            case "zsh": ZshCompletion.text(of: commands)
            default: FishCompletion.text(of: commands)
            }
        try StandardOutput.write(Array(text.utf8))
    }
}
