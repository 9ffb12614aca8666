// Completions and manual pages: they have what --help has.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct PagesTests {
    private static let commands = CommandTable.shown.map(CompletedCommand.init)

    /// What bash offers for the last word of a command line.
    private static func completed(_ line: [String], in directory: String = "/") throws -> [String] {
        let script = """
            cd "$1"; shift
            eval "$1"; shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _hearth
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let outcome = try HearthBinary.run(
            ["-c", script, "bash", directory, BashCompletion.text(of: commands)] + line, executable: "/bin/bash")
        expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        return outcome.output.split(separator: "\n").map(String.init).sorted()
    }

    @Test func `bash offers commands, actions, flags and paths`() throws {
        try expectEqual(Self.completed(["hearth", "ser"]), ["serve"])
        try expectEqual(Self.completed(["hearth", ""]), (CommandTable.shown.map { $0.name } + ["help"]).sorted())
        try expectEqual(Self.completed(["hearth", "rules", "ro"]), ["rollback"])
        try expect(Self.completed(["hearth", "serve", "--tls-c"]).contains("--tls-cert"))
        try expectEqual(Self.completed(["hearth", "serve", "--port", ""]), [])
        try expectEqual(Self.completed(["hearth", "get", "--fro"]), ["--from"])
        let directory = TemporaryDirectory("completion")
        try Data().write(to: URL(filePath: directory.path(of: "a file")))
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "a folder"), withIntermediateDirectories: false)
        try expectEqual(Self.completed(["hearth", "serve", "--data", "a"], in: directory.path), ["a folder"])
        try expectEqual(
            Self.completed(["hearth", "serve", "--rules", "a"], in: directory.path), ["a file", "a folder"])
        try expectEqual(Self.completed(["hearth", "load", "a"], in: directory.path), ["a file", "a folder"])
    }

    @Test func `Every flag of every command is in each completion and on its manual page`() throws {
        let zsh = ZshCompletion.text(of: Self.commands)
        let fish = FishCompletion.text(of: Self.commands).split(separator: "\n")
        for command in CommandTable.shown {
            let clause = try #require(zsh.components(separatedBy: "            \(command.name)) _arguments").last)
            let options = try #require(clause.components(separatedBy: " ;;").first)
            let lines = fish.filter { $0.contains("__fish_seen_subcommand_from \(command.name)'") }
            let page = ManualPage.page(of: command)
            for flag in command.flagGroups.flatMap(\.flags) {
                expect(options.contains("--\(flag.name)["), "zsh: \(command.name) --\(flag.name)")
                expect(lines.contains { $0.contains(" -l \(flag.name) ") }, "fish: \(command.name) --\(flag.name)")
                let name = "--\(flag.name)".replacingOccurrences(of: "-", with: "\\-")
                expect(page.contains("\\fB\(name)"), "manual: \(command.name) --\(flag.name)")
            }
            for action in command.actions {
                expect(options.contains(action) && lines.contains { $0.contains(action) })
                expect(command.discussion.contains(action), "\(command.name) --help does not have \(action)")
            }
        }
    }

    @Test func `An action that a command does not have is refused with the list`() throws {
        for command in CommandTable.all where !command.actions.isEmpty {
            let outcome = try HearthBinary.run([command.name, "none"])
            expectEqual(outcome.status, 2)
            for action in command.actions { expect(outcome.errors.contains(action), "\(outcome.errors)") }
        }
    }

    @Test func `A manual page has no line that is a request by accident`() throws {
        let names = try HearthBinary.run(["manual"]).output.split(separator: "\n").map(String.init)
        expectEqual(names, ["hearth"] + CommandTable.shown.map { "hearth-\($0.name)" })
        let requests = [".\\\"", ".TH ", ".SH ", ".PP", ".nf", ".fi", ".TP", ".nh", ".ad l"]
        for name in names {
            let page = try HearthBinary.run(["manual", name]).output
            for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
                expect(requests.contains { line.hasPrefix($0) }, "\(name): \(line)")
            }
            expect(page.contains(".SH \"NAME\"\n\(name.replacingOccurrences(of: "-", with: "\\-")) \\- "), "\(name)")
        }
        try expectEqual(HearthBinary.run(["manual", "hearth-none"]).status, 2)
    }

    @Test func `Commands for packages are not in the overview`() throws {
        let overview = try HearthBinary.run(["--help"]).output
        for command in CommandTable.all {
            expectEqual(overview.contains("\n  \(command.name) "), !command.isHidden, "\(command.name)")
            expectEqual(BashCompletion.text(of: Self.commands).contains(" \(command.name))"), !command.isHidden)
        }
    }
}
