// The value classes of the public API.

@_spi(Testing) import DocumentCoding
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ValueClassesTests {
    @Test func `Equality and hash go by value`() {
        expectEqual(Timestamp(seconds: 1, nanoseconds: 2), Timestamp(seconds: 1, nanoseconds: 2))
        expectEqual(Timestamp(seconds: 1, nanoseconds: 2).hash, Timestamp(seconds: 1, nanoseconds: 2).hash)
        expect(Timestamp(seconds: 1, nanoseconds: 2) != Timestamp(seconds: 1, nanoseconds: 3))
        expectEqual(GeoPoint(latitude: 1, longitude: 2), GeoPoint(latitude: 1, longitude: 2))
        expectEqual(VectorValue([1, 2]), VectorValue([1, 2]))
        expectEqual(FieldPath(["a", "b.c"]), FieldPath(["a", "b.c"]))
        expect(FieldPath(["é"]) != FieldPath(["e\u{301}"]))
        expectEqual(Set([FieldPath(["a"]), FieldPath(["a"]), FieldPath(["b"])]).count, 2)
        expect(
            ["a": Timestamp(seconds: 1, nanoseconds: 2)] as NSDictionary == ["a": Timestamp(seconds: 1, nanoseconds: 2)]
                as NSDictionary)
        expectEqual(FieldValue.delete(), FieldValue.delete())
        expectEqual(FieldValue.serverTimestamp(), FieldValue.serverTimestamp())
        expect(FieldValue.increment(Int64(1)) != FieldValue.increment(Int64(1)))
    }

    @Test func `Timestamps know dates and their order`() {
        let time = Timestamp(date: Date(timeIntervalSince1970: -1.25))
        expect(time.seconds == -2 && time.nanoseconds == 750_000_000)
        expectEqual(time.dateValue(), Date(timeIntervalSince1970: -1.25))
        expect(time < Timestamp(seconds: -1, nanoseconds: 0))
        expectEqual(time.compare(Timestamp(seconds: -2, nanoseconds: 0)), .orderedDescending)
        expect(time.copy() as? Timestamp == time)
    }

    @Test func `Paths: dotted texts and literal names`() throws {
        try expectEqual(FieldPath(dotted: "a.b c.\\").segments, ["a", "b c", "\\"])
        expectEqual(
            FieldPath(["a", "b.c", "`", "é", "_x1", "1x", "\\"]).serverFormat, "a.`b.c`.`\\``.`é`._x1.`1x`.`\\\\`")
        // A combining mark after a backtick or backslash, and a character that Unicode takes for a backtick.
        let marked = FieldPath(["`\u{301}", "\\\u{301}", "\u{1fef}"]).serverFormat
        expectEqual(Array(marked.utf8), Array("`\\`\u{301}`.`\\\\\u{301}`.`\u{1fef}`".utf8))
        for bad in ["", ".a", "a.", "a..b", "a~", "a*b", "a/b", "[a]"] {
            #expect(throws: InvalidFieldPath.self) { try FieldPath(dotted: bad) }
        }
        #expect(throws: InvalidFieldPath.self) { try FieldPath.reading(5) }
        expect(FieldPath.documentID().isDocumentID)
    }

    @Test func `References know their names`() throws {
        let reference = try #require(
            DocumentReference(name: "projects/p/databases/(default)/documents/a/b/c/d", owner: nil))
        expect(reference.path == "a/b/c/d" && reference.documentID == "d")
        expectEqual(reference.databaseName, "projects/p/databases/(default)")
        for bad in [
            "", "a/b", "projects/p/databases/d/documents", "projects/p/databases/d/documents/",
            "projects/p/databases/d/documents/a",
            "projects/p/databases/d/documents/a//b", "projects/p/databases/d/documents/a/b/",
            "projects//databases/d/documents/a/b",
            "project/p/databases/d/documents/a/b",
        ] {
            expectNil(DocumentReference(name: bad, owner: nil), "\(bad)")
        }
        let owner = NSObject()
        expect(DocumentReference(name: reference.name, owner: owner) != reference)
    }

    @Test func `Broken rules stop the process with a message`() async {
        let latitude = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = GeoPoint(latitude: 91, longitude: 0)
        }
        let message = String(decoding: latitude?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("latitude"))
        await #expect(processExitsWith: .failure) { _ = GeoPoint(latitude: 0, longitude: .nan) }
        await #expect(processExitsWith: .failure) { _ = Timestamp(seconds: 0, nanoseconds: 1_000_000_000) }
        await #expect(processExitsWith: .failure) { _ = Timestamp(seconds: 253_402_300_800, nanoseconds: 0) }
        await #expect(processExitsWith: .failure) { _ = FieldPath([]) }
        await #expect(processExitsWith: .failure) { _ = FieldPath(["a", ""]) }
        await #expect(processExitsWith: .exitCode(7)) {
            ProgrammingError.setHandler { message in exit(message.contains("longitude") ? 7 : 8) }
            _ = GeoPoint(latitude: 0, longitude: 181)
        }
    }
}
