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
            #expect(page.contains("| \(row.task) | `hearth \(row.command)` |"), "\(row.task)")
            #expect(help.contains("\(row.task) ") && help.contains(" hearth \(row.command)\n"), "\(row.task)")
        }
        for row in CommandGuide.statuses {
            #expect(page.contains("| \(row.status) | \(row.meaning) |"), "\(row.status)")
            #expect(help.contains("\n  \(row.status): "), "\(row.status)")
        }
    }

    @Test func `Each command of the table exists, and so do its flags and actions`() throws {
        for row in CommandGuide.tasks {
            for part in row.command.components(separatedBy: ", ") {
                let words = part.split(separator: " ").map(String.init)
                let command = try #require(CommandTable.shown.first { $0.name == words[0] }, "\(part)")
                for word in words.dropFirst() where word.hasPrefix("--") {
                    let names = command.flagGroups.flatMap(\.flags).map(\.name)
                    #expect(names.contains(String(word.dropFirst(2))), "\(part)")
                }
                if let word = words.dropFirst().first, word.allSatisfy(\.isLowercase), !command.actions.isEmpty {
                    #expect(command.actions.contains(word), "\(part)")
                }
            }
        }
    }
}
