import FirebaseFirestore

@main struct Program {
    static let usage = """
        usage: Tasks [--offline] list | add TITLE | toggle ID | delete ID | watch [COUNT]

        """

    static func main() async throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        let isOffline = arguments.first == "--offline"
        if isOffline { arguments.removeFirst() }

        let database = Firestore.firestore()
        if !database.settings.host.hasPrefix("file:") {
            let settings = database.settings
            settings.cacheSettings = PersistentCacheSettings()
            database.settings = settings
        }
        if isOffline { try await database.disableNetwork() }

        let tasks = TaskList(database: database, isOffline: isOffline)
        switch (arguments.first, arguments.count) {
        case ("list", 1): try await tasks.list()
        case ("add", 2): try await tasks.add(arguments[1])
        case ("toggle", 2): try await tasks.toggle(arguments[1])
        case ("delete", 2): try await tasks.delete(arguments[1])
        case ("watch", 1): try await tasks.watch(count: nil)
        case ("watch", 2): try await tasks.watch(count: Int(arguments[1]))
        default:
            FileHandle.standardError.write(Data(usage.utf8))
            exit(64)
        }
        try await database.terminate()
    }
}
