// How many file descriptors the process may have, and how many of them connections may take.

import Glibc

/// The process's limit of file descriptors (RLIMIT_NOFILE).
package enum DescriptorLimit {
    /// Raises the soft limit to the hard one, which needs no privilege. Call it at the program's start.
    package static func raise() {
        var limit = read()
        guard limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        // When this fails the old limit holds, and the budget follows it.
        _ = unsafe setrlimit(resource, &limit)
    }

    /// The soft limit: one more than the highest descriptor that the system gives out.
    package static var current: Int { Int(clamping: read().rlim_cur) }

    private static let resource = Int32(RLIMIT_NOFILE.rawValue)

    private static func read() -> rlimit {
        var limit = rlimit()
        _ = unsafe getrlimit(resource, &limit)
        return limit
    }
}

/// What the limit of file descriptors leaves for connections.
package struct DescriptorBudget: Equatable, Sendable {
    /// Descriptors that are kept back for the store (log segments, backups), the admin socket and the libraries.
    package static let reserve = 64

    /// Connections that may be open at once.
    package let connections: Int
    /// Connections beyond them that may be open for their refusal.
    package let refusals: Int

    /// The part of what is asked for that fits; nil when not one connection does.
    ///
    /// - Parameters:
    ///   - limit: descriptors that the process may have.
    ///   - inUse: those that it has now.
    package init?(connections: Int, refusals: Int, limit: Int, inUse: Int) {
        let free = limit - inUse - Self.reserve
        guard free > 0 else { return nil }
        self.refusals = min(refusals, free / 8)
        self.connections = min(connections, free - self.refusals)
    }

    /// Descriptors that the process has now.
    package static func descriptorsInUse() -> Int {
        guard let directory = unsafe opendir("/proc/self/fd") else { return reserve }
        defer { unsafe closedir(directory) }
        var count = 0
        while let entry = unsafe readdir(directory) { count += unsafe entry.pointee.d_name.0 == 0x2E ? 0 : 1 }
        // One of them is the directory's.
        return count - 1
    }
}
