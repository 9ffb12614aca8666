// What is wrong with the text of a ruleset.

/// A message about a place in a ruleset.
package struct RulesDiagnostic: Hashable, Sendable {
    package enum Severity: String, Sendable {
        /// The ruleset cannot be used.
        case error = "ERROR"
        /// The ruleset can be used; an expression will fail or is not used.
        case warning = "WARNING"
    }

    package let severity: Severity
    package let range: SourceRange
    package let message: String
    /// What to do, if that is known.
    package let remedy: String?

    /// Of a line, in a message.
    private static let charactersShown = 400

    init(
        _ severity: Severity, _ range: SourceRange, _ message: String, remedy: String? = nil
    ) {
        self.severity = severity
        self.range = range
        self.message = message
        self.remedy = remedy
    }

    /// The message with line, column, the line's text, a caret and the remedy:
    ///
    ///     firestore.rules:4:37: error: Unexpected '/10'.
    ///         allow read: if resource.data.n/10 == 1;
    ///                                       ^~~
    ///         Write a space after '/' to divide.
    ///
    /// Of a long line the part around the place is shown.
    package func rendered(in source: SourceText, file: String) -> String {
        let position = source.position(of: range.start)
        let name = severity == .error ? "error" : "warning"
        var text = "\(file):\(position.line):\(position.column): \(name): \(message)\n"
        let line = source.line(position.line).unicodeScalars
        let isLong = line.count > Self.charactersShown
        let start = isLong ? max(0, position.column - 1 - Self.charactersShown / 2) : 0
        let shown = line.dropFirst(start).prefix(Self.charactersShown)
        let before = position.column - 1 - start
        text += "    \(String(String.UnicodeScalarView(shown)))\n    "
        // Tabs stay tabs, so that the caret stands under its column.
        text += String(shown.prefix(before).map { $0 == "\t" ? "\t" : " " })
        let end = source.position(of: max(range.end - 1, range.start))
        let width = end.line == position.line ? max(end.column - position.column, 0) : 0
        text += "^" + String(repeating: "~", count: min(width, max(0, shown.count - before - 1))) + "\n"
        if let remedy { text += "    \(remedy)\n" }
        return text
    }
}

/// Why a ruleset cannot be used: at least one diagnostic is an error.
package struct InvalidRules: Error, Sendable {
    package let diagnostics: [RulesDiagnostic]
}
