// The public JSON parsing vectors (JSONTestSuite/README.md), read as lines and as values within a line.

import Basics
import DocumentJSON
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct JSONTestSuiteTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "JSONTestSuite")

    private static func files(_ letter: Character) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "json" && $0.lastPathComponent.first == letter }
            .sorted { $0.path < $1.path }
    }

    /// The error of a line, nil when it is accepted.
    private static func error(of line: [UInt8]) -> JSONLineError? {
        var parser = JSONLineParser(database: "projects/p/databases/d")
        do throws(JSONLineError) {
            _ = try parser.parse(line.span)
            return nil
        } catch { return error }
    }

    /// The error of a line that has the file's text as the value of its one member.
    private static func errorAsMember(_ file: URL) throws -> JSONLineError? {
        error(of: Array("{\"v\":".utf8) + (try Data(contentsOf: file)) + Array("}".utf8))
    }

    /// Files that are JSON and no document; the reason is one of Firestore's rules or one of docs/json-lines.md.
    private static let refusedDocuments = [
        "y_array_arraysWithSpaces": "must not directly contain an array",
        "y_object_duplicated_key": "duplicate",
        "y_object_duplicated_key_and_value": "duplicate",
        "y_object_empty_key": "must not be empty",
    ]

    @Test func `Files that are JSON are accepted, except for documents that break a rule of Firestore`() throws {
        let files = try Self.files("y")
        expectEqual(files.count, 95)
        for file in files {
            let name = file.deletingPathExtension().lastPathComponent
            let reason = try Self.errorAsMember(file)?.reason
            if let refused = Self.refusedDocuments[name] {
                expectEqual(reason?.contains(refused), true, "\(name): \(reason ?? "accepted")")
            } else {
                expectNil(reason, "\(name)")
            }
        }
    }

    @Test func `Files that are not JSON are refused, as a line and as a member`() throws {
        let files = try Self.files("n")
        expectEqual(files.count, 188)
        for file in files {
            let name = file.lastPathComponent
            try expect(Self.errorAsMember(file) != nil, "\(name) was accepted as a member")
            expect(Self.error(of: Array(try Data(contentsOf: file))) != nil, "\(name) was accepted as a line")
        }
    }

    /// Of the files on which parsers may differ, those that are accepted: a double that is too small is zero.
    private static let accepted: Set<String> = ["i_number_double_huge_neg_exp", "i_number_real_underflow"]

    @Test func `Numbers out of range, lone surrogates, other encodings and deep nesting are refused`() throws {
        let files = try Self.files("i")
        expectEqual(files.count, 35)
        for file in files {
            let name = file.deletingPathExtension().lastPathComponent
            try expectEqual(Self.errorAsMember(file) == nil, Self.accepted.contains(name), "\(name)")
        }
    }

    @Test func `Lines that are objects are read as documents`() throws {
        // Whole files with an object on top: what precedes is not needed to find it.
        for name in ["y_object", "y_object_basic", "y_object_empty", "y_object_simple", "y_object_with_newlines"] {
            let file = Self.folder.appending(path: "\(name).json")
            expectNil(Self.error(of: Array(try Data(contentsOf: file))), "\(name)")
        }
    }
}
