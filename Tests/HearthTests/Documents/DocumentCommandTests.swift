// hearth ls, set, update, delete and copy against a running server.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct DocumentCommandTests {
    /// A server and the commands that use it.
    private struct Bench {
        let directory = TemporaryDirectory("documents")
        let server: ServerProcess

        init() throws { server = try ServerProcess(data: directory.path(of: "data")) }

        /// Runs a command that succeeds.
        func run(_ words: String..., location: SourceLocation = #_sourceLocation) throws {
            _ = try output(words, location: location)
        }

        /// Runs a command that succeeds; returns its output.
        func output(_ words: String..., location: SourceLocation = #_sourceLocation) throws -> String {
            try output(words, location: location)
        }

        private func output(_ words: [String], location: SourceLocation) throws -> String {
            let outcome = try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)"])
            expectEqual(outcome.status, 0, "\(words): \(outcome.errors)", sourceLocation: location)
            return outcome.output
        }

        /// Runs a command that fails; returns its errors.
        func refused(_ words: String..., status: Int32 = 1, location: SourceLocation = #_sourceLocation) throws
            -> String
        {
            let outcome = try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)"])
            expectEqual(outcome.status, status, "\(words): \(outcome.output)", sourceLocation: location)
            return outcome.errors
        }
    }

    @Test
    func `Ids whose characters reach over a slash are listed, exported, copied and deleted`() throws {
        let bench = try Bench()
        // A combining mark after a slash, and a mark that joins the slash after it.
        let paths = ["p/b\u{600}", "p/b\u{600}/s/\u{301}y", "p/\u{301}x"]
        for path in paths { try bench.run("set", path, "{}") }
        func exported(_ collection: String) throws -> [String] {
            try bench.output("export", "--collection", collection, "--recursive").split(separator: "\n").map {
                String($0)
            }
        }
        let lines = ["b\u{600}", "b\u{600}/s/\u{301}y", "\u{301}x"].map { "{\"__name__\":\"\($0)\"}" }
        try expectEqual(exported("p"), lines)
        try expect(bench.output("export", "--collection", "p", "--format", "csv").contains("\r\n\u{301}x"))
        try expectEqual(bench.output("get", paths[2]), "{\"__name__\":\"\(paths[2])\"}\n")
        try expectEqual(bench.output("ls", "p"), "p/b\u{600}\np/\u{301}x\n")
        try bench.run("copy", "p", "q")
        try expectEqual(exported("q"), lines)
        try bench.run("copy", "p/b\u{600}", "r/z")
        try expectEqual(exported("r"), ["{\"__name__\":\"z\"}", "{\"__name__\":\"z/s/\u{301}y\"}"])
        try bench.run("delete", "--recursive", "--yes", "p")
        try expectEqual(exported("p"), [])
    }

    @Test
    func `A document is set, merged, updated and created once`() throws {
        let bench = try Bench()
        try bench.run("set", "c/x", #"{"a": 1, "m": {"p": 1, "q": 2}}"#)
        try expectEqual(bench.output("get", "c/x"), "{\"__name__\":\"c/x\",\"a\":1,\"m\":{\"p\":1,\"q\":2}}\n")
        try bench.run("set", "/c/x", #"{"b": true, "m": {"p": 3}}"#, "--merge")
        try expectEqual(
            bench.output("get", "c/x"), "{\"__name__\":\"c/x\",\"a\":1,\"b\":true,\"m\":{\"p\":3,\"q\":2}}\n")
        try bench.run("update", "c/x", "m.q=two words", "a=1.0", "s=\"7\"", "--remove", "b", "--remove", "m.p")
        try expectEqual(
            bench.output("get", "c/x"), "{\"__name__\":\"c/x\",\"a\":1.0,\"m\":{\"q\":\"two words\"},\"s\":\"7\"}\n")
        try bench.run("set", "c/x", "{}")
        try expectEqual(bench.output("get", "c/x"), "{\"__name__\":\"c/x\"}\n")

        try expect(bench.refused("set", "c/x", "{}", "--create").contains("ALREADY_EXISTS"))
        try bench.run("set", "c/y", #"{"__name__": "c/y", "a b": null}"#, "--create")
        try bench.run("update", "c/y", "`a b`=[1, {\"k\": \"=\"}]")
        try expectEqual(bench.output("get", "c/y"), "{\"__name__\":\"c/y\",\"a b\":[1,{\"k\":\"=\"}]}\n")
        try expect(bench.refused("update", "c/none", "a=1").contains("NOT_FOUND"))
        expectEqual(bench.server.stop(), 0)
    }

    @Test
    func `Standard input has the output of get`() throws {
        let bench = try Bench()
        try bench.run("set", "c/x", #"{"bytes": {"$bytes": "aGk="}, "time": {"$timestamp": "2026-01-31T12:00:00Z"}}"#)
        let line = try bench.output("get", "c/x")
        let file = bench.directory.path(of: "line")
        try Data(line.utf8).write(to: URL(fileURLWithPath: file))
        try bench.run("delete", "c/x")
        let outcome = try HearthBinary.run(
            ["set", "c/x", "--address", "127.0.0.1:\(bench.server.port)"], input: file)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        try expectEqual(bench.output("get", "c/x"), line)
        let other = try HearthBinary.run(
            ["set", "c/z", "-", "--address", "127.0.0.1:\(bench.server.port)"], input: file)
        expect(other.status == 1 && other.errors.contains("c/x"), "\(other.errors)")
        expectEqual(bench.server.stop(), 0)
    }

    /// Commands that a mistake of usage ends with status 2, a mistake in a name or in JSON with 1.
    private static let mistakes: [(words: [String], status: Int32)] = [
        (["set", "c", "{}"], 2), (["set", "c/x", "[]"], 1), (["set", "c/x", "{} {}"], 1), (["update", "c/x"], 2),
        (["update", "c/x", "a"], 2), (["update", "c/x", "a=1", "a.b=2"], 2), (["update", "c/x", "a=[1"], 2),
        (["update", "c/x", "a..b=1"], 2), (["copy", "c/x", "c"], 2), (["copy", "c", "c"], 2),
        (["copy", "c", "c/x/c"], 2), (["copy", "c/x", "d/x", "--after", "e/x"], 2), (["ls", "c//d"], 1),
        (["delete", "c"], 2), (["delete", "/", "--recursive", "--yes"], 2),
    ]

    @Test(arguments: mistakes)
    func `Words that are not understood are refused before a server is called`(
        words: [String], status: Int32
    ) throws {
        let outcome = try HearthBinary.run(words + ["--address", "127.0.0.1:1", "--timeout", "1ms"])
        expectEqual(outcome.status, status, "\(outcome.errors)")
        expect(!outcome.errors.contains("UNAVAILABLE"), "\(outcome.errors)")
    }

    @Test
    func `Documents are deleted together, subtrees after a confirmation`() throws {
        let bench = try Bench()
        for path in ["c/x", "c/x/d/1", "c/x/d/1/e/2", "c/x2", "c/y/d/3", "c2/x"] { try bench.run("set", path, "{}") }
        try expect(bench.refused("delete", "c/x", "c/none").contains("NOT_FOUND"))
        try expectEqual(bench.output("ls", "c"), "c/x\nc/x2\nc/y (missing)\n")

        try expect(bench.refused("delete", "c/x", "--recursive").contains("3 documents would be deleted"))
        try bench.run("delete", "c/x", "--recursive", "--yes")
        try expectEqual(bench.output("ls", "c"), "c/x2\nc/y (missing)\n")
        try expect(bench.output("ls", "c/x").isEmpty)
        try bench.run("delete", "c", "--recursive", "--yes")
        try expectEqual(bench.output("ls"), "c2/\n")
        try expect(bench.refused("delete", "c", "--recursive", "--yes").contains("nothing to delete"))
        expectEqual(bench.server.stop(), 0)
    }

    @Test
    func `Collections and documents are listed`() throws {
        let bench = try Bench()
        for path in ["a/1", "a/2", "a/2/s/x", "b/1"] { try bench.run("set", path, "{}") }
        try expectEqual(bench.output("ls"), "a/\nb/\n")
        try expectEqual(bench.output("ls", "a/", "--limit", "1"), "a/1\n")
        try expectEqual(bench.output("ls", "/a/2"), "a/2/s/\n")
        try expectEqual(
            bench.output("ls", "a/2/s", "--json"), "{\"exists\":true,\"kind\":\"document\",\"path\":\"a/2/s/x\"}\n")
        expectEqual(bench.server.stop(), 0)
        try expectEqual(HearthBinary.run(["ls", "--data", bench.directory.path(of: "data")]).output, "a/\nb/\n")
    }

    @Test
    func `A listing has one line for each path, whatever its characters, and no line can be taken for another`() throws
    {
        let bench = try Bench()
        let ids = ["\u{1B}[2J", "\"q\"", "a\nb", "back\\slash", "t\tb", "x (missing)", "\u{7F}", "\u{85}"]
        for id in ids { try bench.run("set", "c/\(id)", "{}") }
        for path in ["c/x/d/y", "\"c\"/x", "c\n/x"] { try bench.run("set", path, "{}") }
        try expectEqual(
            bench.output("ls", "c"),
            #"""
            "c/\u001b[2J"
            c/"q"
            "c/a\nb"
            c/back\slash
            "c/t\tb"
            c/x (missing)
            "c/x (missing)"
            "c/\u007f"
            "c/\u0085"

            """#)
        try expectEqual(
            bench.output("ls"),
            #"""
            "\"c\"/"
            c/
            "c\n/"

            """#)
        expectEqual(bench.server.stop(), 0)
    }

    @Test
    func `A subtree is copied in commits of bounded size, and continued after a document`() throws {
        let bench = try Bench()
        try bench.run("set", "c/x", #"{"n": 0}"#)
        try bench.run("set", "c/x/d/deep/e/1", #"{"n": 1}"#)
        let lines = (0..<1_200).map { #"{"__name__": "\#(String($0 + 1_000_000))", "n": \#($0)}"# }
        let file = bench.directory.path(of: "lines")
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
        try bench.run("load", file, "--collection", "c/x/many", "--quiet")
        try bench.run("copy", "c/x", "copies/x")
        func exported(_ collection: String) throws -> String {
            try bench.output("export", "--collection", collection, "--recursive", "--quiet")
        }
        try expectEqual(exported("copies"), exported("c"))
        try bench.run("copy", "c", "c3")
        try expectEqual(exported("c3"), exported("c"))

        try bench.run("copy", "c/x", "tail/x", "--after", "c/x/many/1001190")
        try expectEqual(bench.output("query", "tail/x/many", "--count"), "9\n")
        try expectEqual(bench.output("ls", "tail"), "tail/x (missing)\n")
        try expect(bench.refused("copy", "none", "other").contains("nothing to copy"))
        expectEqual(bench.server.stop(), 0)
    }
}
