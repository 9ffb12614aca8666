// The Swift code of the documentation's pages.
//
// A block that begins with ```swift is one of three:
//
//   a manifest   its first line is `// swift-tools-version`; Tests/Package/run builds with it
//   a program    it has an `@main` type; it is compiled alone, and run
//   a fragment   anything else; its imports, if it has any, stand first. It is compiled as the body of
//                `func fragmentN(db: Firestore) async throws`, after `import FirebaseFirestore`

import Foundation
import Testing

struct Snippet: CustomTestStringConvertible {
    enum Kind { case manifest, program, fragment }

    /// The page, below the repository's root, and the line where the block begins.
    let page: String
    let line: Int
    let text: String

    var testDescription: String { "\(page):\(line)" }

    var kind: Kind {
        if text.hasPrefix("// swift-tools-version") { return .manifest }
        return text.contains("@main") ? .program : .fragment
    }

    /// What is compiled of a fragment: a function with a number. Messages of the compiler name the page and its line.
    func source(_ number: Int) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // Lines of imports stay empty, so that the others keep their places.
        let body = lines.map { $0.hasPrefix("import ") ? "" : $0 }
        return """
            import FirebaseFirestore
            \(lines.filter { $0.hasPrefix("import ") }.joined(separator: "\n"))
            func fragment\(number)(db: Firestore) async throws {
            #sourceLocation(file: "\(page)", line: \(line + 1))
            \(body.joined(separator: "\n"))
            #sourceLocation()
            }
            """
    }

    /// The folder of the DocC catalogue.
    static let catalogue = "Sources/FirebaseFirestore/FirebaseFirestore.docc"

    /// Every block of README.md, ARCHITECTURE.md, docs/ and the DocC catalogue.
    static func all(in repository: String) throws -> [Snippet] {
        let pages =
            ["README.md", "ARCHITECTURE.md"]
            + ["docs", catalogue].flatMap { folder in
                let files = FileManager.default.enumerator(atPath: "\(repository)/\(folder)")
                let names = files?.compactMap { $0 as? String } ?? []
                return names.filter { $0.hasSuffix(".md") }.sorted().map { "\(folder)/\($0)" }
            }
        return try pages.flatMap { page in
            blocks(of: try String(contentsOfFile: "\(repository)/\(page)", encoding: .utf8), page)
        }
    }

    /// A program that runs fragments, one after the other.
    static func program(running fragments: [Snippet]) -> String {
        let functions = fragments.enumerated().map { number, fragment in fragment.source(number) }
        let calls = fragments.indices.map { "try await fragment\($0)(db: db)" }
        return """
            \(functions.joined(separator: "\n"))
            @main struct Program {
                static func main() async throws {
                    let db = Firestore.firestore()
                    \(calls.joined(separator: "\n"))
                }
            }
            """
    }

    private static func blocks(of text: String, _ page: String) -> [Snippet] {
        var found: [Snippet] = []
        var open: (line: Int, lines: [Substring])?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.hasPrefix("```") {
                if let block = open {
                    found.append(Snippet(page: page, line: block.line, text: block.lines.joined(separator: "\n")))
                    open = nil
                } else if line.dropFirst(3).hasPrefix("swift") {
                    open = (index + 1, [])
                }
            } else {
                open?.lines.append(line)
            }
        }
        return found
    }
}
