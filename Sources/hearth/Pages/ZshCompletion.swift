/// Completion of command lines by zsh.
enum ZshCompletion {
    /// The file `_hearth` of a directory in `fpath`, for these commands.
    static func text(of commands: [CompletedCommand]) -> String {
        """
        #compdef hearth
        # Completion of hearth(1) for zsh, made by `hearth completion zsh`.
        _hearth() {
            local line state
            _arguments -C '1:command:->command' '*::argument:->argument' && return
            case $state in
                command)
                    local -a commands=(
        \(commands.map(description).joined(separator: "\n"))
                    )
                    _describe command commands ;;
                argument)
                    case $line[1] in
        \(commands.map(clause).joined(separator: "\n"))
                    esac ;;
            esac
        }
        _hearth "$@"

        """
    }

    private static func description(_ command: CompletedCommand) -> String {
        "                \(quoted("\(command.name):\(command.summary)"))"
    }

    private static func clause(_ command: CompletedCommand) -> String {
        let words = command.actions.isEmpty ? [] : [quoted("1:action:(\(command.actions.joined(separator: " ")))")]
        let specifications = command.flags.map(specification) + words + [quoted("*:file:_files")]
        let lines = specifications.map { "                    \($0)" }
        return "            \(command.name)) _arguments \\\n" + lines.joined(separator: " \\\n") + " ;;"
    }

    private static func specification(_ flag: CompletedFlag) -> String {
        let name = (flag.isRepeatable ? "*" : "") + "--" + flag.name
        let value =
            switch flag.value {
            case .none: ""
            case .file: ":\(flag.placeholder):_files"
            case .directory: ":\(flag.placeholder):_files -/"
            case .unknown: ":\(escaped(flag.placeholder, ":")): "
            }
        return quoted("\(name)[\(escaped(flag.summary, "[]:"))]\(value)")
    }

    /// The text with a backslash before each of some characters.
    private static func escaped(_ text: String, _ characters: String) -> String {
        String(text.flatMap { characters.contains($0) || $0 == "\\" ? ["\\", $0] : [$0] })
    }

    /// The text between single quotes.
    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }
}
