// How a base takes the place of what a data directory has, whenever the process ends.
//
//     DIR/BASE.new       what has been received
//     DIR/BASE           all of it, durable; what DIR had before is being removed, FORMAT first
//     DIR/BASE.moving    the rest of it; its files are being moved to DIR, FORMAT last
//
// Nothing is written beside DIR: it may be a mount point, and what is above it may belong to others.

internal import EmbeddedEngine
internal import FileSystem
package import Storage

/// Puts a base in the place of what a data directory has that nobody has open. Files in it that are not of Hearth stay,
/// and so does what belongs to the server: it may change at any moment.
package enum BasePlacing {
    private static let complete = "BASE"
    private static let moving = "BASE.moving"
    private static let lock = DirectoryFormat.lockName

    /// Where a base for a directory is received.
    static func received(in directory: String) -> String { "\(directory)/BASE.new" }

    /// Puts the base that was received in the place of what the directory has. The caller has the directory's lock.
    ///
    /// - Parameter kept: names of what stays, which the base does not have.
    static func place(in directory: String, keeping kept: Set<String> = []) throws(StorageError) {
        try Directory.rename(received(in: directory), to: "\(directory)/\(complete)")
        try Directory.sync(directory)
        try settleLocked(directory, keeping: kept)
    }

    /// Ends what a process that has ended left: a base that is complete takes its place, and one that is not goes. A
    /// directory without anything of the kind, or that does not exist, is left as it is.
    /// - Throws: `locked` if a process uses the directory.
    package static func settle(_ directory: String) throws {
        let places = [received(in: directory), "\(directory)/\(complete)", "\(directory)/\(moving)"]
        guard places.contains(where: Directory.exists) else { return }
        try EmbeddedEngine.whileUnused(directory) { _ in try settleLocked(directory) }
    }

    /// The same for a directory whose lock the caller has. The process may be a server that closed the store.
    static func settleLocked(_ directory: String, keeping kept: Set<String> = []) throws(StorageError) {
        try Directory.removeAll(received(in: directory))
        if Directory.exists("\(directory)/\(complete)") {
            let kept = kept.union([
                complete, lock, CompanionFiles.archived, CompanionFiles.serversOwn, CompanionFiles.socket,
            ])
            try removeState(of: directory, except: kept)
            try Directory.rename("\(directory)/\(complete)", to: "\(directory)/\(moving)")
            try Directory.sync(directory)
        }
        if Directory.exists("\(directory)/\(moving)") {
            try moveFiles(from: "\(directory)/\(moving)", to: directory)
        }
    }

    /// Whether a directory has something of a data directory. A missing one has nothing, and one with a lock alone was
    /// only looked at.
    package static func hasState(_ directory: String) throws(StorageError) -> Bool {
        guard Directory.exists(directory) else { return false }
        return try Directory.names(in: directory).contains { $0 != lock && CompanionFiles.isOfDirectory($0) }
    }

    /// Removes what a data directory has: the mark of a whole store first.
    ///
    /// - Parameter kept: names of what stays.
    package static func removeState(of directory: String, except kept: Set<String>) throws(StorageError) {
        try Directory.removeFile("\(directory)/\(BaseDirectory.format)")
        try Directory.sync(directory)
        for name in try Directory.names(in: directory) where CompanionFiles.isOfDirectory(name) {
            if kept.contains(name) { continue }
            let path = "\(directory)/\(name)"
            if Directory.status(of: path, followsLink: false).isDirectory {
                try Directory.removeAll(path)
            } else {
                try Directory.removeFile(path)
            }
        }
        try Directory.sync(directory)
    }

    /// Moves the files of a folder of a directory to the directory, FORMAT last, and removes the folder. Durable. What
    /// belongs to the server stays as the directory has it; what the folder has of it comes beside it (`PlacedFile`).
    static func moveFiles(from place: String, to directory: String) throws(StorageError) {
        try Directory.removeFile("\(place)/\(lock)")
        let names = try Directory.names(in: place)
        for name in names where name != BaseDirectory.format {
            let (source, target) = ("\(place)/\(name)", "\(directory)/\(name)")
            if name == CompanionFiles.serversOwn {
                try placeFiles(of: source, in: target)
            } else {
                try Directory.rename(source, to: target)
            }
        }
        try Directory.sync(directory)
        if names.contains(BaseDirectory.format) {
            try Directory.rename("\(place)/\(BaseDirectory.format)", to: "\(directory)/\(BaseDirectory.format)")
        }
        try Directory.remove(place)
        try Directory.sync(directory)
    }

    private static func placeFiles(of source: String, in target: String) throws(StorageError) {
        try Directory.create(target)
        for name in try Directory.names(in: source) {
            try Directory.rename("\(source)/\(name)", to: PlacedFile.path(besides: "\(target)/\(name)"))
        }
        try Directory.sync(target)
        try Directory.removeAll(source)
    }
}
