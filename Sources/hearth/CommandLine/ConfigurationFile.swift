// The file of `--config`: flags with their values, one a line.

/// Settings of a file: one `name = value` a line, with the names of the flags.
///
/// Empty lines and those that begin with `#` are comments. White space around the name and the value is left out; the
/// rest of the value is taken as it is. A flag that may be given several times may have several lines. A file that
/// begins with a brace is a ``FirebaseJSON``.
struct ConfigurationFile {
    /// One line.
    struct Setting: Equatable {
        let name: String
        let value: String
        /// From 1; nil in a file that has no lines of settings.
        let line: Int?
    }

    static let flag = Flag<String>(
        "config", "FILE", required: false,
        help: """
            Settings: one name = value a line, named as these flags are; # begins a comment. Or the firebase.json of a \
            project: host, port, rules and indexes are taken from it. The command line and the environment take \
            precedence.
            """)

    let path: String
    let settings: [Setting]

    /// Reads a file.
    /// - Throws: `UsageError` with the file and the line.
    init(_ path: String) throws {
        let bytes = try InputFile.contents(of: path)
        guard let text = String(validating: InputKind.withoutMark(bytes), as: UTF8.self) else {
            throw UsageError(message: "\(path) is not UTF-8")
        }
        guard FirebaseJSON.isIt(bytes) else {
            try self.init(text, path: path)
            return
        }
        let projects = try? InputFile.contents(of: FirebaseJSON.projectsPath(beside: path))
        self.init(path, try FirebaseJSON.settings(bytes, path: path, projects: projects))
    }

    private init(_ path: String, _ settings: [Setting]) {
        self.path = path
        self.settings = settings
    }

    /// Reads the text of a file.
    /// - Throws: `UsageError` with the file and the line.
    init(_ text: String, path: String) throws(UsageError) {
        var settings: [Setting] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = Self.trimmed(line)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let equals = line.firstIndex(of: "=") else {
                throw UsageError(message: "\(path):\(index + 1): expected name = value, not \"\(line)\"")
            }
            let (name, value) = (line[..<equals], line[line.index(after: equals)...])
            settings.append(
                Setting(name: String(Self.trimmed(name)), value: String(Self.trimmed(value)), line: index + 1))
        }
        self.init(path, settings)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }

    /// The place of a setting, for messages.
    func place(_ setting: Setting) -> String { "\(path):\(setting.line.map { "\($0):" } ?? "") \(setting.name)" }
}
