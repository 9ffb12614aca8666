// Tools/demo with programs that only note that they were called.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct DemoTests {
    private let directory = TemporaryDirectory("demo")

    /// A tree with the script, programs that do nothing, and a compiler and a package index that do not exist.
    private func makeTree() throws {
        for folder in ["Tools", ".build/release", "bin"] {
            try FileManager.default.createDirectory(
                atPath: directory.path(of: folder), withIntermediateDirectories: true)
        }
        try FileManager.default.copyItem(
            atPath: Repository.url("Tools/demo").path, toPath: directory.path(of: "Tools/demo"))
        for (name, body) in [
            ("Tools/install-dependencies", "echo install >>calls"), ("bin/swift", "echo swift >>calls"),
            ("bin/apt-cache", "echo Package: one"), (".build/release/hearth", "echo \"$@\" >>calls"),
            (".build/release/hearth-demonstration", "case $1 in convert) cat >/dev/null ;; esac"),
        ] {
            let path = directory.path(of: name)
            try Data("#!/bin/sh\n\(body)\n".utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
    }

    /// Runs the script on a server that is not asked; returns what it called.
    private func run() throws -> String {
        let process = HearthProcess(
            ["--address", "127.0.0.1:9"], environment: ["PATH": "\(directory.path(of: "bin")):/usr/bin:/bin"],
            executable: directory.path(of: "Tools/demo"))
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 0, "\(process.errors)")
        return (try? String(contentsOfFile: directory.path(of: "calls"), encoding: .utf8)) ?? ""
    }

    @Test
    func `With the address of a server nothing is built that is there`() throws {
        try makeTree()
        let calls = try run()
        expect(calls.hasPrefix("load --address 127.0.0.1:9 --collection packages "), "\(calls)")
        expectEqual(calls.split(separator: "\n").count, 1, "\(calls)")
    }
}
