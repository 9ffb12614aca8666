// A data directory that is put together of files: what a restore from an archive makes.

internal import FileSystem
package import Storage

/// Makes a data directory around files that the caller writes to it.
///
/// The directory has neither TIMELINE nor IDENTITY: its history is its own from the first opening on.
package final class DirectoryAssembly {
    private let directory: String
    private let lock: File

    /// Begins a directory that does not exist. It is locked until this is gone.
    /// - Throws: `full`, `inputOutput`, `locked`.
    package init(_ directory: String) throws(StorageError) {
        self.directory = directory
        lock = try DirectoryFormat.lock(directory)
        try Directory.create("\(directory)/runs")
        try Directory.create("\(directory)/log")
    }

    /// Completes the directory, durably: from now on it is one. Without a manifest it has no runs.
    package func complete() throws(StorageError) {
        if !Directory.exists("\(directory)/runs/\(Manifest.name)") {
            try Manifest().write(in: "\(directory)/runs", space: nil)
        }
        for part in ["runs", "log"] { try Directory.sync("\(directory)/\(part)") }
        try DirectoryFormat.create(directory, format: DirectoryFormat.current)
        lock.unlock()
    }
}
