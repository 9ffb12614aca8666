/// Finds the parts of a text that are within backquotes, as field paths have them: there a backslash escapes the next
/// character.
package struct BackquoteScanner {
    private var isQuoted = false
    private var isEscaped = false

    package init() {}

    /// Takes the next scalar: a character may be a backquote with a mark that belongs to the name in it.
    /// - Returns: whether it is a backquote or within backquotes.
    package mutating func covers(_ character: Unicode.Scalar) -> Bool {
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
