// The surface of the SDK compiles in both language modes, without a warning.

import Foundation
import Testing

@Suite(.timeLimit(.minutes(20))) struct SurfaceTests {
    @Test("Code with every call of the SDK compiles without a warning", arguments: SwiftCompiler.LanguageMode.allCases)
    func compiles(mode: SwiftCompiler.LanguageMode) throws {
        let compiler = SwiftCompiler()
        let source = try String(
            contentsOfFile: "\(compiler.repository)/Tests/UserCodeSwift6Tests/Surface.swift", encoding: .utf8)
        let verdict = try compiler.check(source, mode)
        #expect(verdict.isAccepted, "\(verdict.diagnostics)")
    }

    @Test("The older modules of the SDK bring the same names", arguments: ["Firebase", "FirebaseFirestoreSwift"])
    func olderModules(module: String) throws {
        let needed = module == "Firebase" ? "" : "import FirebaseFirestore\n"
        let verdict = try SwiftCompiler().check(
            """
            \(needed)import \(module)
            func f() -> (Firestore, Timestamp, FirebaseApp?) { (Firestore.firestore(), Timestamp(), FirebaseApp.app()) }
            """)
        #expect(verdict.isAccepted, "\(verdict.diagnostics)")
    }

    @Test("FirebaseCore has the app and Timestamp")
    func core() throws {
        let verdict = try SwiftCompiler().check(
            "import FirebaseCore\nfunc f() -> (Timestamp, FirebaseApp?) { (Timestamp(), FirebaseApp.app()) }")
        #expect(verdict.isAccepted, "\(verdict.diagnostics)")
    }
}
