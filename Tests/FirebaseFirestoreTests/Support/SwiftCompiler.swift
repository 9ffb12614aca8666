// The compiler as users run it: source text against the modules that were built with the tests.

import Foundation
import TestSupport

/// Compiles programs in a separate directory. Warnings are errors.
struct SwiftCompiler {
    enum LanguageMode: String, CaseIterable {
        case v5 = "5"
        case v6 = "6"
    }

    /// What the compiler said, and whether it was content.
    struct Outcome {
        var isAccepted: Bool
        var diagnostics: String

        /// The errors in a line of the program, from 1; empty if there are none.
        func errors(line: Int) -> String {
            diagnostics.split(separator: "\n").filter { $0.contains(".swift:\(line):") && $0.contains(": error: ") }
                .joined(separator: "\n")
        }
    }

    let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path
    private let directory = TemporaryDirectory("compiler")
    private let build = HearthBinary.buildDirectory

    /// Checks a program of one file.
    ///
    /// - Parameter isScript: whether the file is a `main.swift`, whose statements run from the top.
    func check(_ source: String, _ mode: LanguageMode = .v6, isScript: Bool = false) throws -> Outcome {
        try compile([source], mode, isScript: isScript, ["-typecheck"])
    }

    /// Checks the files of a module. The values that fragments make to show them may be used no further.
    func check(fragments: [String], _ mode: LanguageMode) throws -> Outcome {
        let options = ["-whole-module-optimization", "-typecheck", "-no-warnings-as-errors"]
        var outcome = try compile(fragments, mode, options)
        let warnings = outcome.diagnostics.split(separator: "\n").filter { $0.contains(": warning: ") }
        outcome.isAccepted = outcome.isAccepted && warnings.allSatisfy { $0.contains("never used") }
        return outcome
    }

    /// Checks a program of one file, in which warnings are only reported.
    func checkWithWarnings(_ source: String, _ mode: LanguageMode) throws -> Outcome {
        try compile([source], mode, ["-typecheck", "-no-warnings-as-errors"])
    }

    /// Makes an executable of a program with an `@main` type.
    func executable(_ source: String) throws -> (outcome: Outcome, path: String) {
        let path = directory.path(of: "program")
        let modules = [
            "TypedFirestore", "FirebaseFirestore", "FirebaseCore", "HearthClient", "InProcess", "FirestoreService",
            "Listening", "Pipelines", "Expressions", "DocumentStore", "ClientCache", "WriteEngine", "QueryEngine",
            "Indexing", "TextAnalysis", "StoreFormat", "Archive", "StorageEngines", "MemoryEngine", "EmbeddedEngine",
            "CommitLog", "FileSystem",
            "Storage", "DocumentCoding", "DocumentModel", "DocumentJSON",
            "FirestoreJSON", "FirestoreMessages", "NativeProtocol", "Connections", "EventLoops", "Calls", "TLS",
            "Basics",
            "CFirestoreProto", "System/CRE2", "System/CText",
        ]
        let objects = try modules.flatMap { module in
            let folder = "\(build)/\((module as NSString).lastPathComponent).build"
            // Objects of sources that were renamed or removed stay in the build folder.
            let sources = try FileManager.default.subpathsOfDirectory(atPath: "\(repository)/Sources/\(module)")
            let names = Set(sources.map { "\(($0 as NSString).lastPathComponent).o" })
            return try FileManager.default.subpathsOfDirectory(atPath: folder)
                .filter { names.contains(($0 as NSString).lastPathComponent) }.map { "\(folder)/\($0)" }
        }
        let libraries = ["protobuf-c", "lmdb", "xxhash", "crypto", "ssl", "re2", "stdc++"]
        // The linker of the compiler's own package takes a fifth of the time.
        let options = ["-use-ld=lld", "-o", path] + libraries.map { "-l\($0)" }
        return (try compile([source], .v6, objects + options), path)
    }

    private func compile(
        _ sources: [String], _ mode: LanguageMode, isScript: Bool = false, _ arguments: [String]
    ) throws -> Outcome {
        let files = sources.indices.map { directory.path(of: isScript ? "main.swift" : "Program\($0).swift") }
        for (source, file) in zip(sources, files) {
            try source.write(toFile: file, atomically: true, encoding: .utf8)
        }
        var all = ["swiftc"] + files
        all += ["-swift-version", mode.rawValue, "-warnings-as-errors", "-I", "\(build)/Modules"]
        let system = "\(repository)/Sources/System"
        for library in try FileManager.default.contentsOfDirectory(atPath: system) {
            // The module map of a target with C sources is in its folder `include`.
            all += ["-I", "\(system)/\(library)", "-I", "\(system)/\(library)/include"]
        }
        all += ["-I", "\(repository)/Sources/CFirestoreProto/include"]
        if !isScript { all.append("-parse-as-library") }
        let process = HearthProcess(all + arguments, executable: "/usr/bin/env")
        try process.start()
        process.waitForEnd()
        return Outcome(isAccepted: process.status == 0, diagnostics: process.errors + process.output)
    }
}
