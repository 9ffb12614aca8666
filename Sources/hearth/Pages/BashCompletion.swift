/// Completion of command lines by bash.
enum BashCompletion {
    /// The file that bash reads, for these commands.
    static func text(of commands: [CompletedCommand]) -> String {
        """
        # Completion of hearth(1) for bash, made by `hearth completion bash`.
        _hearth() {
            local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
            local flags= files= directories= values= actions=
            COMPREPLY=()
            case ${COMP_WORDS[1]} in
        \(commands.map(clause).joined(separator: "\n"))
            esac
            if [[ $COMP_CWORD == 1 ]]; then
                mapfile -t COMPREPLY < <(compgen -W "\(commands.map(\.name).joined(separator: " ")) help" -- "$word")
            elif [[ " $files " == *" $before "* ]]; then
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            elif [[ " $directories " == *" $before "* ]]; then
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -d -- "$word")
            elif [[ " $values " == *" $before "* ]]; then
                return
            elif [[ $word == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$flags --help" -- "$word")
            elif [[ $COMP_CWORD == 2 && -n $actions ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$word")
            else
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            fi
        }
        complete -F _hearth hearth

        """
    }

    private static func clause(_ command: CompletedCommand) -> String {
        func list(_ isListed: (CompletedFlag) -> Bool) -> String {
            "'\(command.flags.filter(isListed).map { "--\($0.name)" }.joined(separator: " "))'"
        }
        return """
                    \(command.name))
                        flags=\(list { _ in true })
                        files=\(list { $0.value == .file })
                        directories=\(list { $0.value == .directory })
                        values=\(list { $0.value == .unknown })
                        actions='\(command.actions.joined(separator: " "))' ;;
            """
    }
}
