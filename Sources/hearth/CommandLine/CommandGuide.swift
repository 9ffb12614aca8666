/// Which command is for which task, and what the exit statuses mean. `hearth --help` and docs/commands.md have both
/// tables.
enum CommandGuide {
    /// A task, and the command line for it without `hearth`.
    static let tasks: [(task: String, command: String)] = [
        ("start a server", "serve --data DIR"),
        ("see who could do what", "serve --check-config"),
        ("is it ready?", "health --data DIR"),
        ("what does it do and take?", "status --data DIR"),
        ("look at documents", "ls, get, query"),
        ("see changes as they happen", "watch"),
        ("change a document", "set, update, delete"),
        ("copy or delete a collection", "copy, delete --recursive"),
        ("list, create or delete databases", "databases"),
        ("load or export JSON lines or CSV", "load, export"),
        ("import an export of the cloud", "import DIR"),
        ("copy a live Firestore", "migrate --from-firestore PROJECT"),
        ("why is a query slow?", "query --explain"),
        ("which indexes are missing?", "indexes suggest"),
        ("declare or list indexes", "indexes apply, indexes list"),
        ("copy a running server", "backup --data DIR TO"),
        ("return to a backup", "restore --data DIR FROM"),
        ("return to a moment", "restore --from ARCHIVE --to DIR --at TIME"),
        ("make a replica the server", "promote --data DIR"),
        ("try something on real data", "fork DIR NEW"),
        ("is a directory intact?", "check --data DIR"),
        ("put a store into a cluster", "migrate --from DIR --to postgresql://..."),
        ("take a store out of a cluster", "migrate --from postgresql://... --to DIR"),
        ("who leads a cluster?", "cluster status"),
        ("move a database to another store", "move DATABASE STORE"),
        ("a cluster's PostgreSQL was restored", "cluster restored"),
        ("rescue a damaged directory", "salvage DIR OUT"),
        ("open it with a new version", "upgrade DIR"),
        ("change security rules", "rules apply FILE"),
        ("give a server a credential", "token"),
    ]

    /// What a command prints.
    enum Output: String {
        /// Lines for people, and objects with `--json`.
        case json = "lines, and objects with `--json`"
        /// Documents, as JSON lines.
        case documents = "JSON lines"
        /// What was asked for is a text or a file: rules, scripts, pages.
        case text = "a text as it is"
        /// It changes something, and says at most what it has done.
        case change = "what was done"
    }

    /// What each command prints on standard output.
    static let outputs: [(command: String, output: Output)] = [
        ("serve", .change), ("ls", .json), ("get", .documents), ("query", .documents), ("watch", .json),
        ("set", .change), ("update", .change), ("delete", .change), ("copy", .change), ("load", .change),
        ("export", .documents), ("migrate", .change), ("import", .change), ("check", .json), ("backup", .change),
        ("archive", .json),
        ("fork", .change), ("restore", .change), ("salvage", .change), ("upgrade", .change), ("promote", .change),
        ("cluster", .json), ("move", .json), ("databases", .json), ("indexes", .json), ("rules", .json),
        ("token", .json),
        ("status", .json),
        ("health", .json), ("completion", .text), ("manual", .text),
    ]

    /// Exit statuses of every command.
    static let statuses: [(status: String, meaning: String)] = [
        ("0", "done; of serve: stopped by a signal, all state written; of check: no problem"),
        (
            "1",
            "failed, and the last line of standard error says why; of check: there are problems; of health: not ready"
        ),
        ("2", "a wrong argument, flag, environment variable or file of settings; nothing was done"),
        ("signal 13", "the output is a closed pipe"),
    ]
}
