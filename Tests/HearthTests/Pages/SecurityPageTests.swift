// The commands of docs/security.md.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SecurityPageTests {
    private static let page = Repository.url("docs/security.md").path

    /// The blocks without a language, without the prompt and the output of a command that is shown with both.
    private static func blocks() throws -> [String] {
        let parts = try String(contentsOfFile: page, encoding: .utf8).components(separatedBy: "\n```")
        // Every second part is within a block; the first line of a block has its language.
        return parts.enumerated().filter { $0.offset % 2 == 1 && $0.element.hasPrefix("\n") }.map { _, block in
            let lines = block.split(separator: "\n")
            return lines[0].hasPrefix("$ ") ? String(lines[0].dropFirst(2)) : lines.joined(separator: "\n")
        }
    }

    @Test
    func `The commands of docs/security.md work in the order of the page`() throws {
        let directory = TemporaryDirectory("security-page")
        let rules = "service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow read; } } }"
        try Data(rules.utf8).write(to: URL(fileURLWithPath: directory.path(of: "firestore.rules")))
        let blocks = try Self.blocks()
        expect(blocks.joined().contains("hearth token mint") && blocks.joined().contains("hearth serve"))
        // A server would not end.
        let start = """
            set -e
            cd '\(directory.path)'
            hearth() {
                if [ "$1" = serve ]; then '\(HearthBinary.path)' "$@" --check-config >checked
                else '\(HearthBinary.path)' "$@"; fi
            }
            """
        for block in blocks {
            let script = "\(start)\n\(block.replacing(" --check-config", with: ""))"
            let outcome = try HearthBinary.run(["-c", script], executable: "/bin/sh")
            expectEqual(outcome.status, 0, "\(block)\n\(outcome.errors)")
        }
        let checked = try String(contentsOfFile: directory.path(of: "checked"), encoding: .utf8)
        expect(checked.contains("security: closed\n"))
        try expectEqual(FileManager.default.attributesOfItem(atPath: directory.path(of: "key.json")).isEmpty, false)
    }
}
