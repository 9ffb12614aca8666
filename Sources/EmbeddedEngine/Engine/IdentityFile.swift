internal import Basics
internal import Storage

/// The file IDENTITY of a data directory: 32 random hexadecimal digits that no other directory has.
///
/// The first opening of a directory creates the file, as it does TIMELINE. Backups, forks and restored directories have
/// none, so each gets a new identity when it is first opened. A directory that was copied in another way has
/// that of the original.
enum IdentityFile {
    static let name = "IDENTITY"

    /// The identity in the directory's file, which is created if there is none.
    ///
    /// - Parameter creates: false leaves a directory without the file as it is.
    /// - Returns: nil if there is no file, which may be so on a full disk.
    /// - Throws: `corrupt` if the file is damaged; `inputOutput`.
    static func identity(in directory: String, creates: Bool) throws(StorageError) -> StoreIdentity? {
        if let identity = try read(in: directory) { return identity }
        guard creates else { return nil }
        let identity = StoreIdentity.random()
        do throws(StorageError) {
            try SummedLine.create("\(directory)/\(name)", identity.description)
            return identity
        } catch {
            if error.code != .full { throw error }
            return nil
        }
    }

    /// The identity in the directory's file; nil if there is none.
    static func read(in directory: String) throws(StorageError) -> StoreIdentity? {
        let (path, contents) = ("\(directory)/\(name)", "an identity")
        let remedy = "delete this file; no data are in it, and the directory needs a new archive then"
        guard let word = try SummedLine.read(path, contents: contents, remedy: remedy) else { return nil }
        if let identity = StoreIdentity(word) { return identity }
        throw StorageError(.corrupt, "the file does not contain \(contents)", file: path, remedy: remedy)
    }
}
