/// Pairs of names and values as HTML forms and URL queries write them: `application/x-www-form-urlencoded` in the
/// WHATWG's URL standard.
package enum FormEncoding {
    /// One name with its value, both decoded.
    package struct Pair: Equatable, Sendable {
        package let name: String
        package let value: String
    }

    /// The pairs in order. Empty pairs are left out; a pair without `=` has an empty value.
    ///
    /// - Parameter max: the most pairs that the text may have.
    /// - Returns: nil if a name or value is not percent-encoded UTF-8, or if there are more pairs.
    package static func pairs(_ text: RawSpan, max: Int = .max) -> [Pair]? {
        var pairs: [Pair] = []
        var start = 0
        while start < text.byteCount {
            if text[byteAt: start] == UInt8(ascii: "&") {
                start += 1
                continue
            }
            let end = text.firstOffset(of: UInt8(ascii: "&"), from: start) ?? text.byteCount
            guard pairs.count < max, let pair = pair(text.extracting(start..<end)) else { return nil }
            pairs.append(pair)
            start = end + 1
        }
        return pairs
    }

    private static func pair(_ text: RawSpan) -> Pair? {
        let middle = text.firstOffset(of: UInt8(ascii: "=")) ?? text.byteCount
        guard let name = decoded(text.extracting(first: middle)),
            let value = decoded(text.extracting(min(middle + 1, text.byteCount)..<text.byteCount))
        else { return nil }
        return Pair(name: name, value: value)
    }

    private static func decoded(_ text: RawSpan) -> String? {
        PercentEncoding.decoded(String(repairingUTF8: text), plusIsSpace: true)
    }
}
