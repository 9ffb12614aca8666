/// The verbs of `hearth`. Help, completions and manual pages are made of this table.
enum CommandTable {
    /// Every verb, in the order of the help text.
    static var all: [any Subcommand.Type] {
        [
            ServeCommand.self, ListCommand.self, GetCommand.self, QueryCommand.self, WatchCommand.self, SetCommand.self,
            UpdateCommand.self, DeleteCommand.self, CopyCommand.self, LoadCommand.self, ExportCommand.self,
            ImportCommand.self, MigrateCommand.self,
            CheckCommand.self, BackupCommand.self, ArchiveCommand.self, ForkCommand.self, RestoreCommand.self,
            SalvageCommand.self, UpgradeCommand.self, PromoteCommand.self, ClusterCommand.self,
            MoveCommand.self, DatabasesCommand.self, IndexesCommand.self, RulesCommand.self, TokenCommand.self,
            StatusCommand.self,
            HealthCommand.self, CompletionCommand.self, ManualCommand.self,
        ]
    }

    /// Those that users see.
    static var shown: [any Subcommand.Type] { all.filter { !$0.isHidden } }
}
