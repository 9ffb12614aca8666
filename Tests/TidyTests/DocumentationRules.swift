// What users import is documented.

extension TidyRule {
    static let publicIsDocumented = TidyRule(
        name: "Public declarations are documented", folders: ["Sources"],
        remedy: "Write a comment with /// above it: purpose, units, errors, thread-safety."
    ) { file in
        file.lines.indices.filter { index in
            isPublicDeclaration(file.lines[index]) && !isDocumented(index, in: file)
        }
    }

    /// Requirements of the standard library's and Foundation's protocols, which those document.
    private static let witnesses = [
        "func encode(to ", "func copy(with ", "func hash(into ", "static func < (", "static func == (",
    ]
    private static let keywords: Set<Substring> = [
        "func", "var", "let", "struct", "class", "enum", "init", "protocol", "typealias", "subscript", "actor",
    ]

    private static func isPublicDeclaration(_ line: Substring) -> Bool {
        let words = line.split(separator: " ")
        // Attributes may stand before the access level.
        guard let access = words.firstIndex(where: { $0 == "public" || $0 == "open" }),
            access == 0 || words[0].hasPrefix("@")
        else { return false }
        let names = words[access...].map { $0.prefix { $0.isLetter } }
        let modifiers = names.prefix { !keywords.contains($0) }
        let isOther = modifiers.contains { ["import", "override", "extension"].contains($0) }
        return modifiers.count < names.count && !isOther && !witnesses.contains { line.contains($0) }
    }

    /// Whether the line above a declaration and its attributes is a documentation comment.
    private static func isDocumented(_ index: Int, in file: SourceFile) -> Bool {
        let above = file.lines[..<index].last { line in
            let text = line.drop { $0 == " " }
            return !text.hasPrefix("@") && !text.hasPrefix("#if")
        }
        return above?.drop { $0 == " " }.hasPrefix("///") ?? false
    }
}
