// The flags that every command uses to reach a server and a database.

/// Flags of the commands that are clients of a running server.
enum ServerFlags {
    /// The server's address. `HEARTH_ADDRESS` is also what the Swift library reads.
    static let address = Flag(
        "address", "HOST:PORT", default: "127.0.0.1:8080",
        help: "Address of the server. HEARTH_ADDRESS sets it for all commands."
    ).alias("to", "from")
    static let project = Flag("project", "ID", default: "hearth", help: "The project of the database.")
    static let database = Flag("database", "ID", default: "(default)", help: "The database.")
}
