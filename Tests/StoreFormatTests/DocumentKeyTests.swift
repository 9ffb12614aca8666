// Keys: byte order is name order, every key is short enough and leads back to its name.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct DocumentKeyTests {
    private func key(_ path: String, database: UInt32 = 7) -> [UInt8] {
        var writer = ByteBuffer()
        DocumentKey.write(Array(path.utf8).byteSpan, database: database, into: &writer)
        return writer.copyBytes()
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    @Test(arguments: [
        ("c/d", "10000000070363000103" + "6400"),
        ("c/__id1__", "100000000703630001" + "02" + "8000000000000001"),
        ("c/__id-1__", "100000000703630001" + "02" + "7fffffffffffffff"),
        ("c/a\u{0}\u{1}\u{2}", "100000000703630001" + "03" + "61" + "0101" + "0102" + "02" + "00"),
        ("c/d/e/f", "1000000007" + "036300" + "036400" + "036500" + "01" + "036600"),
    ])
    func `The layout is that of docs/keys.md`(path: String, expected: String) {
        expectEqual(hex(key(path)), expected)
    }

    @Test
    func `Within a collection keys sort as ids do`() {
        let ids = [
            "__id-9223372036854775808__", "__id-1__", "__id0__", "__id2__", "__id10__", "__id9223372036854775807__",
            "\u{0}", "\u{0}\u{0}", "\u{1}", "\u{2}", "A", "__id01__", "__id__", "a", "a\u{0}", "a\u{0}b", "a\u{1}",
            "aa", "b",
            "é", "日", "\u{ffff}", "\u{10000}",
        ]
        let sorted = ids.map { key("c/\($0)") }
        for (left, right) in zip(sorted, sorted.dropFirst()) {
            expect(order(left, right) < 0)
        }
    }

    @Test
    func `A collection is one run of keys, followed by what lies deeper`() {
        let keys = ["c/a", "c/z", "c/a/s/x", "c/a/s/y", "c/a/s/x/t/u", "c/b/s/x", "ca/a"].map { key($0) }
        for (left, right) in zip(keys, keys.dropFirst()) {
            expect(order(left, right) < 0)
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func `Random names: key order is name order, and keys lead back to names`(seed: UInt64) throws {
        print("seed \(seed)")
        var random = RandomDocuments(seed: seed)
        var paths: [(collection: [UInt8], id: [UInt8])] = []
        for _ in 0..<400 {
            let path = try DocumentPath(random.documentName())
            paths.append((path.parent.utf8, Array(path.documentID.utf8)))
        }
        for (left, right) in zip(paths, paths.shuffled(using: &random.generator)) {
            let leftKey = key(String(decoding: ChildPath.join(left.collection, left.id), as: UTF8.self))
            let rightKey = key(String(decoding: ChildPath.join(right.collection, right.id), as: UTF8.self))
            // Collections as a whole in path order, ids within them.
            let collections = ResourcePath.compare(left.collection.byteSpan, right.collection.byteSpan)
            let expected = collections != 0 ? collections : ResourceID.compare(left.id.byteSpan, right.id.byteSpan)
            expectEqual(order(leftKey, rightKey), expected.signum())

            let parts = try #require(keyParts(leftKey))
            expect(!parts.isCut)
            var path = ByteBuffer()
            DocumentKey.appendCollectionPath(
                of: leftKey.byteSpan, collectionByteCount: parts.collectionByteCount, to: &path)
            path.append(byte: UInt8(ascii: "/"))
            DocumentKey.appendID(of: leftKey.byteSpan, collectionByteCount: parts.collectionByteCount, to: &path)
            expectEqual(path.copyBytes(), ChildPath.join(left.collection, left.id))
        }
    }

    @Test
    func `The longest names have keys, all different, within the engine's bound`() throws {
        let longID = String(repeating: "x", count: 1499)
        var seen: Set<[UInt8]> = []
        for last in ["a", "b"] {
            for path in [
                "c/\(longID)\(last)", "\(longID)\(last)/\(longID)a", "\(longID)a/\(longID)a/\(longID)\(last)/y",
            ] {
                let key = key(path)
                expect(key.count <= 503)
                seen.insert(key)
                let parts = try #require(keyParts(key))
                expect(parts.isCut)
            }
        }
        // One of the six is there twice.
        expect(seen.count == 6 || seen.count == 5)
        expect(seen.contains(key("c/\(longID)a")) && seen.contains(key("c/\(longID)b")))
        let deep = (0..<100).map { "c\($0)/__id\(Int64.min + Int64($0))__" }.joined(separator: "/")
        let deepKey = key(deep)
        expect(deepKey.count <= 503)
        expectEqual(keyParts(deepKey)?.isCut, true)
    }

    @Test(arguments: [212, 213, 214, 215, 216])
    func `Ids around the length where cutting begins`(length: Int) throws {
        let id = String(repeating: "k", count: length)
        let key = key("c/\(id)")
        let parts = try #require(keyParts(key))
        // Marker and terminator take two bytes beside the id.
        expectEqual(parts.isCut, length + 2 > KeyLayout.plainBytesMax)
        let isCutID = DocumentKey.isCutID(in: key.byteSpan, collectionByteCount: parts.collectionByteCount)
        expectEqual(isCutID, parts.isCut)
    }

    @Test
    func `Paths cut in the middle of a number, an escape or at a segment's end differ from whole ones`() throws {
        for fill in 180...230 {
            let first = String(repeating: "p", count: fill)
            for path in [
                "\(first)/__id-1__/s/__id-1__", "\(first)/\u{0}\u{0}\u{0}\u{0}\u{0}/s/\u{0}",
                "\(first)/d/s/__id9223372036854775807__",
            ] {
                let key = key(path)
                let parts = try #require(keyParts(key))
                var collection = ByteBuffer()
                let collectionPath = Array(path.utf8.prefix(upTo: path.utf8.lastIndex(of: UInt8(ascii: "/"))!))
                let isCut = DocumentKey.writeCollection(collectionPath.byteSpan, database: 7, into: &collection)
                expectEqual(parts.collectionByteCount, collection.count)
                expectEqual(DocumentKey.isCutCollection(byteCount: parts.collectionByteCount), isCut)
            }
        }
    }

    @Test
    func `Bytes that are not a key are refused`() {
        var generator = SeededGenerator(seed: 99)
        for _ in 0..<20_000 {
            let bytes =
                [UInt8(0x10), 0, 0, 0, 1]
                + (0..<generator.below(300)).map { _ in generator.pick([0, 1, 2, 3, 0x61, 0xff]) }
            // Must not trap; whether it is accepted depends on the bytes.
            _ = keyParts(bytes)
        }
        expectNil(keyParts([0x10, 0, 0, 0, 1]))
        expectNil(keyParts([0x02, 0, 0, 0, 1, 3, 0x61, 0, 1, 3, 0x61, 0]))
        expectNil(keyParts([0x10, 0, 0, 0, 1, 3, 0x61]))
    }
}
