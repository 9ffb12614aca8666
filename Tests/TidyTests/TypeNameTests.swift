// A reader knows which type is meant by its name alone.

import TestSupport
import Testing

@Suite("Type names", .timeLimit(.minutes(20))) struct TypeNameTests {
    @Test("No two modules have a type of the same name")
    func namesAreUnique() throws {
        let files = try SourceTree.files(below: "Sources", extension: "swift")
        let names = Set(files.flatMap(Self.topLevelNames))
        expect(Self.shared(in: files).isEmpty, "Rename one of them: each says what it is in its module")
        expect(names.count > 1_000)
    }

    @Test("A name that two modules have is found")
    func sharedNamesAreFound() {
        let files = [
            ("Sources/A/A.swift", ["struct Same {}", "    struct Inner {}", "private enum Own {}", "@safe"]),
            ("Sources/A/B.swift", ["extension Same {}", "package final class Twice<T> {", "typealias C = D"]),
            ("Sources/B/A.swift", ["@safe package struct Twice {", "    struct Same {}", "enum Own {}", "enum C {}"]),
            ("Sources/C/A.swift", ["public final class Same {}", "struct Inner {}"]),
        ].map { path, lines in SourceFile(path: path, lines: lines.map { $0[...] }) }
        expectEqual(Self.shared(in: files), ["Twice: Sources/A, Sources/B"])
    }

    /// The names that types of two modules have, with the modules.
    private static func shared(in files: [SourceFile]) -> [String] {
        var modules: [Substring: Set<String>] = [:]
        for file in files {
            for name in topLevelNames(file) { modules[name, default: []].insert(file.part) }
        }
        return modules.filter { $0.value.count > 1 }
            .map { "\($0.key): \($0.value.sorted().joined(separator: ", "))" }.sorted()
    }

    /// The types that a file declares for its whole module. Public types are left out, since the client library has the
    /// names of Firestore's, and aliases, since they name a type of another module.
    private static func topLevelNames(_ file: SourceFile) -> [Substring] {
        file.lines.compactMap { line -> Substring? in
            guard let first = line.first, first.isLetter || first == "@" else { return nil }
            let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "@" }
            guard let kind = words.firstIndex(where: { kinds.contains($0) }), kind + 1 < words.count,
                words[..<kind].allSatisfy({ $0.hasPrefix("@") || modifiers.contains($0) })
            else { return nil }
            return words[kind + 1]
        }
    }

    private static let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "actor"]
    private static let modifiers: Set<Substring> = ["package", "internal", "final", "indirect"]
}
