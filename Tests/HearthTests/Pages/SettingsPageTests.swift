// The flags of `hearth serve` as docs/operations.md lists them.

import Foundation
import TestSupport
import Testing

@testable import hearth

/// Compares the tables of docs/operations.md with `hearth serve --help`, and the help with the configuration.
@Suite(.timeLimit(.minutes(20))) struct SettingsPageTests {
    private struct Setting: Hashable, CustomStringConvertible {
        /// With dashes and placeholder, as in `--port PORT`.
        var flag: String
        var defaultValue: String

        var description: String { "\(flag) = \(defaultValue)" }
    }

    @Test func `docs/operations.md and hearth serve --help name the same flags with the same defaults`() throws {
        let help = Self.settings(help: try HearthBinary.run(["serve", "--help"]).output)
        let page = Self.settings(page: try String(contentsOfFile: Self.pagePath, encoding: .utf8))
        expect(help.count > 50)
        expectEqual(help.subtracting(page).map(\.description).sorted(), [], "in --help, not on the page")
        expectEqual(page.subtracting(help).map(\.description).sorted(), [], "on the page, not in --help")
    }

    private static func configuration(_ words: [String]) throws -> [String: String] {
        let flags = ServeSettings.groups.flatMap(\.flags)
        let arguments = try ArgumentParser(flags: flags, words: [], environment: { _ in nil }).parse(words)
        let configuration = ServeSettings.configuration(arguments, ServeSettings.defaults.log)
        return Dictionary(
            uniqueKeysWithValues: ServeSettings.all.map { ($0.flag.name, $0.text(configuration)) })
    }

    @Test func `Without flags every property keeps its initial value`() throws {
        let configuration = try Self.configuration([])
        for setting in ServeSettings.all {
            expectEqual(configuration[setting.flag.name], setting.flag.defaultText, "\(setting.flag.name)")
        }
    }

    @Test func `A flag sets its property and no other`() throws {
        let values = ["11", "20MiB", "80KiB", "20KiB", "7s", "off", "strict", "pessimistic"]
        for setting in ServeSettings.all {
            let name = setting.flag.name
            let value = try #require(values.first { text in (try? setting.flag.check(text)) != nil }, "\(name)")
            var expected = try Self.configuration([])
            expected[name] = value
            try expectEqual(Self.configuration(["--\(name)=\(value)"]), expected, "--\(name)=\(value)")
        }
    }

    private static let pagePath = Repository.url("docs/operations.md").path

    /// Flags are lines that begin with two spaces and `--`. The indented text below each may say `Default X.`
    private static func settings(help: String) -> Set<Setting> {
        var settings: Set<Setting> = []
        for part in help.components(separatedBy: "\n  --").dropFirst() {
            let lines = part.split(separator: "\n", omittingEmptySubsequences: false)
            let text = lines.dropFirst().prefix { $0.hasPrefix("      ") }.joined(separator: " ")
            let words = text.split(separator: " ")
            let value = words.firstIndex(of: "Default").map { String(words[$0 + 1].dropLast()) } ?? ""
            // The default number of loops depends on the machine.
            settings.insert(Setting(flag: "--" + lines[0], defaultValue: lines[0] == "loops N" ? "cores" : value))
        }
        return settings
    }

    /// Rows of the page's tables: | `--flag VALUE` | default | meaning |
    private static func settings(page: String) -> Set<Setting> {
        var settings: Set<Setting> = []
        for line in page.split(separator: "\n") where line.hasPrefix("| `--") {
            // A bar within a cell is written \|.
            let cells = line.replacingOccurrences(of: "\\|", with: "\u{0}").split(separator: "|").map {
                $0.replacingOccurrences(of: "\u{0}", with: "|").trimmingCharacters(in: .whitespaces)
            }
            let plain = cells.map { $0.replacingOccurrences(of: "`", with: "") }
            settings.insert(Setting(flag: plain[0], defaultValue: plain[1].replacingOccurrences(of: ",", with: "")))
        }
        return settings
    }
}
