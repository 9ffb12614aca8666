/// What a state that takes its place in a data directory brings for a file that belongs to the server. A command may
/// change that file at any moment, so it is not replaced: its next reader takes over what is beside it.
package enum PlacedFile {
    private static let suffix = ".placed"

    /// The path of what was brought for a file.
    package static func path(besides file: String) -> String { file + suffix }
}
