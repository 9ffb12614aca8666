// A copy of a directory that shares its files of runs.

internal import FileSystem
package import Storage

extension EmbeddedEngine {
    /// Makes a separate data directory, as of a version published during the call, in a directory that does not exist
    /// yet or is empty. Serving continues.
    ///
    /// The files of runs never change, so both directories have them by hard links: a file's space is freed when
    /// neither needs it. The time does not depend on the size, but on what a checkpoint has to write. Where links are
    /// impossible the files are copied.
    /// - Returns: the bytes that were copied for lack of links.
    /// - Throws: as ``backup(to:)``, and what was written is removed as there.
    package func fork(to directory: String) throws(StorageError) -> Int {
        var bytesCopied = 0
        try makeCopy(in: directory, "fork") { set, runs throws(StorageError) in
            for part in set.manifest.runs.flatMap(\.parts) {
                for name in RunFormat.fileNames(part.file, part.kind) {
                    bytesCopied += try Self.share("\(core.runs.directory)/\(name)", as: "\(runs)/\(name)")
                }
            }
            return set.manifest
        }
        return bytesCopied
    }

    /// Gives a file another name, or copies it.
    /// - Returns: the bytes that were copied.
    private static func share(_ file: String, as name: String) throws(StorageError) -> Int {
        if try Directory.link(file, to: name) { return 0 }
        var bytes = 0
        try DirectoryCopy.copyFile(file, to: name) { bytes += $0 }
        return bytes
    }
}
