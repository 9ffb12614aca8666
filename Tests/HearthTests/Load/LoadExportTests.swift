// `hearth load` and `hearth export` against a real server: every type there and back, bad lines, interrupted loads.

import DocumentModel
import Foundation
import HearthClient
import TestSupport
import Testing

@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(20)))
struct LoadExportTests {
    private let directory = TemporaryDirectory("hearth-load-export")

    private func write(_ name: String, _ lines: [String]) throws -> String {
        let path = directory.path(of: name)
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func load(_ server: ServerProcess, _ file: String, _ arguments: String...) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["load", "--address", "127.0.0.1:\(server.port)", "--quiet"] + arguments + [file])
    }

    private func export(_ server: ServerProcess, _ collection: String, _ arguments: String...) throws -> String {
        let outcome = try HearthBinary.run(
            ["export", "--address", "127.0.0.1:\(server.port)", "--collection", collection, "--quiet"] + arguments)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        return outcome.output
    }

    @Test
    func `A page of documents is bounded by their bytes, also where large ones follow small ones`() async throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let large = String(repeating: "x", count: 900_000)
        let lines = (0..<140).map { number in
            #"{"__name__":"d\#(100 + number)","text":"\#(number < 100 || number > 130 ? "" : large)"}"#
        }
        try expectEqual(load(server, try write("sizes.jsonl", lines), "--collection", "c").status, 0)
        let client = try HearthClient(
            HearthClient.Configuration(host: server.host, port: UInt16(server.port)))
        let database = try DatabaseName(project: "hearth")
        var reader = try await SubtreeReader(client, .database(database))
        var names: [String] = []
        while true {
            let page = try await reader.next()
            if page.isEmpty { break }
            let bytes = page.reduce(0) { $0 + $1.content.fields.count }
            expect(bytes <= 2 * SubtreeReader.pageBytes + Limits.documentBytes, "after \(names.count) documents")
            names += page.map(\.name)
        }
        expectEqual(names, (0..<140).map { "\(database.documentsRoot)/c/d\(100 + $0)" })
        await client.close()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `What export writes loads again to the same bytes, every type of it`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let types =
            #"{"__name__":"types","a":null,"b":true,"c":-5,"d":2.0,"e":{"$double":"NaN"},"f":"é\n","#
            + #""g":{"$bytes":"AAEC"},"h":{"$timestamp":"2026-01-31T12:00:00.5Z"},"i":{"$reference":"x/y"},"#
            + #""j":{"$geoPoint":[1.5,-2.0]},"k":[1,{"l":[]}],"m":{"$map":{"$bytes":1}},"n":{"$vector":[0.5,1.0]}}"#
        var lines = [types, #"{"__name__":"types/sub/deep","n":1}"#]
        for number in 0..<1500 {
            lines.append(
                #"{"__name__":"d\#(number)","n":\#(number),"text":"\#(String(repeating: "x", count: number % 300))"}"#)
        }
        let outcome = try load(server, try write("in.jsonl", lines), "--collection", "a")
        expect(outcome.status == 0 && outcome.output.hasPrefix("loaded 1,502 documents"), "\(outcome)")

        let first = try export(server, "a", "--recursive")
        expectEqual(first.split(separator: "\n").count, 1502)
        expect(
            first.contains(
                #""a":null,"b":true,"c":-5,"d":2.0,"e":{"$double":"NaN"},"f":"é\n","g":{"$bytes":"AAEC"},"#
                    + #""h":{"$timestamp":"2026-01-31T12:00:00.500Z"}"#
            ))
        try expectEqual(export(server, "a").split(separator: "\n").count, 1501)
        let copy = try write("copy.jsonl", [String(first.dropLast())])
        try expectEqual(load(server, copy, "--collection", "b/c/d").status, 0)
        try expectEqual(export(server, "b/c/d", "--recursive"), first)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A bad line stops the load with its number and reason; the lines before it are stored; --resume continues`()
        throws
    {
        let server = try ServerProcess(data: directory.path(of: "data"))
        var lines = (0..<700).map { #"{"n":\#($0)}"# }
        lines[600] = #"{"n":}"#
        let file = try write("bad.jsonl", lines)
        let failed = try load(server, file, "--collection", "c")
        expect(failed.status == 1 && failed.errors.contains("bad.jsonl:601: expected a value (column 6)"), "\(failed)")
        try expectEqual(export(server, "c").split(separator: "\n").count, 600)

        let again = try load(server, file, "--collection", "c")
        expect(again.status == 1 && again.errors.contains("--resume"), "\(again)")
        // Gone on with while the line is as bad as it was: it is the first one now.
        let still = try load(server, file, "--collection", "c", "--resume")
        expect(still.status == 1 && still.errors.contains("bad.jsonl:601: expected a value (column 6)"), "\(still)")
        lines[600] = #"{"n":1}"#
        _ = try write("bad.jsonl", lines)
        let resumed = try load(server, file, "--collection", "c", "--resume")
        expect(resumed.status == 0 && resumed.output.hasPrefix("loaded 100 documents"), "\(resumed)")
        try expectEqual(export(server, "c").split(separator: "\n").count, 700)
        expect(!FileManager.default.fileExists(atPath: file + ".hearth-load"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An export takes the place of a file when it is complete; one that fails leaves the file as it was`() throws {
        let file = directory.path(of: "kept.jsonl")
        try Data("before\n".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        let link = directory.path(of: "link.jsonl")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
        let server = try ServerProcess(data: directory.path(of: "kept"))
        let flags = ["--collection", "c", "--quiet", "--output", link]
        // Nothing listens there.
        let failed = try HearthBinary.run(["export", "--address", "127.0.0.1:9", "--timeout", "10ms"] + flags)
        expectEqual(failed.status, 1, "\(failed)")
        try expectEqual(String(contentsOfFile: file, encoding: .utf8), "before\n")
        let line = "{\"__name__\":\"x\",\"n\":1}\n"
        let lines = directory.path(of: "lines")
        try Data(line.utf8).write(to: URL(fileURLWithPath: lines))
        let address = ["--address", "127.0.0.1:\(server.port)"]
        try expectEqual(HearthBinary.run(["load", "--collection", "c", "--quiet", lines] + address).status, 0)
        try expectEqual(HearthBinary.run(["export"] + address + flags).status, 0)
        try expectEqual(String(contentsOfFile: file, encoding: .utf8), line)
        try expectEqual(FileManager.default.destinationOfSymbolicLink(atPath: link), file)
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        expectEqual(mode, 0o600)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        expect(!names.contains { $0.hasSuffix(".new") }, "\(names)")
        // A device has no place that another file could take.
        try expectEqual(HearthBinary.run(["export"] + address + flags.dropLast() + ["/dev/null"]).status, 0)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An export leaves a file as it was if the disk has no room for another one`() throws {
        let disk = try TemporaryDisk(megabytes: 1, filesMax: 1)
        let file = disk.path(of: "kept.jsonl")
        try Data("before\n".utf8).write(to: URL(fileURLWithPath: file))
        let outcome = try HearthBinary.run([
            "export", "--collection", "c", "--output", file, "--address", "127.0.0.1:9", "--timeout", "10ms",
        ])
        expect(outcome.status == 1 && outcome.errors.contains("No space left on device"), "\(outcome)")
        try expectEqual(String(contentsOfFile: file, encoding: .utf8), "before\n")
    }

    @Test
    func `A collection whose id is as long as ids may be is exported and deleted with all below it`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let names = (10..<50).flatMap { ["d\($0)", "d\($0)/sub/x"] }
        let lines = try write("in.jsonl", names.map { #"{"__name__":"\#($0)"}"# })
        let short = String(repeating: "c", count: 1_499)
        let collections = [short, short + "c", short + "d"]
        for collection in collections { try expectEqual(load(server, lines, "--collection", collection).status, 0) }
        let text = try export(server, short, "--recursive")
        expectEqual(text.split(separator: "\n").count, names.count)
        for collection in collections {
            try expectEqual(export(server, collection, "--recursive"), text)
            try expectEqual(export(server, collection).split(separator: "\n").count, names.count / 2)
        }
        let deleted = try HearthBinary.run([
            "delete", "--recursive", collections[1], "--yes", "--address", "127.0.0.1:\(server.port)",
        ])
        expectEqual(deleted.status, 0, "\(deleted)")
        for collection in collections {
            try expectEqual(export(server, collection, "--recursive"), collection == collections[1] ? "" : text)
        }
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: [6_116, 6_117, 6_118, 6_135, 6_136, 6_137, 6_142])
    func `A collection whose path leaves room for short ids alone is exported`(pathBytes: Int) throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let documents = "projects/hearth/databases/(default)/documents/"
        // Ids of at most 1,500 bytes: c/d/c/d/... and a last one that fills the path.
        var path = String(repeating: String(repeating: "c", count: 1_499) + "/d/", count: 3)
        let rest = pathBytes - documents.utf8.count - path.utf8.count
        path += String(repeating: "e", count: rest - 3 - 300) + "/d/" + String(repeating: "f", count: 300)
        // The least ids that have room, and another.
        let room = 6_144 - pathBytes - 1
        let number = room >= 8 ? "__id-\(String(repeating: "9", count: min(room - 7, 18)))__" : "__id1__"
        let names = (room >= 7 ? [number] : []) + ["x"]
        let file = try write("in.jsonl", names.map { #"{"__name__":"\#($0)"}"# })
        try expectEqual(load(server, file, "--collection", path).status, 0)
        let text = try export(server, path, "--recursive")
        expectEqual(text.split(separator: "\n").count, names.count)
        try expectEqual(export(server, path), text)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A document that replaces a refused one before a load is resumed is stored, whatever its name`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        var lines = (1_000..<2_200).map { #"{"__name__":"d\#($0)"}"# }
        // The server refuses so many index entries.
        lines[700] = #"{"__name__":"d1700","n":[\#((0..<45_000).map { "\($0)" }.joined(separator: ","))]}"#
        let failed = try load(
            server, try write("in.jsonl", lines), "--collection", "c", "--in-flight", "1")
        expect(failed.status == 1 && failed.errors.contains("--resume"), "\(failed)")
        try expect(export(server, "c").split(separator: "\n").count >= 500)
        // Another document is in its place, which comes first in the order of names.
        lines[700] = #"{"__name__":"a/b/x"}"#
        let resumed = try load(server, try write("in.jsonl", lines), "--collection", "c", "--resume")
        expectEqual(resumed.status, 0, "\(resumed)")
        let stored = try export(server, "c", "--recursive").split(separator: "\n").map(String.init)
        expectEqual(stored, lines.sorted())
        expectEqual(server.stop(), 0)
    }

    @Test
    func `What the server refuses counts as invalid and not as loaded`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        // The server refuses so many index entries.
        let many = (0..<45_000).map { "\($0)" }.joined(separator: ",")
        let lines = [#"{"__name__":"a"}"#, #"{"__name__":"b","n":[\#(many)]}"#, "nonsense", #"{"__name__":"c"}"#]
        let aside = directory.path(of: "aside")
        let outcome = try load(server, try write("in.jsonl", lines), "--collection", "c", "--skip-bad", aside)
        expect(outcome.status == 0 && outcome.output.hasPrefix("loaded 2 documents"), "\(outcome)")
        expect(outcome.output.contains("2 invalid lines"), "\(outcome)")
        try expectEqual(export(server, "c"), "{\"__name__\":\"a\"}\n{\"__name__\":\"c\"}\n")
        try expect(String(contentsOfFile: aside, encoding: .utf8).contains("in.jsonl:2: "))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Bad lines can be put aside, mended and loaded`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let file = try write("some.jsonl", [#"{"id":"a"}"#, "nonsense", #"{"x":1}"#, "", #"{"id":"b"}"#])
        let aside = directory.path(of: "aside.jsonl")
        let outcome = try load(server, file, "--collection", "c", "--id-field", "id", "--skip-bad", aside)
        expect(outcome.status == 0 && outcome.output.contains("2 invalid lines"), "\(outcome)")
        try expectEqual(export(server, "c"), "{\"__name__\":\"a\",\"id\":\"a\"}\n{\"__name__\":\"b\",\"id\":\"b\"}\n")
        let text = try String(contentsOfFile: aside, encoding: .utf8)
        expect(
            text.contains("some.jsonl:2: ") && text.contains("\nnonsense\n") && text.contains("\n{\"x\":1}\n"),
            "\(text)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A load whose server and client are killed half way resumes to every document, each once`() throws {
        var (count, data, file, isHalfWay) = (30_000, "", "", false)
        while !isHalfWay {
            // The load before may have ended when the server had something; this one is longer.
            count *= 2
            data = directory.path(of: "data\(count)")
            file = try write(
                "long\(count).jsonl",
                (0..<count).map { #"{"n":\#($0),"text":"\#(String(repeating: "y", count: 200))"}"# })
            let server = try ServerProcess(data: data)
            let loading = HearthProcess([
                "load", "--address", "127.0.0.1:\(server.port)", "--quiet", "--collection", "c", "--in-flight", "2",
                file,
            ])
            try loading.start()
            while loading.isRunning, try export(server, "c").isEmpty {}
            server.kill()
            loading.signal(9)
            loading.waitForEnd()
            isHalfWay = FileManager.default.fileExists(atPath: "\(file).hearth-load")
        }
        let server = try ServerProcess(data: data)
        let resumed = try load(server, file, "--collection", "c", "--resume")
        expectEqual(resumed.status, 0, "\(resumed)")
        let numbers = try export(server, "c").split(separator: "\n").map { line in
            Int(line.split(separator: "\"n\":")[1].prefix { $0.isNumber }) ?? -1
        }
        expectEqual(numbers.count, count)
        expectEqual(Set(numbers), Set(0..<count))
        expectEqual(server.stop(), 0)
        let check = try HearthBinary.run(["check", "--data", data])
        expectEqual(check.status, 0, "\(check.output)\(check.errors)")
    }
}
