// What people read when a command fails: sentences, without the names of this program's types and cases.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ErrorTextTests {
    private let directory = TemporaryDirectory("errors")

    private func path(_ name: String) -> String { directory.path(of: name) }

    private func write(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    /// All paths below the directory.
    private func listing() -> [String] {
        FileManager.default.enumerator(atPath: directory.path)?.compactMap { $0 as? String }.sorted() ?? []
    }

    @Test
    func `No command that reads makes anything in a directory without a database`() throws {
        let file = try write("firestore.indexes.json", #"{"indexes": []}"#)
        try FileManager.default.createDirectory(atPath: path("empty"), withIntermediateDirectories: false)
        try FileManager.default.createDirectory(atPath: path("other"), withIntermediateDirectories: false)
        _ = try write("other/notes.txt", "mine")
        let before = listing()
        for wrong in [path("none"), path("none/deep"), path("empty"), path("other"), path("other/notes.txt")] {
            for command in [
                ["get", "c/x", "--data", wrong], ["query", "c", "--data", wrong], ["check", "--data", wrong],
                ["backup", path("target"), "--data", wrong], ["indexes", "list", "--data", wrong],
                ["indexes", "apply", file, "--data", wrong],
            ] {
                let outcome = try HearthBinary.run(command)
                expectEqual(outcome.status, 1, "\(command)")
                expect(outcome.errors.contains("\(wrong) is not a Hearth data directory"), "\(outcome.errors)")
                expectEqual(listing(), before, "\(command)")
            }
            let restore = try HearthBinary.run(["restore", wrong, "--data", path("target")])
            expect(restore.status == 1 && restore.errors.contains("is not a backup"), "\(restore.errors)")
            expectEqual(listing(), before)
        }
    }

    @Test
    func `Every error is a sentence`() throws {
        let (data, file) = (path("data"), try write("file", "text"))
        let server = try ServerProcess(data: data)
        let address = "127.0.0.1:\(server.port)"
        let lines = try write("c.jsonl", #"{"__name__":"x","n":1}"#)
        let (number, brace) = (try write("number.json", #"{"indexes": 5}"#), try write("brace.json", "{"))
        let strange = path("strange")
        try expectEqual(HearthBinary.run(["backup", "--data", data, strange]).status, 0)
        _ = try write("strange/FORMAT", "another")
        let damaged = path("damaged")
        try expectEqual(HearthBinary.run(["backup", "--data", data, damaged]).status, 0)
        for name in try FileManager.default.contentsOfDirectory(atPath: "\(damaged)/runs") {
            _ = try write("damaged/runs/\(name)", "damage")
        }
        let commands = [
            ["get", "c"], ["get", ""], ["get", "/"], ["get", "a//b"], ["get", "projects/p/databases/d/documents/c"],
            ["get", "c/__x__"], ["get", "c/x", "--project", ""], ["get", "c/x", "--database", "a/b"],
            ["get", "c/x", "--address", "nonsense:x"], ["get", "c/x", "--data", strange],
            ["get", "c/x", "--data", damaged], ["get", "c/x", "--data", data, "--address", address],
            ["query", "c/x"], ["query", "c", "--order-by", "x:down"], ["query", "c", "--order-by", "x down"],
            ["query", "c", "--order-by", "a-b:desc"], ["query", "c", "--order-by", ""],
            ["query", "c", "--select", "a-b"], ["query", "c", "--sum", "a..b"], ["query", "c", "--avg", "1a"],
            ["query", "c", "a-b == 1"], ["query", "c", "n == [1"], ["query", "c", "n ~ 1"],
            ["query", "c", "--limit", "-1"],
            ["query", "c", "n in []", "--address", address], ["query", "c", "__name__ == 5", "--address", address],
            ["query", "c", "n == 1", "--order-by", "__name__,n", "--address", address],
            ["watch", "c/x", "n == 1"], ["watch", "c", "n in []", "--address", address],
            ["load", path("none"), "--collection", "c", "--address", address],
            ["load", directory.path, "--collection", "c"], ["load", lines, "--collection", "c/x"],
            ["load", lines, "--collection", "c", "--address", address, "--skip-bad", "/dev/null/x"],
            ["load", file, "--collection", "c", "--address", address],
            ["load", lines, "--resume", "--collection", "c"],
            ["export", "--collection", "c/x"], ["export", "--collection", "c", "--output", "/dev/null/x"],
            ["check", "--data", data], ["check", "--data", strange], ["check", "--data", damaged],
            ["backup", "--data", data, file], ["backup", "--data", data, "/dev/null/x"],
            ["backup", "--data", data, data],
            ["backup", "--data", strange, path("target")], ["backup", "--data", damaged, path("target")],
            ["restore", "--data", path("target"), data], ["restore", "--data", path("target"), strange],
            ["restore", "--data", path("target"), damaged], ["restore", "--data", "/dev/null/x", strange],
            ["restore", "--data", file, strange], ["restore", "--data", data, strange],
            ["indexes", "apply", number, "--data", data], ["indexes", "apply", brace, "--data", data],
            ["indexes", "apply", file, "--data", data], ["indexes", "apply", path("none"), "--data", data],
            ["indexes", "apply", number, "--address", address], ["indexes", "list", "--data", strange],
            ["indexes", "list", "--data", damaged],
            ["token", "list", "--principals", path("none")], ["token", "list", "--principals", directory.path],
            ["token", "revoke", "a", "--principals", path("none")],
            ["token", "mint", "--uid", "u", "--issuer", "i", "--audience", "a", "--key", file],
            ["serve", "--data", data, "--token-issuer", "https://securetoken.google.com/p", "--token-keys", file],
            ["serve", "--data", data, "--principals", file], ["serve", "--data", data, "--rules", file],
            ["serve", "--data", data, "--port", "0"], ["serve", "--data", file, "--port", "0"],
            ["serve", "--data", strange, "--port", "0"], ["serve", "--data", damaged, "--port", "0"],
            ["serve", "--data", path("new"), "--host", "256.0.0.1", "--insecure"],
            ["serve", "--data", "/dev/null/x", "--port", "0"],
            ["serve", "--data", path("new"), "--port", String(server.port), "--host", "127.0.0.1", "--loops", "0"],
        ]
        // Such as `inputOutput:` and `typeMismatch(`.
        let names = try Regex(#"(^|[ "])[a-z]+[A-Z]\w*:|\w+\(|Error Domain|\(\[a-z"#)
        for command in commands {
            let outcome = try HearthBinary.run(command)
            expect(outcome.status == 1 || outcome.status == 2, "\(command): \(outcome.output)")
            expect(outcome.errors.contains("hearth: "), "\(command)")
            for line in outcome.errors.split(separator: "\n") {
                expectNil(line.firstMatch(of: names), "\(command): \(line)")
                expect(!line.contains("regex"), "\(command): \(line)")
            }
        }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An error about a document ends with its place in the console`() throws {
        let server = try ServerProcess(data: path("data"))
        let address = "127.0.0.1:\(server.port)"
        let command = ["set", "books/a&b", "{}", "--create", "--address", address]
        try expectEqual(HearthBinary.run(command).status, 0)
        let refused = try HearthBinary.run(command)
        expectEqual(refused.status, 1)
        let link = "see http://\(address)/console#/data?db=projects/hearth/databases/(default)&path=books/a%26b\n"
        expect(refused.errors.hasSuffix(link), "\(refused.errors)")
        // An error that no view explains has no link.
        let wrong = try HearthBinary.run(["query", "books", "--where", "__x__ == 1", "--address", address])
        expect(wrong.status != 0 && !wrong.errors.contains("console#"), "\(wrong.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A path may begin with a slash`() throws {
        let server = try ServerProcess(data: path("data"))
        let address = ["--address", "127.0.0.1:\(server.port)"]
        let file = try write("c.jsonl", #"{"__name__":"x","n":1}"#)
        let loaded = try HearthBinary.run(["load", file, "--collection", "/c", "--quiet"] + address)
        expectEqual(loaded.status, 0, "\(loaded.errors)")
        let line = #"{"__name__":"c/x","n":1}"# + "\n"
        try expectEqual(HearthBinary.run(["get", "/c/x"] + address).output, line)
        try expectEqual(HearthBinary.run(["query", "/c"] + address).output, line)
        try expectEqual(HearthBinary.run(["query", "/c", "__name__ == x"] + address).output, line)
        try expectEqual(
            HearthBinary.run(["export", "--collection", "/c"] + address).output, #"{"__name__":"x","n":1}"# + "\n")
        for watched in ["/c", "/c/x"] {
            let watch = HearthProcess(["watch", watched] + address)
            try watch.start()
            expect(watch.waitForLine(prefix: "added") != nil, "\(watch.errors)")
            watch.signal(SIGKILL)
            watch.waitForEnd()
        }
        expectEqual(server.stop(), 0)
    }
}
