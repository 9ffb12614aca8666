/// Finds the parts of a text that are within backquotes, as field paths have them: there a backslash escapes the next
/// character.
package struct BackquoteScanner {
    private var isQuoted = false
    private var isEscaped = false

    package init() {}

    /// Takes the next character.
    /// - Returns: whether it is a backquote or within backquotes.
    package mutating func covers(_ character: Character) -> Bool {
        if isEscaped {
            isEscaped = false
        } else if character == "\\", isQuoted {
            isEscaped = true
        } else if character == "`" {
            isQuoted.toggle()
        } else {
            return isQuoted
        }
        return true
    }
}
