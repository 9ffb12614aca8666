// The words of texts in several languages.

import Basics
import TestSupport
import Testing
import TextAnalysis

@Suite(.timeLimit(.minutes(20)))
struct TextAnalyzerTests {
    /// A text with its folded words and their stems.
    struct Example: Sendable, CustomTestStringConvertible {
        let code: String
        let text: String
        let words: [String]
        let stems: [String]

        init(_ code: String, _ text: String, _ words: [String], _ stems: [String]? = nil) {
            self.code = code
            self.text = text
            self.words = words
            self.stems = stems ?? words
        }

        var testDescription: String { "\(code): \(text)" }
    }

    static let examples = [
        Example(
            "en", "The Runner’s shoes, running & WAFFLES!", ["the", "runner's", "shoes", "running", "waffles"],
            ["the", "runner", "shoe", "run", "waffl"]),
        Example("en", "3.50 each, e-mail a_b", ["3.50", "each", "e", "mail", "a_b"]),
        Example("de", "Straßen und Häuser", ["strassen", "und", "häuser"], ["strass", "und", "haus"]),
        Example("fr", "L'été des chevaux", ["été", "des", "chevaux"], ["été", "de", "cheval"]),
        Example("ru", "Книги", ["книги"], ["книг"]),
        Example("tr", "IŞIK", ["ışık"]),
        Example("sv", "Flickorna", ["flickorna"], ["flick"]),
        Example("el", "ΒΙΒΛΊΑ", ["βιβλία"], ["βιβλ"]),
        Example("ja", "日本語の本", ["日本語", "の", "本"]),
        Example("th", "ภาษาไทย", ["ภาษา", "ไทย"]),
        Example("und", "ﬁne Ｗｉｄｅ Running", ["fine", "wide", "running"]),
        Example("en", "", []),
        Example("en", "\u{0}… — !?", []),
    ]

    @Test(arguments: examples)
    func `A text has these words and stems`(_ example: Example) throws {
        let words = try analyzed(example.text, example.code)
        expectEqual(words.map { String(decoding: $0.folded, as: UTF8.self) }, example.words)
        expectEqual(words.map { String(decoding: $0.stem, as: UTF8.self) }, example.stems)
    }

    private func analyzed(_ text: String, _ code: String) throws -> [AnalyzedText.Word] {
        try TextAnalyzer.with(try TextLanguage(tag: code)) { analyzer in
            let words = analyzer.words(of: Array(text.utf8).byteSpan)
            return (0..<words.count).map { words[$0] }
        }
    }

    @Test
    func `The first 80 bytes of a long word count, ended between characters`() throws {
        let word = try #require(try analyzed("x" + String(repeating: "é", count: 300_000), "en").first)
        expectEqual(String(decoding: word.folded, as: UTF8.self), "x" + String(repeating: "é", count: 39))
        expectEqual(word.stem, word.folded)
    }

    @Test
    func `Malformed UTF-8 is read with replacements`() throws {
        let words = try TextAnalyzer.with(.english) { analyzer in
            analyzer.words(of: [0x61, 0xFF, 0x20, 0x62, 0xC3].byteSpan)
        }
        expectEqual((0..<words.count).map { words[$0].folded }, [[0x61], [0x62]])
    }

    @Test
    func `Every language has an analyzer`() throws {
        for code in TextLanguage.codes {
            try expectEqual(analyzed("word", code).count, 1, "\(code)")
        }
    }

    @Test
    func `Tags are read by their language, and unknown ones are refused with the known ones`() throws {
        try expectEqual(TextLanguage(tag: "en-US"), .english)
        try expectEqual(TextLanguage(tag: "PT-br").code, "pt")
        try expectEqual(TextLanguage(tag: "nb").code, "no")
        for tag in ["", "xx", "english", "-en"] {
            #expect {
                _ = try TextLanguage(tag: tag)
            } throws: { error in
                guard let error = error as? RequestError else { return false }
                return error.code == .invalidArgument && error.message.contains("ar, ca, da, de")
            }
        }
    }
}
