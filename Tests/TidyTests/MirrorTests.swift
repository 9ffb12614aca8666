// A reader finds the tests of a file by its path.

import TestSupport
import Testing

@Suite("Mirror", .timeLimit(.minutes(20))) struct MirrorTests {
    /// Folders of test targets that are no folders of a module: helpers, and tests about more than one part of it.
    static let furtherFolders: Set = [
        "Support", "Simulation", "PowerCut", "Interop", "Conformance", "Documentation", "Live", "Programs",
    ]

    @Test("Tests of Sources/Module/Folder lie in Tests/ModuleTests/Folder")
    func testsMirrorSources() throws {
        let sources = try Set(SourceTree.files(below: "Sources", extension: "swift").map(\.folder))
        let tests = try Set(SourceTree.files(below: "Tests", extension: "swift").map(\.folder))
        let misplaced = tests.filter { !Self.mirrors($0, sources: sources) }
        expect(misplaced.isEmpty, "Move the tests to the folder of what they test")
        expect(tests.count - misplaced.count > 60)
    }

    @Test(
        "A folder that the module lacks is found",
        arguments: [
            ("Tests/ATests/B", true), ("Tests/ATests", true), ("Tests/ATests/C", false),
            ("Tests/ATests/Support/C", true),
            ("Tests/ATests/B/Simulation", true), ("Tests/LoadTests/C", true), ("Tests/TestSupport/C", true),
        ])
    func misplacedTestsAreFound(folder: String, isRight: Bool) {
        expectEqual(Self.mirrors(folder, sources: ["Sources/A", "Sources/A/B"]), isRight)
    }

    /// Whether a folder of tests may be where it is. Targets that test a server or the tree have no module.
    private static func mirrors(_ folder: String, sources: Set<String>) -> Bool {
        let parts = folder.split(separator: "/")
        guard parts.count > 2, parts[1].hasSuffix("Tests") else { return true }
        func hasFolder(_ path: String) -> Bool { sources.contains { "\($0)/".hasPrefix("\(path)/") } }
        let module = "Sources/" + (parts[1] == "HearthTests" ? "hearth" : String(parts[1].dropLast("Tests".count)))
        let mirrored = parts[2...].prefix { !furtherFolders.contains(String($0)) }
        return hasFolder(([module[...]] + mirrored).joined(separator: "/")) || !hasFolder(module)
    }
}
