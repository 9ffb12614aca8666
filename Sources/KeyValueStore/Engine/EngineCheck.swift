// API declaration; the parts behind it follow.

/// Verifies a directory that no engine has open: log, tree, order, versions, history.
package enum EngineCheck {
    package struct Report: Sendable {
        /// What is wrong, a sentence each; empty when all is well.
        package var problems: [String] = []
        package var treeEntries = 0
        package var historyEntries = 0
        package var logFrames = 0
        package var logRecords = 0
        package var isClean: Bool { problems.isEmpty }
    }

    /// - Throws: `locked` or `inputOutput` when the directory cannot be looked at.
    package static func run(directory: String) throws(StorageError) -> Report { fatalError("not built yet") }
}
