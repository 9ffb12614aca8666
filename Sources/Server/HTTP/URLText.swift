// The text of a URL: percent-encoding and query parameters (RFC 3986; the query as HTML forms write it).

internal import Basics
internal import DocumentModel
internal import FirestoreJSON

enum URLText {
    /// The path's segments as they stand, still encoded, those between its slashes; the one before the first is left
    /// out.
    static func segments(_ path: RawSpan) -> [String] {
        Array(String(repairingUTF8: path).slashSeparated.dropFirst())
    }

    /// The parameters of a query, in order; nil if one is not percent-encoded text.
    static func parameters(_ query: RawSpan) -> [Parameter]? {
        FormEncoding.pairs(query).map { $0.map { Parameter($0.name, $0.value) } }
    }
}
