import CBuild

/// The version of a build, as `hearth --version` prints it.
struct BuildVersion: CustomStringConvertible {
    /// The newest heading of CHANGELOG.md.
    static let number = "0.1.0"

    /// Whether the commit has the tag of the version.
    let isRelease: Bool
    /// In hexadecimal digits; empty if it is not known.
    let commit: String

    /// That of this program.
    static let current = BuildVersion(
        isRelease: hearth_build_is_release() != 0, commit: String(cString: hearth_build_commit()))

    /// `0.1.0`, and in parentheses whether it is unreleased, and the commit.
    var description: String {
        let notes = (isRelease ? [] : ["unreleased"]) + (commit.isEmpty ? [] : ["commit \(commit)"])
        return notes.isEmpty ? Self.number : "\(Self.number) (\(notes.joined(separator: ", ")))"
    }
}
