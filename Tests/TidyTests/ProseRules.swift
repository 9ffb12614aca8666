// Words and phrases that this project does not use (docs/glossary.md, "Language").

extension TidyRule {
    private static let plainRemedy =
        "Write subject, verb, object, one claim a sentence; docs/glossary.md has the words to use."

    static let plainPages = TidyRule(
        name: "Pages are in plain English", folders: ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs"],
        fileExtension: "md", remedy: plainRemedy
    ) { file in
        // The glossary names the words.
        if file.path == "docs/glossary.md" { return [] }
        return file.lines.indices.filter { Phrases.occur(in: file.lines[$0]) }
    }

    static let plainComments = TidyRule(
        name: "Comments, texts and names of tests are in plain English", folders: swiftSources,
        remedy: plainRemedy
    ) { file in
        // These files have the words.
        if file.path.hasPrefix("Tests/TidyTests/") { return [] }
        var isInText = false
        return file.lines.indices.filter { index in
            Phrases.prose(of: file.lines[index], isInText: &isInText).contains(where: Phrases.occur)
        }
    }
}

extension TidyRule {
    static let plainNames = TidyRule(
        name: "Names are in plain English", folders: swiftSources,
        remedy: "Use the field's term (docs/glossary.md). An upper bound ends in Max, a lower one in Min."
    ) { file in
        // These files have the words.
        if file.path.hasPrefix("Tests/TidyTests/") { return [] }
        var isInText = false
        return file.lines.indices.filter { index in
            Names.words(of: file.lines[index], isInText: &isInText).contains(where: Names.isOdd)
        }
    }
}

/// Finds words that no name of this project has.
enum Names {
    private static let words: Set<String> = [
        "anew", "told", "tells", "heed", "heeds", "wish", "wishes", "newcomer", "newcomers", "impatient", "vain",
        "trouble", "nudge", "nudged", "circle", "circles", "obstacle",
    ]

    /// Functions that the SDK calls so.
    private static let ofTheSDK: Set<Substring> = ["arrayMaximum", "arrayMinimum", "logicalMaximum", "logicalMinimum"]

    /// Whether a name has one of the words, or another ending than `Max` for an upper bound.
    static func isOdd(_ name: Substring) -> Bool {
        if ofTheSDK.contains(name) { return false }
        let parts = parts(of: name)
        return parts.contains(where: words.contains) || parts.count > 1 && ["maximum", "minimum"].contains(parts.last)
    }

    /// The words of a name, in lower case: `isOpen2` has `is` and `open2`.
    static func parts(of name: Substring) -> [String] {
        var parts: [String] = []
        for character in name {
            if character.isUppercase || character == "_" || parts.isEmpty { parts.append("") }
            if character != "_" { parts[parts.count - 1] += character.lowercased() }
        }
        return parts
    }

    /// The names in the code of a line: what is outside of comments and string literals.
    ///
    /// - Parameter isInText: whether the line is within a literal of several lines; changed for the next line.
    static func words(of line: Substring, isInText: inout Bool) -> [Substring] {
        if line.contains("\"\"\"") {
            isInText.toggle()
            return []
        }
        if isInText { return [] }
        let pieces = line.split(separator: "\"", omittingEmptySubsequences: false)
        let code = pieces.indices.filter { $0 % 2 == 0 }.map { pieces[$0] }
        return code.joined(separator: " ").split(separator: "//", maxSplits: 1, omittingEmptySubsequences: false)
            .prefix(1).flatMap { $0.split { !$0.isLetter && !$0.isNumber && $0 != "_" } }
    }
}

/// Finds the phrases in lines.
enum Phrases {
    /// By their first word; each with its further words.
    private static let all: [String: [[String]]] = {
        let phrases = [
            "whoever", "but for", "for ever", "of its own", "of their own", "of our own", "time has come",
            "time had come", "is told", "are told", "was told", "were told", "be told", "told of", "behind", "goes on",
            "go on", "going on", "went on", "for want of", "anew", "in the making", "stands at", "stands in",
            "stands beside", "is no", "are no", "by halves", "courtesy", "hangs on", "hang on", "somebody", "lest",
            "thereof", "is answered", "are answered", "was answered", "were answered", "be answered", "says so",
            "said so", "comes to be", "come to be", "for the asking", "tells", "told", "coming in", "going out",
            "of use",
            "of no use", "none of ours", "time brings", "of their coming",
        ]
        let words = phrases.map { $0.split(separator: " ").map(String.init) }
        return Dictionary(grouping: words) { $0[0] }.mapValues { $0.map { Array($0.dropFirst()) } }
    }()

    /// Whether a text has one of the phrases.
    static func occur(in text: some StringProtocol) -> Bool {
        let words = text.split { !$0.isLetter }.map { $0.lowercased() }
        return words.indices.contains { index in
            (all[words[index]] ?? []).contains { rest in
                guard words[(index + 1)...].starts(with: rest) else { return false }
                return rest != ["no"] || isNegation(words, at: index)
            }
        }
    }

    /// Whether "is no" and "are no" mean "is not": "there is no" and "is no longer" do not.
    private static func isNegation(_ words: [String], at index: Int) -> Bool {
        if index > 0, words[index - 1] == "there" { return false }
        return !words[(index + 2)...].starts(with: ["longer"])
    }

    /// The comment, the string literals and the name between backquotes of a line of Swift.
    ///
    /// - Parameter isInText: whether the line is within a literal of several lines; changed for the next line.
    static func prose(of line: Substring, isInText: inout Bool) -> [Substring] {
        if line.contains("\"\"\"") {
            isInText.toggle()
            return []
        }
        if isInText { return [line] }
        if line.drop(while: { $0 == " " }).hasPrefix("//") { return [line] }
        let names = line.split(separator: "func `", omittingEmptySubsequences: false).dropFirst()
            .flatMap { $0.split(separator: "`").prefix(1) }
        var parts = line.split(separator: "\"", omittingEmptySubsequences: false)
        // Every second part lies between quotes; the last may end with a comment.
        let last = parts.removeLast()
        let literals = parts.indices.filter { $0 % 2 == 1 }.map { parts[$0] }
        return names + literals + last.split(separator: "// ").dropFirst()
    }
}
