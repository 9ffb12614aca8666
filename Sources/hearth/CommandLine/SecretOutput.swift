import FileSystem
import Glibc
import Storage

/// Where a secret goes: a new file for its owner alone, or standard output.
struct SecretOutput {
    private let file: File?

    /// - Parameter path: of a file that does not exist yet; nil for standard output.
    init(_ path: String?) throws(StorageError) {
        if let path { file = try File(path, flags: O_WRONLY | O_CREAT | O_EXCL) } else { file = nil }
    }

    /// Writes the secret: to a file durably, and to standard output without a buffer that could be lost.
    func write(_ secret: String) throws {
        guard let file else {
            try StandardOutput.write(Array(secret.utf8))
            return try StandardOutput.flush()
        }
        try file.write(string: secret)
        try file.sync()
    }

    /// Removes the file: there is no secret.
    func remove() {
        if let file { unlink(file.path) }
    }
}
