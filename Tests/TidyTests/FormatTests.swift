// The tree has the format of `.swift-format`.

import Foundation
import TestSupport
import Testing

@Suite("Format", .timeLimit(.minutes(20))) struct FormatTests {
    @Test("swift format has nothing to change")
    func treeIsFormatted() throws {
        let files = try ["Sources", "Tools", "Tests", "Benchmarks", "Package.swift"].flatMap {
            try SourceTree.files(below: $0, extension: "swift")
        }
        expect(files.count > 700)
        let process = Process()
        let errors = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.currentDirectoryURL = SourceTree.root
        process.arguments = ["swift", "format", "lint", "--strict", "--parallel"] + files.map(\.path)
        process.standardError = errors
        try process.run()
        let findings = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        expectEqual(
            process.terminationStatus, 0,
            "Run: swift format -i -p $(git ls-files '*.swift')\n\(findings.prefix(10_000))")
    }
}
