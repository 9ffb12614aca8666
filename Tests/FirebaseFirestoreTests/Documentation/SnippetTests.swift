// The Swift code of README.md, docs/ and the DocC catalogue compiles in both language modes; its programs run against a
// server, and the pages of the catalogue over memory.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct SnippetTests {
    private static let repository = SwiftCompiler().repository

    @Test("The pages have snippets of every kind")
    func kinds() throws {
        let kinds = try Snippet.all(in: Self.repository).map(\.kind)
        #expect(kinds.contains(.manifest))
        #expect(kinds.contains(.program))
        #expect(kinds.contains(.fragment))
    }

    @Test(
        "Every snippet compiles without a warning",
        arguments: try Snippet.all(in: repository), SwiftCompiler.LanguageMode.allCases)
    func compiles(snippet: Snippet, mode: SwiftCompiler.LanguageMode) throws {
        if snippet.kind == .manifest { return }
        // Values that a fragment makes to show them are not used any further.
        let verdict = try SwiftCompiler().check(snippet.source, mode, unusedValuesAreFine: snippet.kind == .fragment)
        #expect(verdict.isAccepted, "\(snippet.page):\(snippet.line)\n\(verdict.diagnostics)")
    }

    @Test(
        "The fragments of a page of the catalogue run to their end",
        arguments: ["FirebaseFirestore", "MappingGuide"])
    func runsPage(name: String) throws {
        let page = "\(Snippet.catalogue)/\(name).md"
        let fragments = try Snippet.all(in: Self.repository).filter { $0.page == page && $0.kind == .fragment }
        #expect(!fragments.isEmpty)
        let compiler = SwiftCompiler()
        let (verdict, path) = try compiler.executable(Snippet.program(running: fragments))
        try #require(verdict.isAccepted, "\(verdict.diagnostics)")
        let process = HearthProcess([], environment: ["HEARTH_ADDRESS": "file::memory:"], executable: path)
        try process.start()
        process.waitForEnd()
        #expect(process.status == 0, "\(process.errors)")
        #expect(process.errors == "")
    }

    @Test(
        "Programs run to their end against a new server",
        arguments: try Snippet.all(in: repository).filter { $0.kind == .program })
    func runs(snippet: Snippet) throws {
        let compiler = SwiftCompiler()
        let (verdict, path) = try compiler.executable(snippet.source)
        try #require(verdict.isAccepted, "\(verdict.diagnostics)")
        let directory = TemporaryDirectory("snippet")
        let server = try ServerProcess(data: directory.path)
        let process = HearthProcess([], environment: ["HEARTH_ADDRESS": "127.0.0.1:\(server.port)"], executable: path)
        try process.start()
        process.waitForEnd()
        #expect(process.status == 0, "\(process.errors)")
        #expect(process.errors == "")
        #expect(server.stop() == 0)
    }
}
