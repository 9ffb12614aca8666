// The file of --config: its lines, its precedence, and errors with their place.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct ConfigurationFileTests {
    private static let port = Flag("port", "PORT", default: 8080, in: 0...65_535, help: "A port.")
    private static let data = Flag<String>("data", "DIR", required: true, help: "A directory.")
    private static let issuers = Flag<String>(repeatable: "issuer", "ISSUER", help: "An issuer.")
    private static let flags: [any FlagDeclaration] = [port, data, issuers, ConfigurationFile.flag]

    /// Parses a command line with `--config` and a file of these bytes, named `FILE` in messages.
    private static func parse(
        _ text: String, _ arguments: [String] = [], environment: [String: String] = [:]
    ) throws -> ParsedArguments {
        let directory = TemporaryDirectory("configuration")
        let file = directory.path(of: "hearth.conf")
        try Data(text.utf8).write(to: URL(filePath: file))
        let parser = ArgumentParser(flags: flags, words: [], environment: { environment[$0] })
        do {
            return try parser.parse(["--config", file] + arguments)
        } catch let error as UsageError {
            throw UsageError(message: error.message.replacingOccurrences(of: file, with: "FILE"))
        }
    }

    private static func message(_ text: String, _ arguments: [String] = []) -> String? {
        do {
            _ = try parse(text, arguments)
            return nil
        } catch { return (error as? UsageError)?.message }
    }

    @Test func `Lines are names and values, empty, or comments`() throws {
        let file = try ConfigurationFile("# a\r\n\n  data = /a = b # c \r\n\tport=1\t\nissuer=", path: "FILE")
        expectEqual(
            file.settings,
            [
                .init(name: "data", value: "/a = b # c", line: 3), .init(name: "port", value: "1", line: 4),
                .init(name: "issuer", value: "", line: 5),
            ])
    }

    @Test func `A setting gives way to the environment, and that to the command line`() throws {
        let text = "data = f\nport = 1"
        try expectEqual(Self.parse(text)[Self.data], "f")
        try expectEqual(Self.parse(text)[Self.port], 1)
        try expectEqual(Self.parse(text, environment: ["HEARTH_PORT": "2"])[Self.port], 2)
        try expectEqual(Self.parse(text, ["--port", "3"], environment: ["HEARTH_PORT": "2"])[Self.port], 3)
        try expectEqual(Self.parse(text).given, ["config"])
        try expectEqual(Self.parse("\u{FEFF}" + text)[Self.data], "f")
    }

    @Test func `A flag that may be repeated may have several lines`() throws {
        let text = "data = f\nissuer = a\nissuer = b"
        try expectEqual(Self.parse(text).values(of: Self.issuers), ["a", "b"])
        try expectEqual(Self.parse(text, ["--issuer", "c"]).values(of: Self.issuers), ["c"])
    }

    @Test(arguments: [
        ("data = d\nprot = 1", "FILE:2: prot is not a setting; did you mean port?"),
        ("data = d\n\nport = x", "FILE:3: port must be a whole number, not \"x\""),
        ("data = d\nport", "FILE:2: expected name = value, not \"port\""),
        ("data = d\ndata = e", "FILE:2: data may be set only once"),
        ("data =", "FILE:1: data must be a non-empty text, not \"\""),
        ("config = other", "FILE:1: config is not a setting"), ("port = 1", "missing --data DIR: A directory."),
        ("= 1", "FILE:1:  is not a setting"),
    ])
    func `An error has the file and the line`(text: String, message: String) {
        expectEqual(Self.message(text), message)
    }

    @Test func `A wrong value is an error also where another one takes its place`() {
        expectEqual(
            Self.message("data = d\nport = x", ["--port", "1"]), "FILE:2: port must be a whole number, not \"x\"")
    }

    @Test func `A server takes its settings from the file`() throws {
        let directory = TemporaryDirectory("configuration")
        let file = directory.path(of: "hearth.conf")
        try Data("data = \(directory.path(of: "data"))\nport = 0\nlog-level = debug\n".utf8)
            .write(to: URL(filePath: file))
        let checked = try HearthBinary.run(["serve", "--config", file, "--check-config"])
        expectEqual(checked.status, 0, "\(checked.errors)")
        expect(checked.output.contains("--log-level debug"))
        expect(checked.output.contains("--data \(directory.path(of: "data"))"))
        let environment = try HearthBinary.run(["serve", "--check-config"], environment: ["HEARTH_CONFIG": file])
        expectEqual(environment.output, checked.output)
    }

    @Test func `A file that cannot be read is named`() throws {
        let outcome = try HearthBinary.run(["serve", "--config", "/nowhere/hearth.conf"])
        expectEqual(outcome.status, 1)
        expect(outcome.errors.contains("cannot read /nowhere/hearth.conf"))
    }
}
