// `hearth`: the server and its tools. Each command is a file under `Commands/`; what they share is under
// `CommandLine/`.

import Glibc

let router = CommandRouter(subcommands: [
    ServeCommand.self, GetCommand.self, QueryCommand.self, LoadCommand.self, ExportCommand.self, CheckCommand.self,
    WatchCommand.self, BackupCommand.self, RestoreCommand.self, IndexesCommand.self,
])
let arguments = Array(CommandLine.arguments.dropFirst())
if let status = router.runOnMainThread(arguments) { exit(status) }
exit(await router.run(arguments))
