// The tables of `hearth --help` and docs/commands.md.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct CommandGuideTests {
    @Test func `The page and the help have the same tables`() throws {
        let page = try String(contentsOf: Repository.url("docs/commands.md"), encoding: .utf8)
        let help = try HearthBinary.run(["--help"]).output
        for row in CommandGuide.tasks {
            expect(page.contains("| \(row.task) | `hearth \(row.command)` |"), "\(row.task)")
            expect(help.contains("\(row.task) ") && help.contains(" hearth \(row.command)\n"), "\(row.task)")
        }
        for command in CommandTable.shown {
            let isThere = page.contains("`hearth \(command.name)`") || page.contains("`hearth \(command.name) ")
            expect(isThere, "\(command.name)")
        }
        for row in CommandGuide.statuses {
            expect(page.contains("| \(row.status) | \(row.meaning) |"), "\(row.status)")
            expect(help.contains("\n  \(row.status): "), "\(row.status)")
        }
    }

    @Test func `The table of outputs has each command, on the page too; what prints lines has --json`() throws {
        let page = try String(contentsOf: Repository.url("docs/commands.md"), encoding: .utf8)
        expectEqual(CommandGuide.outputs.map(\.command).sorted(), CommandTable.all.map { $0.name }.sorted())
        for command in CommandTable.shown {
            let output = try #require(CommandGuide.outputs.first { $0.command == command.name }).output
            let hasFlag = command.flagGroups.flatMap(\.flags).contains { $0.name == "json" }
            // Those that print documents accept it, too.
            let mayHaveFlag = output == .json || output == .documents
            expect(hasFlag ? mayHaveFlag : output != .json, "\(command.name)")
            let row = page.split(separator: "\n").first { $0.hasPrefix("| \(output.rawValue) |") }
            expectEqual(row?.contains("`\(command.name)`"), true, "\(command.name)")
        }
    }

    @Test func `Each reading command prints objects with --json`() throws {
        let directory = TemporaryDirectory("json")
        let (data, archive) = (directory.path(of: "data"), directory.path(of: "archive"))
        let rules = directory.path(of: "firestore.rules")
        let text = "service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read: if true; } }"
        try Data(text.utf8).write(to: URL(filePath: rules))
        let server = try ServerProcess(data: data, arguments: ["--archive", archive, "--archive-interval", "100ms"])
        let address = ["HEARTH_ADDRESS": "127.0.0.1:\(server.port)"]
        func run(_ words: [String]) throws -> String {
            let outcome = try HearthBinary.run(words, environment: address)
            expectEqual(outcome.status, 0, "\(words): \(outcome.errors)")
            return outcome.output
        }
        func check(_ words: [String], has member: String) throws {
            let lines = try run(words + ["--json"]).split(separator: "\n")
            expect(!lines.isEmpty, "\(words)")
            for line in lines {
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                expect(object?[member] != nil, "\(words): \(line)")
            }
        }
        _ = try run(["set", "c/a", #"{"n": 1}"#])
        try check(["ls"], has: "path")
        try check(["get", "c/a"], has: "n")
        try check(["query", "c"], has: "n")
        try check(["query", "c", "--count", "--sum", "n"], has: "sum n")
        try check(["query", "c", "--where", "n == 1", "--explain"], has: "tree")
        try check(["query", "c", "--analyze"], has: "resultsReturned")
        try check(["query", "--pipeline", "collection(c) | limit(1)", "--analyze"], has: "tree")
        try check(["health", "--data", data], has: "ready")
        try check(["status", "--data", data], has: "memory")
        let memory = try run(["status", "--data", data])
        expect(memory.contains(/memory of memtables\t[0-9]+ of [0-9]+ bytes\n/), "\(memory)")
        expect(memory.contains(/memory of others\t[0-9]+ bytes\n/), "\(memory)")
        try expect(run(["status", "--data", data, "--json"]).contains(/"max":null,"part":"others"/))
        _ = try run(["databases", "create", "staging", "--data", data, "--location", "here", "--protected"])
        try check(["databases", "list"], has: "createTime")
        let listed = try run(["databases", "list"]).split(separator: "\n").map { $0.split(separator: "\t") }
        expectEqual(listed.map(\.count), [2, 3], "\(listed)")
        try expect(listed.map { try PointInTime.parse("\($0[1])").microseconds }.allSatisfy { $0 > 0 }, "\(listed)")
        let objects = try run(["databases", "list", "--json"])
        let day = "\"createTime\":\"\(listed[0][1].prefix(11))"
        expect(objects.split(separator: "\n").allSatisfy { $0.contains(day) }, "\(objects)")
        let refused = try HearthBinary.run(["databases", "delete", "staging", "--yes"], environment: address)
        expect(refused.status == 1 && refused.errors.contains("protected"), "\(refused.errors)")
        _ = try run(["databases", "unprotect", "staging", "--data", data])
        let unasked = try HearthBinary.run(["databases", "delete", "staging"], environment: address)
        expect(unasked.status == 1 && unasked.errors.contains("--yes"), "\(unasked.errors)")
        _ = try run(["databases", "delete", "staging", "--yes"])
        try expect(!run(["databases", "list"]).contains("staging"))
        let file = directory.path(of: "p.json")
        _ = try run(["token", "create", "job", "--principals", file, "--role", "reader", "--project", "p", "--api-key"])
        try check(["token", "list", "--principals", file], has: "apiKeys")
        _ = try run(["indexes", "list", "--data", data])
        try waitUntil("the archive has a base") {
            try HearthBinary.run(["archive", "list", archive], environment: [:]).status == 0
        }
        try check(["archive", "list", archive], has: "bases")
        try check(["archive", "check", archive, "--quiet"], has: "problems")
        _ = try run(["rules", "apply", rules, "--data", data])
        try check(["rules", "list", "--data", data], has: "inForce")
        expectEqual(server.stop(), 0)
        try check(["check", "--data", data, "--quiet"], has: "problems")
        try check(["databases", "list", "--data", data], has: "etag")
    }

    @Test func `Control characters of ids and words are escaped where a terminal would obey them`() throws {
        let text = "a\tb\r\n\u{1B}[2J\u{9B}1m\u{0}\u{7F}\r é…\u{E2}\u{1F600}\u{202E}\n"
        let printed = String(decoding: StandardOutput.printable(Array(text.utf8)), as: UTF8.self)
        expectEqual(printed, "a\tb\r\n\\u001b[2J\\u009b1m\\u0000\\u007f\\u000d é…â\u{1F600}\\u202e\n")
        expectEqual(PathWords.printed("c/a\u{202E}b"), #""c/a\u202eb""#)
        let refused = try HearthBinary.run(["fro\u{1B}[2Jb"])
        expect(refused.errors.contains(#"unknown command "fro\u001b[2Jb""#), "\(refused.errors)")
    }

    @Test func `Each command of the table exists, and so do its flags and actions`() throws {
        for row in CommandGuide.tasks {
            for part in row.command.components(separatedBy: ", ") {
                let words = part.split(separator: " ").map(String.init)
                let command = try #require(CommandTable.shown.first { $0.name == words[0] }, "\(part)")
                for word in words.dropFirst() where word.hasPrefix("--") {
                    let names = command.flagGroups.flatMap(\.flags).flatMap(\.names)
                    expect(names.contains(String(word.dropFirst(2))), "\(part)")
                }
                if let word = words.dropFirst().first, word.allSatisfy(\.isLowercase), !command.actions.isEmpty {
                    expect(command.actions.contains(word), "\(part)")
                }
            }
        }
    }
}
