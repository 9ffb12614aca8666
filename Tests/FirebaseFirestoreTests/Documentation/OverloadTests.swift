// Which form of a write the compiler picks: in code that can wait the one that waits, never in silence the one that
// does not.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct OverloadTests {
    /// Calls that exist with and without waiting; `r` is a document, `c` a collection, `b` a batch, `db` the database.
    private static let calls = [
        "r.setData([\"a\": 1])", "r.setData([\"a\": 1], merge: true)", "r.setData([\"a\": 1], mergeFields: [\"a\"])",
        "r.updateData([\"a\": 1])", "r.delete()", "c.addDocument(data: [\"a\": 1])", "b.commit()", "db.enableNetwork()",
        "db.disableNetwork()", "db.terminate()", "db.clearPersistence()",
    ]
    private static let names = """
        let db = Firestore.firestore(), r = db.document("c/d"), c = db.collection("c"), b = db.batch()
        """

    @Test(arguments: SwiftCompiler.LanguageMode.allCases)
    func `In a function that can wait, every call waits`(mode: SwiftCompiler.LanguageMode) throws {
        let lines = Self.calls.map { "_ = try await \($0)" }.joined(separator: "\n")
        let outcome = try SwiftCompiler().check(
            "import FirebaseFirestore\nfunc f() async throws {\n\(Self.names)\n\(lines)\n}", mode)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test
    func `There it cannot be left out`() throws {
        let lines = Self.calls.map { "_ = try \($0)" }.joined(separator: "\n")
        let outcome = try SwiftCompiler().check(
            "import FirebaseFirestore\nfunc f() async throws {\n\(Self.names)\n_ = (r, c, b)\n\(lines)\n}")
        expect(!outcome.isAccepted)
        for (index, call) in Self.calls.enumerated() {
            let errors = outcome.errors(line: 5 + index)
            expect(errors.contains("'async' but is not marked with 'await'"), "\(call): \(outcome.diagnostics)")
        }
    }

    @Test(arguments: SwiftCompiler.LanguageMode.allCases, [true, false])
    func `A function that cannot wait, and a script without await, use the form that returns at once`(
        mode: SwiftCompiler.LanguageMode, isScript: Bool
    ) throws {
        let lines = Self.calls.joined(separator: "\n")
        let body = isScript ? "\(Self.names)\n\(lines)" : "func f() {\n\(Self.names)\n\(lines)\n}"
        let outcome = try SwiftCompiler().check("import FirebaseFirestore\n\(body)", mode, isScript: isScript)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test
    func `At the top level of a script that waits, the call that does not is refused`() throws {
        let lines = Self.calls.map { "_ = try await \($0)" }.joined(separator: "\n")
        let outcome = try SwiftCompiler().check(
            "import FirebaseFirestore\n\(Self.names)\n_ = (r, c, b)\n\(lines)", isScript: true)
        expect(!outcome.isAccepted)
        let advice = "await the async form in a function or an @main type"
        for (index, call) in Self.calls.enumerated() {
            expect(outcome.errors(line: 4 + index).contains(advice), "\(call): \(outcome.diagnostics)")
        }
    }

    @Test(arguments: SwiftCompiler.LanguageMode.allCases)
    func `With a completion, or nil for it, a call that does not wait may stand anywhere`(
        mode: SwiftCompiler.LanguageMode
    ) throws {
        let outcome = try SwiftCompiler().check(
            """
            import FirebaseFirestore
            func f() async throws {
            \(Self.names)
            r.setData(["a": 1], completion: nil)
            r.setData(["a": 1], merge: true) { error in print(error as Any) }
            r.updateData(["a": 1], completion: nil)
            r.delete(completion: nil)
            c.addDocument(data: ["a": 1], completion: nil)
            b.commit(completion: nil)
            db.terminate(completion: nil)
            }
            """, mode)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test(arguments: ["FirebaseFirestore", "FirebaseCore", "Firebase"])
    func `Foundation's names come with the library's, as in the Apple SDK`(module: String) throws {
        let outcome = try SwiftCompiler().check(
            """
            import \(module)
            func f(_ error: any Error) -> (NSError, Date, Data) { (error as NSError, Date(), Data()) }
            """)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }
}
