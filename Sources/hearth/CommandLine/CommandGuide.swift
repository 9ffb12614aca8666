/// Which command is for which task, and what the exit statuses mean. `hearth --help` and docs/commands.md have both
/// tables.
enum CommandGuide {
    /// A task, and the command line for it without `hearth`.
    static let tasks: [(task: String, command: String)] = [
        ("start a server", "serve --data DIR"),
        ("see who could do what", "serve --check-config"),
        ("is it ready?", "health --data DIR"),
        ("look at documents", "ls, get, query"),
        ("see changes as they happen", "watch"),
        ("change a document", "set, update, delete"),
        ("copy or delete a collection", "copy, delete --recursive"),
        ("load or export JSON lines", "load, export"),
        ("copy a live Firestore", "migrate --from-firestore PROJECT"),
        ("why is a query slow?", "query --explain"),
        ("which indexes are missing?", "indexes suggest"),
        ("declare or list indexes", "indexes apply, indexes list"),
        ("copy a running server", "backup --data DIR TO"),
        ("return to a backup", "restore --data DIR FROM"),
        ("try something on real data", "fork DIR NEW"),
        ("is a directory intact?", "check --data DIR"),
        ("rescue a damaged directory", "salvage DIR OUT"),
        ("open it with a new version", "upgrade DIR"),
        ("change security rules", "rules apply FILE"),
        ("give a server a credential", "token"),
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
