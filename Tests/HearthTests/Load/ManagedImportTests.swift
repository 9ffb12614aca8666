// `hearth export --format managed` and `hearth import` against real servers.

import Basics
import Foundation
import ManagedExport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct ManagedImportTests {
    private let directory = TemporaryDirectory("hearth-managed")

    private func run(_ server: ServerProcess, _ words: String...) throws -> HearthBinary.Outcome {
        try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)", "--quiet"])
    }

    private func lines(_ server: ServerProcess, _ words: String...) throws -> String { try lines(server, words) }

    private func lines(_ server: ServerProcess, _ words: [String]) throws -> String {
        let outcome = try HearthBinary.run(
            ["export", "--address", "127.0.0.1:\(server.port)", "--quiet", "--recursive"] + words)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        return outcome.output
    }

    private func load(_ lines: [String], into server: ServerProcess) throws {
        let file = directory.path(of: "in.jsonl")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        let outcome = try run(server, "load", "--collection", "c", file)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
    }

    /// Documents of every type, some below documents that do not exist.
    private static func documents(_ count: Int) -> [String] {
        let types =
            #"{"__name__":"types","a":null,"b":true,"c":-5,"d":2.0,"e":{"$double":"NaN"},"f":"é\n","#
            + #""g":{"$bytes":"AAEC"},"h":{"$timestamp":"1969-12-31T23:59:59.5Z"},"i":{"$reference":"x/y"},"#
            + #""j":{"$geoPoint":[1.5,-2.0]},"k":[1,{"l":[]}],"m":{"x":{"y":-0.0}},"n":{"$vector":[0.5,1.0]}}"#
        return [types, #"{"__name__":"missing/sub/deep"}"#]
            + (0..<count).map { #"{"__name__":"d\#($0)/posts/p","n":\#($0)}"# }
    }

    private var dataFile: String {
        "export/firestore_export/all_namespaces/all_kinds/output-0"
    }

    @Test
    func `What a managed export holds comes back in another server, with counts by collection`() throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        try load(Self.documents(1_500), into: source)
        let export = directory.path(of: "export")
        let exported = try HearthBinary.run([
            "export", "--format", "managed", "--output", export, "--address", "127.0.0.1:\(source.port)",
        ])
        expect(exported.status == 0 && exported.errors.contains("no create and update times"), "\(exported.errors)")
        expect(exported.errors.contains("exported 1,502 documents"))
        // Never over a folder that is there.
        let again = try run(source, "export", "--format", "managed", "--output", export)
        expect(again.status == 1 && again.errors.contains("name a new folder"), "\(again.errors)")

        let target = try ServerProcess(data: directory.path(of: "target"))
        let imported = try run(target, "import", export)
        expect(imported.status == 0 && imported.errors.isEmpty, "\(imported.errors)")
        expect(imported.output.hasPrefix("imported 1,502 documents"))
        expect(imported.output.contains("\n  c: 1\n  c/*/posts: 1,500\n  c/*/sub: 1\n"), "\(imported.output)")
        let expected = try lines(source, "--collection", "c")
        expectEqual(expected.split(separator: "\n").count, 1_502)
        try expectEqual(lines(target, "--collection", "c"), expected)

        // Into another project, with and without the references of the exported database.
        let moved = try run(target, "import", export, "--project", "p2")
        expect(moved.output.contains("1 references name documents of another database; --map-project"), "\(moved)")
        try expect(lines(target, "--project", "p2", "--collection", "c").contains("projects/hearth/databases"))
        let mapped = try run(target, "import", export, "--project", "p3", "--map-project")
        expect(mapped.status == 0 && !mapped.output.contains("references"), "\(mapped)")
        try expectEqual(lines(target, "--project", "p3", "--collection", "c"), expected)
        // A collection alone.
        let part = directory.path(of: "part")
        let words = ["--format", "managed", "--output", part, "--collection", "c/d7/posts"]
        try expect(lines(source, words).isEmpty)
        try expect(run(target, "import", part, "--project", "p4").output.hasPrefix("imported 1 documents"))
        expect(source.stop() == 0 && target.stop() == 0)
    }

    @Test
    func `Damage stops the import with file and record; what is before it is stored; --resume continues`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        try load(Self.documents(3_000), into: server)
        let export = directory.path(of: "export")
        try expectEqual(run(server, "export", "--format", "managed", "--output", export).status, 0)
        let file = URL(fileURLWithPath: directory.path(of: dataFile))
        let whole = try Data(contentsOf: file)
        var damaged = whole
        damaged[whole.count / 2] ^= 1
        try damaged.write(to: file)

        let failed = try run(server, "import", export, "--project", "other")
        expectEqual(failed.status, 1, "\(failed)")
        expect(failed.errors.contains("output-0: record 1"), "\(failed.errors)")
        expect(failed.errors.contains("the checksum does not match"), "\(failed.errors)")
        let stored = try lines(server, "--project", "other", "--collection", "c").split(separator: "\n").count
        expect(stored > 1_000 && stored < 2_000)
        try expect(run(server, "import", export, "--project", "other").errors.contains("--resume"))
        let elsewhere = try run(server, "import", export, "--project", "third", "--resume")
        expect(elsewhere.status == 1 && elsewhere.errors.contains("projects/other"), "\(elsewhere.errors)")
        let statePath = "\(export).hearth-load"
        let state = try String(contentsOfFile: statePath, encoding: .utf8)
        try state.replacing("\"lines\": ", with: "\"lines\": -").write(
            toFile: statePath, atomically: true, encoding: .utf8)
        let negative = try run(server, "import", export, "--project", "other", "--resume")
        expect(negative.status == 1 && negative.errors.contains("is not the state of a load"), "\(negative.errors)")
        try state.write(toFile: statePath, atomically: true, encoding: .utf8)

        try whole.write(to: file)
        let resumed = try run(server, "import", export, "--project", "other", "--resume")
        expectEqual(resumed.status, 0, "\(resumed)")
        expect(resumed.output.hasPrefix("imported \(ProgressText.grouped(3_002 - stored)) documents"), "\(resumed)")
        let found = try lines(server, "--project", "other", "--collection", "c")
        let expected = try lines(server, "--collection", "c")
        expectEqual(found.replacing("projects/hearth/databases/(default)/documents/", with: ""), expected)
        expect(!FileManager.default.fileExists(atPath: "\(export).hearth-load"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An entity that cannot become a document is named, or noted and left out`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let export = directory.path(of: "export")
        try load(Self.documents(0), into: server)
        try expectEqual(run(server, "export", "--format", "managed", "--output", export).status, 0)
        // An entity without a key, in a log that the metadata does not list.
        var log = LevelDBLogWriter()
        var bytes = ByteBuffer()
        let entity: [UInt8] = [0x20, 0x01]
        log.append(entity.byteSpan, to: &bytes)
        let other = "export/firestore_export/all_namespaces/all_kinds/output-1"
        try Data(bytes.copyBytes()).write(to: URL(fileURLWithPath: directory.path(of: other)))

        let refused = try run(server, "import", export, "--project", "p")
        expect(refused.status == 1 && refused.errors.contains("output-1: record 1: it has no key"), "\(refused)")
        let noted = directory.path(of: "noted")
        let imported = try run(server, "import", export, "--project", "p", "--resume", "--skip-bad", noted)
        expectEqual(imported.status, 0, "\(imported)")
        expect(imported.output.contains("; 1 invalid lines in"), "\(imported)")
        expect(imported.errors.contains("the metadata does not list"), "\(imported)")
        expect(imported.errors.contains("the metadata counts 2 entities, and the files have 3"), "\(imported)")
        let text = try String(contentsOfFile: noted, encoding: .utf8)
        expect(text.contains("output-1: record 1: it has no key"), "\(text)")
        try expectEqual(lines(server, "--project", "p", "--collection", "c").split(separator: "\n").count, 2)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An import fails if the export has fewer documents than its metadata counts`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let export = directory.path(of: "export")
        try load(Self.documents(0), into: server)
        try expectEqual(run(server, "export", "--format", "managed", "--output", export + "/").status, 0)
        let data = URL(fileURLWithPath: "\(export)/firestore_export/all_namespaces/all_kinds/output-0")
        let whole = try Data(contentsOf: data)
        // The first record is a fragment of this length.
        let first = 7 + Int(whole[4]) + Int(whole[5]) << 8
        try whole[..<first].write(to: data)
        let outcome = try run(server, "import", export, "--project", "p")
        expectEqual(outcome.status, 1, "\(outcome)")
        expect(outcome.errors.contains("its metadata counts 2 entities, and its files have 1"), "\(outcome)")
        try expectEqual(lines(server, "--project", "p", "--collection", "c").split(separator: "\n").count, 1)
        expectEqual(server.stop(), 0)
    }
}

private enum ProgressText {
    /// 1234 as 1,234.
    static func grouped(_ number: Int) -> String {
        number < 1_000 ? "\(number)" : "\(number / 1_000),\(String(String(1_000 + number % 1_000).dropFirst()))"
    }
}
