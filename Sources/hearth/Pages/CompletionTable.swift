// What completions of shells offer, from the table of commands.

/// A command as a completion sees it.
struct CompletedCommand {
    let name: String
    let summary: String
    /// What the first word may be.
    let actions: [String]
    let flags: [CompletedFlag]

    init(_ command: any Subcommand.Type) {
        name = command.name
        summary = command.summary
        actions = command.actions
        flags = command.flagGroups.flatMap(\.flags).flatMap(CompletedFlag.all)
    }
}

/// One spelling of a flag as a completion sees it.
struct CompletedFlag {
    /// What a shell may offer for the value.
    enum Value {
        /// A switch takes none.
        case none
        case file, directory
        /// The user has to know it.
        case unknown
    }

    /// Without its dashes.
    let name: String
    let value: Value
    /// What stands for the value; empty for a switch.
    let placeholder: String
    let isRepeatable: Bool
    /// The first sentence of the help text, without its full stop.
    let summary: String

    /// The spellings of a flag.
    static func all(_ flag: any FlagDeclaration) -> [CompletedFlag] {
        let value: Value =
            if flag.isSwitch { .none } else {
                switch flag.placeholder {
                case "FILE": .file
                case "DIR": .directory
                default: .unknown
                }
            }
        return flag.names.map { name in
            CompletedFlag(
                name: name, value: value, placeholder: flag.placeholder, isRepeatable: flag.isRepeatable,
                summary: sentence(flag.help))
        }
    }

    /// The first sentence of a text: up to a full stop or a semicolon before a space.
    private static func sentence(_ text: String) -> String {
        var sentence = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            if ".;".contains(character), rest.first.map({ $0 == " " }) ?? true { return sentence }
            sentence.append(character)
        }
        return sentence
    }
}
