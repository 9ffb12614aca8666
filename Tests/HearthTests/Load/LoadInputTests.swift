// Inputs that cannot be loaded, and what a load that does not begin leaves: nothing.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import Glibc
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct LoadInputTests {
    private let directory = TemporaryDirectory("input")

    private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = directory.path(of: name)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test
    func `What cannot be loaded is named with its remedy, and leaves no file`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let gzip = try write("c.jsonl.gz", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 10, 1, 2])
        let zstd = try write("c.jsonl.zst", [0x28, 0xB5, 0x2F, 0xFD, 0x24, 0x0A])
        let arrays = try [
            "[2, {}]", "[{", "[{}] {}", "[{},]", "[,{}]", "[#\n]", "[{\"a\":]}]", "[{\"a\":1\n2}]",
        ].enumerated().map { try write("array-\($0).json", Array($1.utf8)) }
        let pretty = try write("pretty.json", Array("{\n  \"a\": 1\n}\n".utf8))
        let bad = try write("bad.jsonl", Array("{\"a\" 1}\n{\"a\":1}\n".utf8))
        let missing = directory.path(of: "missing.jsonl")
        let folder = directory.path
        let before = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        for (file, words) in [
            (missing, "No such file or directory"), (folder, "is a directory"),
            (gzip, "damaged"), (zstd, "zstdcat \(zstd) | hearth load"),
            (arrays[0], ":1: "), (arrays[1], "has no end"), (arrays[2], "more after"),
            (arrays[3], ":2: expected a value"),
            (arrays[4], ":1: expected a value"), (arrays[5], ":1: expected a value"), (arrays[6], ":1: "),
            (arrays[7], ":1: "),
            (pretty, "jq -c . \(pretty) | hearth load"),
            (bad, "\(bad):1: "),
        ] {
            let load = ["load", file, "--collection", "c", "--address", "127.0.0.1:\(server.port)"]
            let outcome = try HearthBinary.run(load)
            expect(outcome.status == 1 && outcome.errors.contains(words), "\(file): \(outcome.errors)")
            expect(!outcome.errors.contains("--resume"), "\(outcome.errors)")
            if file == missing || file == folder || file == gzip {
                let skipping = try HearthBinary.run(load + ["--skip-bad", directory.path(of: "skipped")])
                expect(skipping.status == 1 && skipping.errors.contains(words), "\(skipping.errors)")
            }
            let after = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
            expectEqual(after, before, "\(file)")
        }
        expectEqual(server.stop(), 0)
    }

    /// The text in a gzip file (RFC 1952) with a stored block (RFC 1951).
    private static func gzip(of text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var crc: UInt32 = ~0
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        func little(_ number: UInt32, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
        }
        let count = UInt32(bytes.count)
        return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1] + little(count, 2) + little(~count, 2) + bytes + little(~crc, 4)
            + little(count, 4)
    }

    @Test
    func `A pipe with a path is read once`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let lines = try write("lines", Array("{\"n\":1}\n{\"n\":2}\n".utf8))
        let table = try write("table", Array("n\n1\n".utf8))
        func load(_ file: String, _ flags: String) throws -> HearthBinary.Outcome {
            let load = "'\(HearthBinary.path)' load --address 127.0.0.1:\(server.port) --collection c"
            return try HearthBinary.run(["-c", "\(load) <(cat '\(file)') \(flags)"], executable: "/bin/bash")
        }
        let loaded = try load(lines, "")
        expect(loaded.status == 0 && loaded.output.hasPrefix("loaded 2 documents"), "\(loaded)")
        try expect(load(lines, "--resume").errors.contains("cannot be read again"))
        try expect(load(table, "--csv").errors.contains("--types is missing"))
        let typed = try load(table, "--csv --types n:integer")
        expect(typed.status == 0 && typed.output.contains("loaded 1 document"), "\(typed)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Compressed files and arrays are loaded, in any style, from pipes, and resumed`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let lines = (0..<900).map { #"{"__name__":"d\#($0)","n":\#($0),"s":"[,]{\"\\"}"# }
        let text = lines.joined(separator: "\n") + "\n"
        let pretty =
            "\r\n[" + lines.map { $0.replacing(",", with: " ,\n\t", maxReplacements: 1) }.joined(separator: ",\n")
            + "\n]\n"
        // Two members: RFC 1952 allows several.
        let half = text.utf8.count / 2
        let halves = [
            String(decoding: Array(text.utf8.prefix(half)), as: UTF8.self),
            String(decoding: Array(text.utf8.dropFirst(half)), as: UTF8.self),
        ]
        let files = [
            "plain": Array(text.utf8), "gz": Self.gzip(of: halves[0]) + Self.gzip(of: halves[1]),
            "array": Array(pretty.utf8), "array-gz": Self.gzip(of: pretty),
            // With byte order marks.
            "mark": Array("\u{FEFF}\(text)".utf8), "mark-array": Array("\u{FEFF}\(pretty)".utf8),
            "mark-gz": Self.gzip(of: "\u{FEFF}\(text)"),
            "padded-gz": Self.gzip(of: text) + [UInt8](repeating: 0, count: 100_000),
        ]
        for (name, bytes) in files {
            let file = try write(name, bytes)
            let base = ["load", "--collection", name, "--address", "127.0.0.1:\(server.port)"]
            let loaded = try HearthBinary.run(base + [file])
            expect(loaded.status == 0 && loaded.output.hasPrefix("loaded 900 documents"), "\(name): \(loaded)")
            let piped = try HearthBinary.run(base + ["-"], input: file)
            expect(piped.status == 0 && piped.output.hasPrefix("loaded 900 documents"), "\(name): \(piped)")
            let exported = try HearthBinary.run([
                "export", "--quiet", "--collection", name, "--address", "127.0.0.1:\(server.port)",
            ])
            expectEqual(Set(exported.output.split(separator: "\n").map(String.init)), Set(lines), "\(name)")
        }
        // One that ends in the middle.
        let cut = try write("cut", Array(Self.gzip(of: text).dropLast(9)))
        let early = try HearthBinary.run(["load", "--collection", "cut", "--address", "127.0.0.1:\(server.port)", cut])
        expect(early.status == 1 && early.errors.contains("ends too early"), "\(early)")
        let longer = try write("longer", Self.gzip(of: text) + [0, 0x42])
        let more = try HearthBinary.run([
            "load", "--collection", "cut", "--address", "127.0.0.1:\(server.port)", longer,
        ])
        expect(more.status == 1 && more.errors.contains("bytes after its compressed data"), "\(more)")
        // An array with a bad element, which is corrected.
        var elements = lines
        elements[700] = #"{"n":}"#
        let file = try write("bad", Array(("[" + elements.joined(separator: ",\n") + "]").utf8))
        let base = ["load", "--collection", "bad", "--address", "127.0.0.1:\(server.port)", file]
        let failed = try HearthBinary.run(base)
        expect(failed.status == 1 && failed.errors.contains("bad:701: "), "\(failed)")
        _ = try write("bad", Array(("[" + lines.joined(separator: ",\n") + "]").utf8))
        let resumed = try HearthBinary.run(base + ["--resume"])
        expect(resumed.status == 0 && resumed.output.hasPrefix("loaded 200 documents"), "\(resumed)")
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: ["plain", "gz", "array"])
    func `A load that is resumed has the chunks of the load before`(form: String) throws {
        var random = SeededGenerator(seed: 7)
        let lines = (0..<6_000).map { number in
            let text = String(repeating: "x", count: number % 2_500 == 2_499 ? 1_500_000 : random.below(300))
            return #"{"n":\#(number),"s":"\#(text)"}"#
        }
        let text = lines.joined(separator: "\n")
        var bytes = Array(text.utf8)
        if form == "array" { bytes = Array("[\(lines.joined(separator: ",\r\n"))]".utf8) }
        if form == "gz" {
            bytes = stride(from: 0, to: bytes.count, by: 65_000).flatMap { start in
                Self.gzip(of: String(decoding: bytes[start..<min(start + 65_000, bytes.count)], as: UTF8.self))
            }
        }
        let path = try write(form, bytes)
        func chunks(_ start: (offset: Int, line: Int)) throws -> [Chunk] {
            let reader = try ChunkReader(path: path, offset: start.offset, lineNumber: start.line)
            var chunks: [Chunk] = []
            while let chunk = try reader.next() { chunks.append(chunk) }
            return chunks
        }
        let all = try chunks((0, 0))
        expect(all.count >= 3)
        expectEqual(String(decoding: all.flatMap(\.bytes), as: UTF8.self), text + (form == "array" ? "\n" : ""))
        for (index, chunk) in all.enumerated() {
            let rest = try chunks((chunk.offset, chunk.firstLine - 1))
            expectEqual(rest.map(\.offset), all[index...].map(\.offset), "chunk \(index)")
            expectEqual(rest.map(\.firstLine), all[index...].map(\.firstLine), "chunk \(index)")
            expectEqual(rest.map(\.bytes), all[index...].map(\.bytes), "chunk \(index)")
        }
    }

    @Test(arguments: ["plain", "array"])
    func `Lines that are too long are put aside, and what comes after them is loaded`(form: String) throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let long = "{\"s\":\"\(String(repeating: "x", count: 17 << 20))\"}"
        let lines = [#"{"__name__":"a"}"#, long, #"{"__name__":"b"}"#, long]
        func write(_ lines: [String]) throws -> String {
            let text = form == "array" ? "[\(lines.joined(separator: ",\n"))]" : lines.joined(separator: "\n")
            return try self.write(form, Array(text.utf8))
        }
        let path = try write(lines)
        let base = ["load", "--address", "127.0.0.1:\(server.port)", "--collection"]
        let aside = directory.path(of: "aside")
        for (collection, input) in [("files", path), ("pipes", "-")] {
            let loaded = try HearthBinary.run(base + [collection, "--skip-bad", aside, input], input: path)
            expect(loaded.status == 0 && loaded.output.hasPrefix("loaded 2 documents"), "\(loaded)")
            expect(loaded.output.contains("2 invalid lines"), "\(loaded)")
        }
        let text = try String(contentsOfFile: aside, encoding: .utf8)
        expect(text.contains("# \(path):2: the line is longer than 16 MiB\n"))
        expect(text.contains(":4: the line is longer than 16 MiB\n") && text.utf8.count < 1_000)
        // A load that stops there continues when the line is mended.
        let stopped = try HearthBinary.run(base + ["stops", path])
        expect(stopped.status == 1 && stopped.errors.contains("\(path):2: the line is longer than 16 MiB"))
        _ = try write([lines[0], #"{"__name__":"c"}"#, lines[2]])
        let resumed = try HearthBinary.run(base + ["stops", path, "--resume"])
        expect(resumed.status == 0 && resumed.output.hasPrefix("loaded 2 documents"), "\(resumed)")
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: ["plain", "array"])
    func `A load that is resumed after a line that is too long has the chunks of the load before`(form: String) throws {
        let long = String(repeating: "x", count: 17 << 20)
        let lines = ["1", long, "2", "3", long]
        let text = form == "array" ? "[\(lines.joined(separator: ","))]" : lines.joined(separator: "\n")
        let path = try write(form, Array(text.utf8))
        func chunks(_ start: (offset: Int, line: Int)) throws -> [[Int]] {
            let reader = try ChunkReader(
                path: path, offset: start.offset, lineNumber: start.line, mayHaveBadLines: true)
            var chunks: [[Int]] = []
            while let chunk = try reader.next() {
                chunks.append([chunk.offset, chunk.firstLine, chunk.bytes.count, chunk.longLineBytes])
            }
            return chunks
        }
        let all = try chunks((0, 0))
        expectEqual(all.map { $0[1] }, [1, 2, 3, 5])
        let after = form == "array" ? 1 : 0
        let line = long.utf8.count + 1
        expectEqual(all.map { $0[3] }, [0, line, 0, line - 1 + after])
        for index in 1...2 {
            try expectEqual(chunks((all[index][0], all[index][1] - 1)), Array(all[index...]), "chunk \(index)")
        }
    }

    @Test
    func `Only what is wrong with a document itself puts it aside`() throws {
        var batch = LoadBatch(database: try DatabaseName(project: "p"), end: WindowPlace(documents: 3))
        batch.lines = [7, 8, 9]
        func outcome(_ codes: [StatusCode]) -> Result<LoadBatch, Loader.BatchFailure> {
            Loader.outcome(of: batch, codes.map { StatusMessage(code: $0, message: "why") })
        }
        if case .failure = outcome([.ok, .ok, .ok]) { Issue.record("all documents are stored") }
        guard case .failure(.refused(let refused, let same)) = outcome([.ok, .invalidArgument, .ok]) else {
            Issue.record("a document is refused")
            return
        }
        expect(refused.map(\.line) == [8] && refused.map(\.reason) == ["why"] && same.end == batch.end)
        for code in [StatusCode.resourceExhausted, .permissionDenied, .unavailable, .aborted, .dataLoss] {
            guard case .failure(.failed(let error)) = outcome([.invalidArgument, code, .ok]) else {
                Issue.record("\(code) says nothing about a document")
                continue
            }
            expect(error.code == code && error.message == "why")
        }
    }

    @Test
    func `A load that fails does not wait for what a pipe has not brought`() throws {
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let text =
            "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { allow write: if false; } } }"
        let rules = try write("rules", Array(text.utf8))
        try expectEqual(HearthBinary.run(["rules", "apply", rules, "--data", data]).status, 0)
        let pipe = directory.path(of: "pipe")
        expectEqual(mkfifo(pipe, 0o600), 0)
        // The test reads too, so that the pipe has no end.
        let descriptor = open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        expect(descriptor >= 0)
        defer { close(descriptor) }
        let load = ["load", "--collection", "c", "--address", "127.0.0.1:\(server.port)", "-"]
        let loading = HearthProcess(load, input: pipe)
        try loading.start()
        let line = Array("{\"s\":\"\(String(repeating: "x", count: 1_000))\"}\n".utf8)
        var rest = (0..<1_500).flatMap { _ in line }[...]
        try waitUntil("the load ends") {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, min($0.count, 4_096)) }
            rest = rest.dropFirst(max(count, 0))
            return !loading.isRunning
        }
        loading.waitForEnd()
        expect(loading.status == 1 && loading.errors.contains("refused a batch"), "\(loading.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An interrupted load does not continue in a file that has changed before its place`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        var lines = (0..<700).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }
        func write(_ lines: some Sequence<String>) throws -> String {
            try self.write("in.jsonl", Array(lines.map { $0 + "\n" }.joined().utf8))
        }
        let bad = lines[..<600] + ["{"] + lines[601...]
        let base = ["load", "--collection", "c", "--address", "127.0.0.1:\(server.port)", try write(bad)]
        try expectEqual(HearthBinary.run(base).status, 1)
        _ = try write(lines[..<100])
        let shorter = try HearthBinary.run(base + ["--resume"])
        expect(shorter.status == 1 && shorter.errors.contains("in.jsonl is shorter than before"), "\(shorter)")
        lines[0] = #"{"__name__":"d0","n":1000000}"#
        _ = try write(lines)
        let moved = try HearthBinary.run(base + ["--resume"])
        expect(moved.status == 1 && moved.errors.contains("no line begins at byte"), "\(moved)")
        lines[0] = #"{"__name__":"d0","n":0}"#
        _ = try write(lines)
        let resumed = try HearthBinary.run(base + ["--resume"])
        expect(resumed.status == 0 && resumed.output.hasPrefix("loaded 100 documents"), "\(resumed)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An interrupted load of an array does not continue within an element`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        var elements = (0..<700).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }
        func write(_ elements: some Sequence<String>) throws -> String {
            try self.write("in.json", Array("[\(elements.joined(separator: ","))]".utf8))
        }
        let bad = elements[..<600] + [#"{"a":]}"#] + elements[601...]
        let base = ["load", "--collection", "c", "--address", "127.0.0.1:\(server.port)", try write(bad)]
        try expectEqual(HearthBinary.run(base).status, 1)
        elements[0] = #"{"__name__":"d0","n":1000000}"#
        _ = try write(elements)
        let moved = try HearthBinary.run(base + ["--resume"])
        expect(moved.status == 1 && moved.errors.contains("no line begins at byte"), "\(moved)")
        elements[0] = #"{"__name__":"d0","n":0}"#
        _ = try write(elements)
        let resumed = try HearthBinary.run(base + ["--resume"])
        expect(resumed.status == 0 && resumed.output.hasPrefix("loaded 100 documents"), "\(resumed)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Bad lines that were put aside before an interruption are not put aside again`() throws {
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let rules = ["if false", "if true"].map { condition in
            "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { allow write: \(condition); } } }"
        }
        func apply(_ text: String) throws {
            let file = try write("rules", Array(text.utf8))
            try expectEqual(HearthBinary.run(["rules", "apply", file, "--data", data]).status, 0)
        }
        try apply(rules[0])
        let file = try write("in.jsonl", Array("nonsense\n{\"__name__\":\"a\"}\n".utf8))
        let aside = directory.path(of: "aside")
        let load = [
            "load", "--collection", "c", "--address", "127.0.0.1:\(server.port)", "--skip-bad", aside, file,
        ]
        let refused = try HearthBinary.run(load)
        expect(refused.status == 1 && refused.errors.contains("--resume"), "\(refused)")
        try apply(rules[1])
        let resumed = try HearthBinary.run(load + ["--resume"])
        expect(resumed.status == 0 && resumed.output.contains("1 invalid lines"), "\(resumed)")
        let text = try String(contentsOfFile: aside, encoding: .utf8)
        expectEqual(text.components(separatedBy: "nonsense").count, 2, "\(text)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `What export writes of all databases loads again, with everything below missing documents`() throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        func run(_ server: ServerProcess, _ words: String..., input: String? = nil) throws -> HearthBinary.Outcome {
            try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)"], input: input)
        }
        for database in ["(default)", "second"] {
            let lines = (0..<600).map { #"{"__name__":"d\#($0)","r":{"$reference":"c/d0"},"db":"\#(database)"}"# }
            let text = lines.joined(separator: "\n") + "\n" + #"{"__name__":"none/deep/x"}"#
            let file = try write("in", Array(text.utf8))
            try expectEqual(run(source, "load", "--collection", "c", "--database", database, file).status, 0)
        }
        let other = try write("other", Array(#"{"a":1}"#.utf8))
        try expectEqual(run(source, "load", "--collection", "c", "--project", "other", other).status, 0)

        let parts = try ["(default)", "second"].map { database in
            let exported = try run(source, "export", "--all", "--database", database)
            expect(exported.status == 0 && exported.errors.contains("exported 601 documents"), "\(exported)")
            return exported.output
        }
        // Databases and collections in no order.
        let mixed = parts.joined().split(separator: "\n").sorted {
            $0.reversed().lexicographicallyPrecedes($1.reversed())
        }
        let all = try write("all.jsonl", Array(mixed.joined(separator: "\n").utf8))
        let target = try ServerProcess(data: directory.path(of: "target"))
        let loaded = try run(target, "load", all)
        expect(loaded.status == 0 && loaded.output.hasPrefix("loaded 1,202 documents"), "\(loaded)")
        for (database, part) in zip(["(default)", "second"], parts) {
            try expectEqual(run(target, "export", "--all", "--quiet", "--database", database).output, part)
        }
        try expectEqual(run(target, "get", "c/none/deep/x", "--database", "second").status, 0)
        try expect(run(target, "load", other).errors.contains("no __name__"))
        try expectEqual(run(target, "load", all, "--project", "p").status, 2)
        try expectEqual(run(target, "export").status, 2)
        expect(source.stop() == 0 && target.stop() == 0)
    }

    @Test
    func `A first line is taken for what it is`() {
        func remedy(_ text: String, mayHaveBadLines: Bool = false) -> String? {
            InputKind.remedy(for: Array(text.utf8), path: "-", mayHaveBadLines: mayHaveBadLines)
        }
        expectNil(remedy("{\"a\":1}\n"))
        expectNil(remedy(""))
        expectNil(remedy("# [comment]\n{\"a\":1}\n"))
        expectNil(remedy("{}\n"))
        expect(InputKind.isArray(Array(" \n[".utf8)))
        expect(!InputKind.isArray(Array("{\"a\":[".utf8)))
        expectEqual(remedy("{ \r\n")?.contains("several lines"), true)
    }
}
