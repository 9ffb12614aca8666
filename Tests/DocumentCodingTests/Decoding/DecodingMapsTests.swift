// Maps whose entries come in any order, in any form that protobuf allows, and among others.

import DocumentCoding
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DecodingMapsTests {
    private enum Keys: String, CodingKey, CaseIterable {
        case one = "a"
        case two = "ab"
        case eight = "eightchr"
        case nine = "ninechars"
        case eleven = "elevenchars"
        case twelve = "twelve_chars"
        case sixteen = "sixteen_chars_ok"
        case many = "a_name_of_more_than_sixteen_bytes"
        case umlaut = "größe"
        // 120 and 180 bytes: the length of the second takes two.
        case long =
            """
            long_name_of_forty_bytes_012345678901234long_name_of_forty_bytes_012345678901234\
            long_name_of_forty_bytes_012345678901234
            """
        case longer =
            """
            a_longer_name_of_sixty_bytes_012345678901234567890123456789a\
            a_longer_name_of_sixty_bytes_012345678901234567890123456789a\
            a_longer_name_of_sixty_bytes_012345678901234567890123456789a
            """
    }

    /// Names that share their beginnings with those of keys.
    private static let strangers = [
        "", "b", "abc", "eightchX", "eightch", "ninecharX", "elevencharX", "twelve_charX", "sixteen_chars_oX",
        "a_name_of_more_than_sixteen_byteX", "a_name_of_more_than_siXteen_bytes", "grösse", "zz",
    ]

    /// Reads all fields in the order that the test gives it.
    private struct Everything: Decodable {
        var values: [String: String] = [:]
        var names: Set<String> = []
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            for key in decoder.userInfo[.order] as? [Int] ?? [] {
                let key = Keys.allCases[key]
                let value = try container.decodeIfPresent(String.self, forKey: key)
                expectEqual(container.contains(key), value != nil)
                values[key.rawValue] = value
            }
            names = Set(container.allKeys.map(\.rawValue))
        }
    }

    @Test(arguments: CaseShare.of(1...4, 1))
    func `Fields are found in every order, form and company`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let decoder = FirestoreDecoder()
        for round in 0..<2_000 {
            // Mostly like the document before, as documents are.
            let isUsual = !random.oneIn(4)
            var entries: [(name: String, value: String)] = []
            for key in Keys.allCases where isUsual || !random.oneIn(3) {
                entries.append((key.rawValue, text(&random)))
            }
            if !isUsual {
                for _ in 0..<random.below(4) { entries.append((random.pick(Self.strangers), text(&random))) }
                if !entries.isEmpty, random.oneIn(3) { entries.append((random.pick(entries).name, text(&random))) }
                entries.shuffle(using: &random)
            }
            let known = Set(Keys.allCases.map(\.rawValue))
            let expected = Dictionary(entries.filter { known.contains($0.name) }, uniquingKeysWith: { $1 })
            let isNested = round % 2 == 1
            let body = entries.flatMap {
                entry(tag: isNested ? 0x0a : 0x12, $0.name, string($0.value), isUsual ? 0 : random.below(8))
            }
            decoder.userInfo[.order] = Array(Keys.allCases.indices).shuffled(using: &random)
            let decoded =
                isNested
                ? try decode(
                    decoder, Field<Everything>.self, entry(tag: 0x12, "v", [0x32] + varint(body.count) + body, 0)
                ).v
                : try decode(decoder, Everything.self, body)
            expectEqual(decoded.values, expected)
            expectEqual(decoded.names, Set(expected.keys))
        }
    }

    @Test func `Strings of every length, at the end of the bytes and before others`() throws {
        // With another layout the coders are slower, and nothing else shows it.
        expect(SmallString.isKnown)
        struct Texts: Codable, Equatable { var a: String, b: String }
        let encoder = FirestoreEncoder()
        for alphabet in ["abcdefghijklmnopqrstuvwxyz0123456789", "aé", "日本", "😀x", "\u{0}\u{7f}"] {
            for count in 0..<36 {
                let text = String((0..<count).map { Array(alphabet)[$0 % alphabet.count] })
                let texts = Texts(a: text, b: text)
                let bytes = try encoder.documentBytes(texts)
                expectEqual(bytes, entry(tag: 0x12, "a", string(text), 0) + entry(tag: 0x12, "b", string(text), 0))
                let decoded = try decode(FirestoreDecoder(), Texts.self, bytes)
                expectEqual(decoded, texts)
                // Strings that are equal must also behave alike.
                expect(decoded.b.utf8.elementsEqual(text.utf8))
                expectEqual(decoded.b.hashValue, text.hashValue)
                expectEqual(decoded.b + "!", text + "!")
                expectEqual(decoded.b.uppercased(), text.uppercased())
                expectEqual(Array(decoded.b), Array(text))
                var changed = decoded.b
                changed.append("Z")
                expectEqual(changed.utf8.count, text.utf8.count + 1)
            }
        }
        // Bytes that are not UTF-8 are replaced, as the standard library does.
        for broken: [UInt8] in [[0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80], [UInt8](repeating: 0x80, count: 15)] {
            let bytes = entry(tag: 0x12, "v", [0x8a, 0x01, UInt8(broken.count)] + broken, 0)
            try expectEqual(
                decode(FirestoreDecoder(), Field<String>.self, bytes).v, String(decoding: broken, as: UTF8.self))
        }
    }

    @Test func `Keys that a recursive type meets inside itself are found outside, too`() throws {
        struct Node: Decodable {
            var child: [Node]
            var first: Int?
            var second: Int?
            enum Names: String, CodingKey { case child, first, second }
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Names.self)
                // The inner node is the first that asks for the other keys.
                child = try container.decodeIfPresent([Node].self, forKey: .child) ?? []
                second = try container.decodeIfPresent(Int.self, forKey: .second)
                first = try container.decodeIfPresent(Int.self, forKey: .first)
            }
        }
        let node = try FirestoreDecoder().decode(
            Node.self, ["child": [["first": 2, "second": 3], ["second": 4]], "first": 1, "second": 5])
        expect(node.first == 1 && node.second == 5)
        expect(node.child.map(\.first) == [2, nil] && node.child.map(\.second) == [3, 4])
    }

    // MARK: Bytes

    /// Decodes from memory that ends with the bytes.
    private func decode<T: Decodable>(_ decoder: FirestoreDecoder, _ type: T.Type, _ bytes: [UInt8]) throws -> T {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: bytes)
        return try decoder.decode(type, fromDocumentBytes: UnsafeRawBufferPointer(memory).bytes)
    }

    private func text(_ random: inout SeededGenerator) -> String {
        let count = random.pick([0, 3, 7, 8, 15, 16, 40, 130, 20_000])
        return String(repeating: Character(UnicodeScalar(UInt8(97 + random.below(26)))), count: count)
    }

    private func varint(_ value: Int, padding: Int = 0) -> [UInt8] {
        var (rest, bytes) = (value, [UInt8]())
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
        for _ in 0..<padding {
            bytes[bytes.count - 1] |= 0x80
            bytes.append(0)
        }
        return bytes
    }

    /// A Value message that is a string.
    private func string(_ text: String) -> [UInt8] { [0x8a, 0x01] + varint(text.utf8.count) + Array(text.utf8) }

    /// An entry of a map: as encoders write it, or in another of the forms that mean the same.
    private func entry(tag: UInt8, _ name: String, _ value: [UInt8], _ form: Int) -> [UInt8] {
        let padding = form == 1 ? 1 : 0
        let key = [0x0a] + varint(name.utf8.count, padding: form == 2 ? 1 : 0) + Array(name.utf8)
        let content = [0x12] + varint(value.count, padding: form == 3 ? 1 : 0) + value
        let unknown: [UInt8] = [0x1a, 2, 7, 7]
        let body: [UInt8] =
            switch form {
            case 4: content + key
            case 5: key + unknown + content
            case 6: key + content + unknown
            case 7: [0x0a, 1, 0x71] + key + content
            default: key + content
            }
        return [tag] + varint(body.count, padding: padding) + body
    }
}

extension CodingUserInfoKey {
    fileprivate static let order = CodingUserInfoKey(rawValue: "order")!
}
