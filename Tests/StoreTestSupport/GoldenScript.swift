// Golden scripts: small text files of commands and what they must print.
//
//     # comment
//     query users
//     where n > 1
//     ---
//     scan collection users
//     users/b {n: 2}
//
// A block is the commands up to `---` and the expected output up to a blank line. A test runs every block of a file and
// compares the texts. Run the tests with HEARTH_REWRITE_SCRIPTS=1 to write what they print into the files, and then
// read the diff: the files are the specification.

package import Foundation
import TestSupport
import Testing

package struct GoldenScript {
    package struct Block {
        /// Lines before the commands that are copied through: comments.
        package var comments: [String] = []
        package var commands: [String] = []
        package var expected: [String] = []
        package var line = 0
    }

    package let url: URL
    package private(set) var blocks: [Block] = []
    private var trailer: [String] = []

    /// Reads a script by its path beside the test's source file, without the extension.
    package init(_ name: String, besides file: String) throws {
        url = URL(fileURLWithPath: file).deletingLastPathComponent().appendingPathComponent("\(name).txt")
        let lines = try String(contentsOf: url, encoding: .utf8).components(separatedBy: "\n")
        var block = Block()
        var isOutput = false
        for (index, line) in lines.enumerated() {
            if line.isEmpty {
                if !block.commands.isEmpty { blocks.append(block) } else { trailer = block.comments }
                let comments = block.commands.isEmpty && !block.comments.isEmpty ? block.comments + [""] : []
                block = Block(comments: comments)
                isOutput = false
            } else if line == "---" {
                isOutput = true
            } else if isOutput {
                block.expected.append(line)
            } else if line.hasPrefix("#") {
                block.comments.append(line)
            } else {
                if block.commands.isEmpty { block.line = index + 1 }
                block.commands.append(line)
            }
        }
        if !block.commands.isEmpty { blocks.append(block) }
    }

    /// Runs every block and compares what it prints.
    package func run(_ execute: ([String]) throws -> [String]) throws {
        var rewritten: [String] = []
        for block in blocks {
            let output = try execute(block.commands)
            expect(
                !block.expected.isEmpty || output.isEmpty || isRewriting,
                "\(url.lastPathComponent):\(block.line) has no output")
            if !isRewriting {
                expectEqual(
                    output, block.expected,
                    """
                    \(url.lastPathComponent):\(block.line): \(block.commands.joined(separator: " / "))
                    printed
                    \(output.joined(separator: "\n"))
                    """)
            }
            rewritten += block.comments + block.commands
            if !output.isEmpty { rewritten += ["---"] + output }
            rewritten.append("")
        }
        if isRewriting {
            try rewritten.joined(separator: "\n").write(to: url, atomically: true, encoding: .utf8)
        }
    }

    private var isRewriting: Bool { ProcessInfo.processInfo.environment["HEARTH_REWRITE_SCRIPTS"] != nil }
}

/// What a script says wrongly.
package struct ScriptError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
