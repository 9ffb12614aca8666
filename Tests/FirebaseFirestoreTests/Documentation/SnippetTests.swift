// The Swift code of README.md, docs/ and the DocC catalogue compiles in both language modes; its programs run against a
// server, and the pages of the catalogue over memory.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct SnippetTests {
    private static let repository = SwiftCompiler().repository

    @Test
    func `The pages have snippets of every kind`() throws {
        let kinds = try Snippet.all(in: Self.repository).map(\.kind)
        expect(kinds.contains(.manifest))
        expect(kinds.contains(.program))
        expect(kinds.contains(.fragment))
    }

    /// In one run of the compiler, which reads the modules once.
    @Test(arguments: SwiftCompiler.LanguageMode.allCases)
    func `Every fragment compiles without a warning`(mode: SwiftCompiler.LanguageMode) throws {
        let fragments = try Snippet.all(in: Self.repository).filter { $0.kind == .fragment }
        let sources = fragments.enumerated().map { number, fragment in fragment.source(number) }
        let outcome = try SwiftCompiler().check(fragments: sources, mode)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test(arguments: try Snippet.all(in: repository).filter { $0.kind == .program })
    func `Every program compiles without a warning in the Swift 5 mode too`(snippet: Snippet) throws {
        let outcome = try SwiftCompiler().check(snippet.text, .v5)
        expect(outcome.isAccepted, "\(snippet.page):\(snippet.line)\n\(outcome.diagnostics)")
    }

    @Test(arguments: ["FirebaseFirestore", "MappingGuide"])
    func `The fragments of a page of the catalogue run to their end`(name: String) throws {
        let page = "\(Snippet.catalogue)/\(name).md"
        let fragments = try Snippet.all(in: Self.repository).filter { $0.page == page && $0.kind == .fragment }
        expect(!fragments.isEmpty)
        let compiler = SwiftCompiler()
        let (outcome, path) = try compiler.executable(Snippet.program(running: fragments))
        try #require(outcome.isAccepted, "\(outcome.diagnostics)")
        let process = HearthProcess([], environment: ["HEARTH_ADDRESS": "file::memory:"], executable: path)
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 0, "\(process.errors)")
        expectEqual(process.errors, "")
    }

    @Test(arguments: try Snippet.all(in: repository).filter { $0.kind == .program })
    func `Every program compiles without a warning, and runs to its end against a new server`(snippet: Snippet) throws {
        let compiler = SwiftCompiler()
        let (outcome, path) = try compiler.executable(snippet.text)
        try #require(outcome.isAccepted, "\(outcome.diagnostics)")
        let directory = TemporaryDirectory("snippet")
        let server = try ServerProcess(data: directory.path)
        let process = HearthProcess([], environment: ["HEARTH_ADDRESS": "127.0.0.1:\(server.port)"], executable: path)
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 0, "\(process.errors)")
        expectEqual(process.errors, "")
        expectEqual(server.stop(), 0)
    }
}
