// How a state from elsewhere gets into a data directory that has none, whenever the process ends.
//
//     DIR/RESTORE.new    what has been made, or a part of it
//     DIR/...            its files are being moved there, FORMAT last
//
// Nothing is written beside DIR: it may be a mount point, and what is above it may belong to others. No store is opened
// in a DIR with RESTORE.new and without FORMAT; the next attempt begins again.

internal import EmbeddedEngine
internal import FileSystem
package import Storage

/// Makes the state of a data directory that has none. Files in it that are not of Hearth stay.
package enum RestorePlacing {
    private static let received = "RESTORE.new"
    private static let lock = DirectoryFormat.lockName
    /// What a directory may have that counts as empty: a file system has the other one.
    private static let harmless: Set<String> = [lock, "lost+found"]

    /// Where the state for a directory is made.
    package static func received(in directory: String) -> String { "\(directory)/\(received)" }

    /// Whether a directory is missing, is empty, or has what an attempt has left that did not come to its end.
    package static func isFree(_ directory: String) throws(StorageError) -> Bool {
        guard Directory.exists(directory) else { return true }
        let names = try Directory.names(in: directory)
        let isUnfinished = names.contains(received) && !names.contains(BaseDirectory.format)
        return names.allSatisfy { name in
            harmless.contains(name) || isUnfinished && CompanionFiles.isOfDirectory(name)
        }
    }

    /// Whether a directory has a state, or may have one: after a failure of ``run(_:making:)`` only its durability can
    /// be in question.
    package static func isPlaced(in directory: String) -> Bool {
        (try? Directory.isThere("\(directory)/\(BaseDirectory.format)")) ?? true
    }

    /// Makes a state, and puts it into a directory durably. No process can use the directory meanwhile.
    ///
    /// - Parameters:
    ///   - directory: one that ``isFree(_:)``.
    ///   - make: gets the path of a directory that does not exist, and makes a whole data directory there, durably. No
    ///     process may have it open afterwards.
    /// - Throws: `locked` if a process uses the directory, `refused` if it is not free; what `make` throws. Unless the
    ///   state is in its place already, nothing of it is left.
    package static func run(_ directory: String, making make: (String) throws -> Void) throws {
        let (isNew, wasLocked) = (!Directory.exists(directory), Directory.exists("\(directory)/\(lock)"))
        try EmbeddedEngine.checkOwner(ofNew: directory)
        try EmbeddedEngine.whileUnused(directory) { _ in
            guard try isFree(directory) else {
                throw StorageError(.refused, "the directory is not empty", file: directory)
            }
            do {
                try clear(directory)
                try make(received(in: directory))
                try place(in: directory)
            } catch {
                if isPlaced(in: directory) { throw error }
                try? clear(directory)
                if !wasLocked { try? Directory.removeFile("\(directory)/\(lock)") }
                if isNew { try? Directory.remove(directory) }
                throw error
            }
        }
    }

    private static func clear(_ directory: String) throws(StorageError) {
        try BasePlacing.removeState(of: directory, except: [lock, CompanionFiles.serversOwn])
    }

    private static func place(in directory: String) throws(StorageError) {
        try BasePlacing.moveFiles(from: received(in: directory), to: directory)
        try Directory.syncName(of: directory)
    }
}
