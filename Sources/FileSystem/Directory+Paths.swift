// Which paths lead to the same place, whatever links and mounts are on the way.

internal import Glibc
package import Storage

extension Directory {
    /// What a path leads to.
    package struct Status {
        /// The device and the number on it; nil if there is nothing.
        package var identity: Identity?
        package var isDirectory = false
        package var isRegularFile = false
        /// Who may do what with it.
        package var mode: UInt32 = 0
        package var byteCount = 0
        /// The number of the user; nil if there is nothing.
        package var owner: UInt32?
        /// When its bytes were last changed, in microseconds since 1970.
        package var modified: Int64 = 0
    }

    /// A file or directory, by whatever name.
    package struct Identity: Equatable {
        var device: UInt64
        var number: UInt64
    }

    /// Whether two paths lead to one device, so that its loss takes what is at both. False if one leads nowhere.
    package static func areOnOneDevice(_ one: String, _ other: String) -> Bool {
        guard let first = status(of: one).identity, let second = status(of: other).identity else { return false }
        return first.device == second.device
    }

    /// Looks at what a path leads to (stat(2), or lstat(2) if `followsLink` is false).
    package static func status(of path: String, followsLink: Bool = true) -> Status {
        var found = stat()
        guard unsafe (followsLink ? stat(path, &found) : lstat(path, &found)) == 0 else { return Status() }
        return Status(
            identity: Identity(device: UInt64(found.st_dev), number: UInt64(found.st_ino)),
            isDirectory: found.st_mode & S_IFMT == S_IFDIR, isRegularFile: found.st_mode & S_IFMT == S_IFREG,
            mode: found.st_mode & 0o7777, byteCount: Int(found.st_size), owner: found.st_uid,
            modified: Int64(found.st_mtim.tv_sec) &* 1_000_000 &+ Int64(found.st_mtim.tv_nsec) / 1_000)
    }

    /// The name of a user, or the number if there is no name.
    package static func nameOfUser(_ number: UInt32) -> String {
        unsafe getpwuid(number).map { unsafe String(cString: $0.pointee.pw_name) } ?? "#\(number)"
    }

    /// The path from the root, without symbolic links. What does not exist yet is at the end, as it is given.
    package static func resolved(_ path: String) -> String {
        var existing = path.isEmpty ? "." : path
        var missing: [Substring] = []
        while true {
            if let resolved = unsafe realpath(existing, nil) {
                defer { unsafe free(resolved) }
                let start = unsafe String(cString: resolved)
                return missing.reversed().reduce(start) { $0 == "/" ? "/\($1)" : "\($0)/\($1)" }
            }
            let above = parent(of: existing)
            if above == existing { return path }
            if let name = existing.split(separator: "/").last { missing.append(name) }
            existing = above
        }
    }

    /// Refuses two directories of which one is the other or lies in it, by whatever names. Either may not exist yet.
    ///
    /// - Parameter what: what they would be used for, for example "a backup".
    /// - Throws: `inputOutput`.
    package static func checkApart(_ one: String, _ other: String, for what: String) throws(StorageError) {
        let (first, second) = (resolved(one), resolved(other))
        guard first == second || contains(first, second) || contains(second, first) else { return }
        let places = first == second ? "both are \(first)" : "one of \(first) and \(second) is in the other"
        throw StorageError(.inputOutput, "\(what) needs two separate directories, but \(places)")
    }

    /// Whether a directory that exists is the same as, or above, what is at a resolved path.
    private static func contains(_ directory: String, _ path: String) -> Bool {
        guard let identity = status(of: directory).identity else { return false }
        var place = path
        while status(of: place).identity != identity {
            let above = parent(of: place)
            if above == place { return false }
            place = above
        }
        return true
    }
}
