import SecurityRules

/// A file of security rules.
enum RulesFile {
    /// The text of a file, without a byte order mark.
    static func text(of file: String) throws(CommandFailure) -> String {
        let bytes = InputKind.withoutMark(try InputFile.contents(of: file))
        guard let text = String(validating: bytes, as: UTF8.self) else { throw CommandFailure("\(file) is not UTF-8") }
        return text
    }

    /// The compiled rules of a file.
    ///
    /// - Throws: `CommandFailure` with each error, its line and its remedy.
    static func ruleset(_ file: String) throws(CommandFailure) -> Ruleset {
        try ruleset(try text(of: file), of: file)
    }

    /// The compiled rules of a text.
    ///
    /// - Parameter file: where the text comes from.
    /// - Throws: `CommandFailure` with each error, its line and its remedy.
    static func ruleset(_ text: String, of file: String) throws(CommandFailure) -> Ruleset {
        do throws(InvalidRules) {
            return try Ruleset(text)
        } catch {
            let source = SourceText(text)
            let errors = error.diagnostics.map { $0.rendered(in: source, file: file) }
            throw CommandFailure("\(file) has errors\n\(errors.joined(separator: "\n"))")
        }
    }
}
