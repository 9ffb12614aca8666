// `hearth`: the server and its tools. Each command is a file under `Commands/`; what they share is under
// `CommandLine/`.

import CArguments
import Glibc

ClosedStreams.occupy()
let router = CommandRouter(subcommands: CommandTable.all)
// Not `CommandLine.arguments`, which are empty where /proc is not mounted.
let arguments = (0..<hearth_argument_count()).dropFirst().map { number in
    if let argument = String(validatingCString: hearth_argument(number)) { return argument }
    // With other characters in their place it would name another file, or another document.
    CommandRouter.complain("the argument number \(number) is not UTF-8")
    exit(2)
}
// A closed pipe and a limit of file sizes (ulimit -f) are errors of the write that meets them.
signal(SIGPIPE, SIG_IGN)
signal(SIGXFSZ, SIG_IGN)
if let status = CommandThread.run({ router.run(arguments) }) { exit(status) }
exit(await router.runAsync(arguments))
