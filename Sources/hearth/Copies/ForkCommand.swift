// `hearth fork`: a writable copy of a data directory that shares its files.

import DocumentStore
import EmbeddedEngine
import Server

/// Makes a data directory of another one without copying its files.
enum ForkCommand: BlockingSubcommand {
    static let name = "fork"
    static let summary = "Makes a writable copy of a data directory at once, whatever its size."
    static let words = ["DIR", "NEW"]
    static let flagGroups = [FlagGroup(heading: "Flags", flags: ProgressFlags.all)]
    static let discussion = """
        NEW becomes a data directory with everything that was committed to DIR. It must not
        exist or must be an empty directory. Both are independent from then on: what is
        written to one is not in the other, and either may be deleted.

        The files of DIR that never change are shared by hard links, so the time and the
        space do not depend on their size. If NEW is on another file system the files are
        copied. A fork does not protect against damage of the disk: hearth backup does.

        If a server uses DIR, the server makes the fork and continues to serve. A fork that
        fails leaves nothing in NEW.

        A server with several stores of a cluster makes NEW/NAME for each.

        hearth serve --fork-of DIR serves a fork that is deleted when the server ends.

        Example:

          hearth fork /var/lib/hearth /tmp/try
        """

    static func run(_ arguments: ParsedArguments) throws {
        let (source, target) = (arguments.words[0], PathWords.absolute(arguments.words[1]))
        let copied = try GrowthDisplay.show(target, upTo: source, ProgressFlags.line(arguments)) {
            try make(of: source, at: target)
        }
        let note =
            copied == 0 ? "" : "; \(copied) bytes were copied, as its file system cannot share files with \(source)"
        try StandardOutput.print("\(target) forked from \(source)\(note)")
    }

    /// Makes a fork, by the server if one uses the source.
    ///
    /// - Parameter target: an absolute path.
    /// - Returns: the bytes that were copied because files could not be shared.
    static func make(of source: String, at target: String) throws -> Int {
        try CopySource.check(source)
        // The engine refuses it too; asked here, nothing is opened for it.
        try TemporaryFork.checkApart(source, target, for: "a fork")
        do {
            let copied = try AdminClient.fork(directory: source, to: target)
            try CopySource.checkIsHere(target)
            return copied
        } catch {
            guard case AdminClient.Failure.noServer = error else { throw error }
            try CopySource.checkUnserved(source)
            return try DocumentStore.fork(source, to: target)
        }
    }
}
