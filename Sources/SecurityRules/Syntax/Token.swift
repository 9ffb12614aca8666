// The words of the rules language.

/// One token with its place.
struct Token: Sendable {
    enum Kind: Equatable, Sendable {
        case identifier
        /// A word that cannot name anything.
        case keyword
        /// An integer without its sign; nil is 2^63, which only a minus before it makes valid.
        case integer(Int64?)
        case float(Double)
        case string(String)
        case bytes([UInt8])
        /// `/` and the segment after it, decoded.
        case pathSegment(String)
        /// Operators and brackets; the text says which.
        case symbol
        /// `$` before `(`.
        case dollar
        case end
        /// Bytes that are not a token; the message says why.
        case invalid(String)
    }

    let kind: Kind
    /// As in the source; for identifiers, keywords and symbols.
    let text: String
    let range: SourceRange
}
