// From texts to words: ICU finds the words and folds them, Snowball gives their stems.
//
//     "The Runners’ shoes"   words the, runners', shoes    stems the, runner, shoe
//
// Words are those of Unicode's text segmentation (UAX 29), with ICU's dictionaries for Chinese, Japanese, Thai and
// other texts without spaces. Folding is NFKC_Casefold: case, width, ligatures. In Turkish case is that of the
// language.

package import Basics
internal import CText
internal import Synchronization

/// The words of a text in their order.
package struct AnalyzedText: Sendable {
    private let bytes: [UInt8]
    private let ends: [UInt32]

    /// A word as it is searched for.
    package struct Word: Sendable, Equatable {
        /// The word, folded.
        package let folded: [UInt8]
        /// Its stem; the word itself where the language has no stems.
        package let stem: [UInt8]
    }

    fileprivate init(bytes: [UInt8], ends: [UInt32]) {
        self.bytes = bytes
        self.ends = ends
    }

    package var count: Int { ends.count / 2 }

    package subscript(index: Int) -> Word {
        let start = index == 0 ? 0 : Int(ends[2 * index - 1])
        let (middle, end) = (Int(ends[2 * index]), Int(ends[2 * index + 1]))
        return Word(folded: Self.cut(bytes[start..<middle]), stem: Self.cut(bytes[middle..<end]))
    }

    /// The first bytes of a word that is longer than words may be, ended between two characters.
    private static func cut(_ word: ArraySlice<UInt8>) -> [UInt8] {
        if word.count <= TextAnalyzer.wordBytesMax { return Array(word) }
        var end = word.startIndex + TextAnalyzer.wordBytesMax
        while word[end] & 0xC0 == 0x80 { end -= 1 }
        return Array(word[word.startIndex..<end])
    }
}

/// Analyses texts of one language. For one thread at a time.
@safe package final class TextAnalyzer {
    /// Bytes of a word that count; what follows is not looked at.
    package static let wordBytesMax = 80

    // Owner: this object, from init to deinit.
    private let analyzer: OpaquePointer

    /// - Returns: nil if the libraries are missing or refuse the language.
    package init?(_ language: TextLanguage) {
        guard TextLibraries.system.version != nil else { return nil }
        let locale = language.code == "und" ? "en" : language.code
        guard let made = unsafe hearth_text_make(locale, language.stemmer) else { return nil }
        unsafe analyzer = made
    }

    deinit { unsafe hearth_text_free(analyzer) }

    /// The words of a text, UTF-8. A text that the libraries refuse, for lack of memory, has none.
    package func words(of text: RawSpan) -> AnalyzedText {
        var words = unsafe hearth_text_words()
        let failure = unsafe text.withUnsafeBytes { text in
            unsafe hearth_text_analyze(
                analyzer, text.baseAddress?.assumingMemoryBound(to: CChar.self), text.count, Self.wordBytesMax, &words)
        }
        let count = unsafe words.count
        guard failure == 0, count > 0 else { return AnalyzedText(bytes: [], ends: []) }
        // In bounds: the analyzer has two ends for each word, and the last one is that of the bytes.
        let ends = unsafe Array(UnsafeBufferPointer(start: words.ends, count: 2 * count))
        let bytes = unsafe UnsafeRawBufferPointer(start: words.bytes, count: Int(ends[2 * count - 1]))
        return unsafe AnalyzedText(bytes: Array(bytes), ends: ends)
    }

    // MARK: Shared analyzers

    private static let idle = Mutex<[TextLanguage: [Idle]]>([:])
    private static let idleMax = 16

    /// An analyzer that nobody uses.
    private struct Idle: @unchecked Sendable {
        // Used by one thread at a time: by the one that took it off the list.
        let analyzer: TextAnalyzer
    }

    /// Analyses texts with an analyzer that is kept for the next use.
    ///
    /// - Throws: `FAILED_PRECONDITION` if the libraries are missing.
    package static func with<Result>(
        _ language: TextLanguage, _ body: (TextAnalyzer) throws(RequestError) -> Result
    ) throws(RequestError) -> Result {
        try TextLibraries.system.require()
        let known = idle.withLock { $0[language]?.popLast() }
        guard let analyzer = known?.analyzer ?? TextAnalyzer(language) else {
            throw RequestError(.internal, "The analyzer of the language \"\(language.code)\" cannot be made.")
        }
        defer {
            let unused = Idle(analyzer: analyzer)
            idle.withLock { idle in
                if idle[language, default: []].count < idleMax { idle[language, default: []].append(unused) }
            }
        }
        return try body(analyzer)
    }
}
