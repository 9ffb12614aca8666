// The languages of texts.

package import Basics

/// A language whose words can be searched.
package struct TextLanguage: Sendable, Hashable {
    /// The subtag of BCP 47, in lower case: `en`; `und` for texts without one language.
    package let code: String
    /// The algorithm of Snowball that reduces its words to stems; nil leaves them as they are.
    package let stemmer: String?

    /// What an index has that names no language.
    package static let english = TextLanguage(code: "en", stemmer: "english")

    /// Codes with the algorithms of Snowball.
    private static let stemmers: [String: String] = [
        "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
        "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
        "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali",
        "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
        "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
    ]
    /// Codes of languages without an algorithm, and of no language.
    private static let unstemmed: Set<String> = ["ja", "ko", "th", "und", "zh"]
    /// Codes that stand for another one.
    private static let synonyms = ["nb": "no", "nn": "no"]

    /// The codes that are known, sorted.
    package static let codes = (Array(stemmers.keys) + unstemmed).sorted()

    private init(code: String, stemmer: String?) {
        self.code = code
        self.stemmer = stemmer
    }

    /// Reads a tag of BCP 47; only its language counts: `en-US` is English.
    ///
    /// - Throws: `INVALID_ARGUMENT` with the codes that are known.
    package init(tag: String) throws(RequestError) {
        let primary = tag.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)[0].lowercased()
        let code = Self.synonyms[primary] ?? primary
        let stemmer = Self.stemmers[code]
        guard stemmer != nil || Self.unstemmed.contains(code) else {
            throw .invalidArgument(
                "The language \"\(tag.prefix(40))\" is not known. Languages are: "
                    + Self.codes.joined(separator: ", ") + ".")
        }
        self.init(code: code, stemmer: stemmer)
    }
}
