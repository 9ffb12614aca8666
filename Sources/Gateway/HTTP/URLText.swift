// The text of a URL: percent-encoding and query parameters (RFC 3986; the query as HTML forms write it).

internal import DocumentModel
internal import FirestoreSchema

enum URLText {
    /// The path's segments as they stand, still encoded, those between its slashes; the one before the first is left out.
    static func segments(_ path: RawSpan) -> [String] {
        String(repairingUTF8: path).split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    }

    /// The text without percent-encoding; nil if a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
    static func decoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(hexDigit), let low = rest.next().flatMap(hexDigit) else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return String(validatingUTF8: bytes.byteSpan)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }

    /// The parameters of a query, in order; nil if one is not percent-encoded text.
    static func parameters(_ query: RawSpan) -> [Parameter]? {
        var parameters: [Parameter] = []
        for part in String(repairingUTF8: query).split(separator: "&") {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decoded(halves[0], plusIsSpace: true),
                let value = decoded(halves.count > 1 ? halves[1] : "", plusIsSpace: true)
            else { return nil }
            parameters.append(Parameter(name, value))
        }
        return parameters
    }
}
