// Inputs that cannot be loaded, and what a load that does not begin leaves: nothing.

import Foundation
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
        let array = try write("array.json", Array("\n [{\"a\":1},\n{\"a\":2}]\n".utf8))
        let pretty = try write("pretty.json", Array("{\n  \"a\": 1\n}\n".utf8))
        let bad = try write("bad.jsonl", Array("{\"a\" 1}\n{\"a\":1}\n".utf8))
        let missing = directory.path(of: "missing.jsonl")
        let folder = directory.path
        let before = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        for (file, words) in [
            (missing, "No such file or directory"), (folder, "is a directory"),
            (gzip, "zcat \(gzip) | hearth load --collection PATH -"), (zstd, "zstdcat \(zstd) | hearth load"),
            (array, "jq -c '.[]' \(array) | hearth load"), (pretty, "jq -c . \(pretty) | hearth load"),
            (bad, "\(bad):1: "),
        ] {
            let load = ["load", file, "--collection", "c", "--address", "127.0.0.1:\(server.port)"]
            let outcome = try HearthBinary.run(load)
            #expect(outcome.status == 1 && outcome.errors.contains(words), "\(file): \(outcome.errors)")
            #expect(!outcome.errors.contains("--resume"), "\(outcome.errors)")
            if file == missing || file == folder || file == gzip {
                let skipping = try HearthBinary.run(load + ["--skip-bad", directory.path(of: "skipped")])
                #expect(skipping.status == 1 && skipping.errors.contains(words), "\(skipping.errors)")
            }
            let after = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
            #expect(after == before, "\(file)")
        }
        #expect(server.stop() == 0)
    }

    @Test
    func `A first line is taken for what it is`() {
        func remedy(_ text: String, mayHaveBadLines: Bool = false) -> String? {
            InputKind.remedy(for: Array(text.utf8), path: "-", mayHaveBadLines: mayHaveBadLines)
        }
        #expect(remedy("{\"a\":1}\n") == nil)
        #expect(remedy("") == nil)
        #expect(remedy("# [comment]\n{\"a\":1}\n") == nil)
        #expect(remedy("{}\n") == nil)
        #expect(remedy("[1]\n", mayHaveBadLines: true) == nil)
        #expect(remedy("[1]\n")?.contains("standard input is a JSON array") == true)
        #expect(remedy("{ \r\n")?.contains("several lines") == true)
    }
}
