// What a search asks of texts, as it is written.
//
//     query    part part ...                 all of them
//     part     choice | -choice              one that matches | one that does not
//     choice   item OR item OR ...           one of them
//     item     word | word* | "some words" | (query)
//
// `word*` matches words that begin so. Words in quotes stand next to each other, in their order. OR is written in
// capitals. A minus excludes if it stands before an item and after a space.

package import Basics

/// A text query, parsed. The words are not analysed yet.
package indirect enum TextQuery: Sendable, Equatable {
    /// Words that stand next to each other; the last one may be the beginning of a word.
    case text(String, isPrefix: Bool)
    /// All of some queries, and none of others.
    case all([TextQuery], excluding: [TextQuery])
    case any([TextQuery])

    /// Bytes of a query.
    package static let bytesMax = 4_096
    /// Parentheses around each other.
    static let depthMax = 16
    /// Words of a query, equal ones counted once.
    static let wordsMax = 64

    /// Reads a query.
    ///
    /// - Throws: `INVALID_ARGUMENT` with what is wrong.
    package init(_ text: String) throws(RequestError) {
        if text.utf8.count > Self.bytesMax {
            throw .invalidArgument("A text query may have at most \(Self.bytesMax) bytes.")
        }
        var parser = try TextQueryParser(text)
        self = try parser.query(depth: 0)
        if parser.next != nil { throw .invalidArgument("The text query has a \")\" without \"(\".") }
    }
}

private struct TextQueryParser {
    enum Token: Equatable {
        case word(String)
        case phrase(String)
        case or, minus, open, close
    }

    private var tokens: ArraySlice<Token> = []

    var next: Token? { tokens.first }

    init(_ text: String) throws(RequestError) {
        var all: [Token] = []
        let scalars = Array(text.unicodeScalars)
        var place = 0
        func string(_ range: Range<Int>) -> String {
            var view = String.UnicodeScalarView()
            view.append(contentsOf: scalars[range])
            return String(view)
        }
        while place < scalars.count {
            let scalar = scalars[place]
            let isAfterSpace = place == 0 || scalars[place - 1].properties.isWhitespace || scalars[place - 1] == "("
            switch scalar {
            case _ where scalar.properties.isWhitespace: place += 1
            case "(", ")":
                all.append(scalar == "(" ? .open : .close)
                place += 1
            case "\"":
                guard let end = scalars[(place + 1)...].firstIndex(of: "\"") else {
                    throw .invalidArgument("The text query has an odd number of quotes.")
                }
                all.append(.phrase(string((place + 1)..<end)))
                place = end + 1
            case "-" where isAfterSpace && place + 1 < scalars.count && !scalars[place + 1].properties.isWhitespace:
                all.append(.minus)
                place += 1
            default:
                var end = place
                while end < scalars.count, !scalars[end].properties.isWhitespace, scalars[end] != "\"",
                    scalars[end] != "(", scalars[end] != ")"
                {
                    end += 1
                }
                let word = string(place..<end)
                all.append(word == "OR" ? .or : .word(word))
                place = end
            }
        }
        tokens = all[...]
    }

    mutating func query(depth: Int) throws(RequestError) -> TextQuery {
        if depth > TextQuery.depthMax {
            throw .invalidArgument(
                "The parentheses of a text query may be nested at most \(TextQuery.depthMax) deep.")
        }
        var wanted: [TextQuery] = []
        var excluded: [TextQuery] = []
        while let token = next, token != .close {
            if token == .minus {
                tokens.removeFirst()
                excluded.append(try choice(depth))
            } else {
                wanted.append(try choice(depth))
            }
        }
        if wanted.isEmpty {
            throw .invalidArgument("A text query needs a word that is not excluded.")
        }
        return wanted.count == 1 && excluded.isEmpty ? wanted[0] : .all(wanted, excluding: excluded)
    }

    private mutating func choice(_ depth: Int) throws(RequestError) -> TextQuery {
        var items = [try item(depth)]
        while next == .or {
            tokens.removeFirst()
            items.append(try item(depth))
        }
        return items.count == 1 ? items[0] : .any(items)
    }

    private mutating func item(_ depth: Int) throws(RequestError) -> TextQuery {
        switch tokens.popFirst() {
        case .word(let word):
            let isPrefix = word.count > 1 && word.hasSuffix("*")
            return .text(isPrefix ? String(word.dropLast()) : word, isPrefix: isPrefix)
        case .phrase(let words): return .text(words, isPrefix: false)
        case .open:
            let inner = try query(depth: depth + 1)
            guard tokens.popFirst() == .close else {
                throw .invalidArgument("The text query has a \"(\" without \")\".")
            }
            return inner
        case .or, .minus, .close, nil:
            throw .invalidArgument("The text query lacks a word before or after OR, or after a minus.")
        }
    }
}
