// Hexadecimal digits, percent-encoding, JSON strings and calendar dates, by vectors and by comparison with glibc.

import Basics
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TextTests {
    @Test
    func `Hexadecimal digits, both ways`() {
        let all = (0...255).map { UInt8($0) }
        let text = Hexadecimal.text(all.byteSpan)
        expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff") && text.utf8.count == 512)
        expectEqual(Hexadecimal.bytes(text), all)
        expectEqual(Hexadecimal.bytes(text.uppercased()), all)
        expectEqual(Hexadecimal.bytes(""), [])
        for wrong in ["0", "0g", "+1", "-1", " 1", "é", "00 "] { expectNil(Hexadecimal.bytes(wrong), "\(wrong)") }
    }

    @Test(
        arguments: [("0", 0), ("ff", 255), ("FFFFFFFFFFFFFFFF", UInt64.max), ("0000000000000010", 16)]
            as [(String, UInt64)])
    func `Numbers of up to sixteen digits`(_ text: String, _ number: UInt64) {
        expect(text.withUTF8Span { Hexadecimal.number($0) } == number)
    }

    @Test(arguments: ["", "+1", "-1", "0x1", "00000000000000000", "g"])
    func `What is not a hexadecimal number`(_ text: String) {
        expect(text.withUTF8Span { Hexadecimal.number($0) } == nil)
    }

    @Test
    func `Texts as keys are equal and ordered by their bytes`() {
        let (composed, decomposed) = (UTF8Text("\u{e9}"), UTF8Text("e\u{301}"))
        expect(composed.string == decomposed.string && composed != decomposed)
        expect(composed == "\u{e9}" && Set([composed, decomposed, "\u{e9}"]).count == 2)
        // "e" is 65, "f" is 66, U+00E9 begins with c3.
        expectEqual(["\u{e9}", "f", "e\u{301}"].map { UTF8Text($0) }.sorted(), [decomposed, "f", composed])
        let lists: [[UTF8Text]] = [["ab", "c"], ["a", "bc"]]
        expect(lists[0].hashValue != lists[1].hashValue)
    }

    @Test
    func `Names are taken apart by bytes, whatever characters their bytes make up`() {
        // A combining mark after the slash, and a mark that joins what follows it.
        let name = "a\u{600}/\u{301}b/c"
        expectEqual(name.slashSeparated, ["a\u{600}", "\u{301}b", "c"])
        expect(name.hasUTF8Prefix("a\u{600}/") && !name.hasPrefix("a\u{600}/"))
        expect(name.dropping(prefix: "a\u{600}/").hasSameUTF8(as: "\u{301}b/c"))
        expect(!"\u{e9}/".hasUTF8Prefix("e\u{301}") && "".slashSeparated == [""] && "/a".slashSeparated == ["", "a"])
    }

    @Test
    func `A number is written with sixteen digits`() {
        expectEqual(Hexadecimal.text(0), "0000000000000000")
        expectEqual(Hexadecimal.text(0xDEAD_BEEF), "00000000deadbeef")
    }

    @Test(arguments: [("a%20b", "a b"), ("%C3%a9", "é"), ("a+b", "a+b"), ("", ""), ("100%25", "100%")])
    func `Percent-encoding is decoded`(_ text: String, _ decoded: String) {
        expectEqual(PercentEncoding.decoded(text), decoded)
    }

    @Test
    func `In a query + is a space; malformed escapes and text that is not UTF-8 are refused`() {
        expectEqual(PercentEncoding.decoded("a+b%2B", plusIsSpace: true), "a b+")
        for wrong in ["%", "%2", "%2g", "a%", "a%4", "%+1", "%C3", "%FF"] {
            expectNil(PercentEncoding.decoded(wrong), "\(wrong)")
        }
        expectEqual(PercentEncoding.decoded("xx%41%42yé+".dropFirst(2), plusIsSpace: true), "AByé ")
    }

    @Test
    func `A form has its pairs in order, without the empty ones`() {
        func pairs(_ text: String, max: Int = .max) -> [String]? {
            text.withUTF8Span { FormEncoding.pairs($0, max: max)?.map { "\($0.name):\($0.value)" } }
        }
        expectEqual(pairs("&&a=b&&&c&=d&e=f=g&"), ["a:b", "c:", ":d", "e:f=g"])
        expect(pairs("") == [] && pairs("&&&") == [] && pairs("&&&", max: 0) == [])
        expect(pairs("a&&b", max: 2) == ["a:", "b:"] && pairs("a&&b", max: 1) == nil)
        expect(pairs("a=1+%2B&%C3%A9=x") == ["a:1 +", "é:x"] && pairs("a=%C3") == nil)
    }

    @Test
    func `JSON strings escape what RFC 8259 asks for`() {
        expectEqual(JSONText.quoted(""), "\"\"")
        expectEqual(JSONText.quoted("plain é 😀"), "\"plain é 😀\"")
        expectEqual(JSONText.quoted("\"\\/"), #""\"\\/""#)
        expectEqual(JSONText.quoted("\u{8}\t\n\u{C}\r"), #""\b\t\n\f\r""#)
        expectEqual(JSONText.quoted("\u{0}\u{1F}\u{7F}"), "\"\\u0000\\u001f\u{7F}\"")
        expectEqual(JSONText.quoted("a\nb"), #""a\nb""#)
    }

    @Test
    func `Dates agree with gmtime_r from year 1 to 9999`() {
        var generator = SeededGenerator(seed: 20_261_122)
        let edges: [Int64] = [-62_135_596_800, -1, 0, 1, 951_782_399, 951_782_400, 253_402_300_799]
        let random = (0..<20_000).map { _ in Int64.random(in: -62_135_596_800...253_402_300_799, using: &generator) }
        for seconds in edges + random {
            var time = time_t(seconds)
            var parts = tm()
            gmtime_r(&time, &parts)
            let date = CalendarDate(secondsSinceEpoch: seconds)
            let expected = [
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
            ].map(Int.init)
            expectEqual([date.year, date.month, date.day, date.hour, date.minute, date.second], expected, "\(seconds)")
            let days = CalendarDate.daysSinceEpoch(year: date.year, month: date.month, day: date.day)
            expectEqual(Int64(days) * 86_400 + Int64(date.secondOfDay), seconds)
            expectEqual(CalendarDate.weekday(daysSinceEpoch: days), Int(parts.tm_wday))
            expect(date.day <= CalendarDate.daysIn(month: date.month, year: date.year))
        }
    }

    @Test
    func `A date as RFC 3339 text`() {
        var text: [UInt8] = []
        CalendarDate(secondsSinceEpoch: 1_000_000_000).appendRFC3339(to: &text)
        expectEqual(String(decoding: text, as: UTF8.self), "2001-09-09T01:46:40")
    }
}
