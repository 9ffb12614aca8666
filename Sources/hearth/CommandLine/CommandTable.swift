/// The verbs of `hearth`. Help, completions and manual pages are made of this table.
enum CommandTable {
    /// Every verb, in the order of the help text.
    static var all: [any Subcommand.Type] {
        [
            ServeCommand.self, GetCommand.self, QueryCommand.self, LoadCommand.self, ExportCommand.self,
            CheckCommand.self, WatchCommand.self, BackupCommand.self, ForkCommand.self, RestoreCommand.self,
            SalvageCommand.self,
            IndexesCommand.self, RulesCommand.self, TokenCommand.self, HealthCommand.self, CompletionCommand.self,
            ManualCommand.self,
        ]
    }

    /// Those that users see.
    static var shown: [any Subcommand.Type] { all.filter { !$0.isHidden } }
}
