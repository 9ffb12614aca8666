// The number that orders all commits: a time in microseconds, strictly increasing for the life of a directory.

/// When a commit happened, in microseconds since 1970, and its place among all commits: no two commits share one.
///
/// The engine never makes versions up. Its caller chooses them, each above the one before; the engine checks it.
@usableFromInline package struct CommitVersion: Hashable, Sendable {
    /// Microseconds since 1970. Above the wall clock after that was set back, or if commits come faster than one in a
    /// microsecond.
    @usableFromInline package let microseconds: UInt64

    @inlinable
    package init(microseconds: UInt64) {
        self.microseconds = microseconds
    }

    /// Before every commit. Also the version of a value that is absent and whose deletion is no longer remembered.
    @inlinable
    package static var zero: CommitVersion { CommitVersion(microseconds: 0) }

    /// After every commit.
    @inlinable
    package static var maximum: CommitVersion { CommitVersion(microseconds: .max) }
}

extension CommitVersion: Comparable {
    @inlinable
    package static func < (left: CommitVersion, right: CommitVersion) -> Bool {
        left.microseconds < right.microseconds
    }
}

extension CommitVersion: CustomStringConvertible {
    @usableFromInline package var description: String { "\(microseconds)" }
}
