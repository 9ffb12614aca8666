// A rule about code that other modules inline.

extension TidyRule {
    // The compiler accepts such a member without a diagnostic, and other modules then call it.
    static let inlinableMembersAreUsable = TidyRule(
        name: "Types of the package with inlinable members are usable from inline", folders: ["Sources"],
        remedy:
            "Write @usableFromInline before `package struct`: without it `@inlinable` has no effect in other modules."
    ) { file in
        /// The declarations around a line: their columns, and whether they hide inlinable members.
        var around: [(column: Int, hides: Bool)] = []
        return file.lines.indices.filter { index in
            let line = file.lines[index]
            let code = line.drop { $0 == " " }
            if code.isEmpty || code.hasPrefix("//") { return false }
            let column = line.count - code.count
            while let last = around.last, last.column >= column { around.removeLast() }
            let words = code.prefix { $0 != "{" && $0 != ":" }.split { !$0.isLetter && $0 != "@" }
            if words.contains(where: { ["struct", "class", "enum", "actor", "extension"].contains($0) }) {
                let above = index > 0 ? file.lines[index - 1] : ""
                let isUsable = code.contains("@usableFromInline") || above.contains("@usableFromInline")
                around.append((column, words.contains("package") && !words.contains("extension") && !isUsable))
                return false
            }
            return code.hasPrefix("@inlinable") && around.contains(where: \.hides)
        }
    }
}
