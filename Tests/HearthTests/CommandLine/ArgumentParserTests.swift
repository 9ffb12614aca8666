// How words become typed flags: order of precedence, spellings, and errors that say what to do.

import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct ArgumentParserTests {
    private static let port = Flag("port", "PORT", default: 8080, in: 0...65_535, help: "A port.")
    private static let data = Flag<String>("data", "DIR", required: true, help: "A directory.")
    private static let quiet = Flag(switch: "quiet", help: "Says nothing.")
    private static let wheres = Flag<String>(repeatable: "where", "CONDITION", help: "A condition.")
    private static let address = Flag("address", "ADDRESS", default: "local", help: "Where.").alias("to", "from")
    private static let flags: [any FlagDeclaration] = [port, data, quiet, wheres, address]

    private static func parse(
        _ arguments: [String], words: [String] = [], environment: [String: String] = [:]
    ) throws -> ParsedArguments {
        try ArgumentParser(flags: flags, words: words, environment: { environment[$0] }).parse(arguments)
    }

    /// What is said of wrong words.
    private static func message(
        _ arguments: [String], words: [String] = [], environment: [String: String] = [:]
    ) -> String? {
        do {
            _ = try parse(arguments, words: words, environment: environment)
            return nil
        } catch { return (error as? UsageError)?.message }
    }

    @Test func `The command line wins over the environment, and that over the default`() throws {
        let environment = ["HEARTH_DATA": "e", "HEARTH_PORT": "1"]
        try expectEqual(Self.parse(["--data", "d"])[Self.port], 8080)
        try expectEqual(Self.parse([], environment: environment)[Self.port], 1)
        try expectEqual(Self.parse(["--port", "2"], environment: environment)[Self.port], 2)
        try expectEqual(Self.parse([], environment: environment)[Self.data], "e")
        try expectEqual(Self.parse(["--data", "d"], environment: environment).given, ["data"])
    }

    @Test func `A value follows the flag or an equals sign, and may look like a flag`() throws {
        try expectEqual(Self.parse(["--data=a=b"])[Self.data], "a=b")
        try expectEqual(Self.parse(["--data", "--port"])[Self.data], "--port")
        try expectEqual(Self.parse(["--data", "-"])[Self.data], "-")
    }

    @Test func `A switch is off, on, or what is attached to it`() throws {
        try expectEqual(Self.parse(["--data", "d"])[Self.quiet], false)
        try expect(Self.parse(["--data", "d", "--quiet"])[Self.quiet])
        let environment = ["HEARTH_QUIET": "yes", "HEARTH_DATA": "d"]
        try expect(Self.parse([], environment: environment)[Self.quiet])
        try expect(!Self.parse(["--quiet=no"], environment: environment)[Self.quiet])
        // The word after a switch is a separate word.
        try expectEqual(Self.parse(["--data", "d", "--quiet", "false"], words: ["NAME"]).words, ["false"])
    }

    @Test func `A repeatable flag keeps every value in order, and the environment's only alone`() throws {
        let environment = ["HEARTH_WHERE": "e", "HEARTH_DATA": "d"]
        let both = try Self.parse(["--where", "a", "--where=b"], environment: environment)
        expectEqual(both.values(of: Self.wheres), ["a", "b"])
        try expectEqual(Self.parse([], environment: environment).values(of: Self.wheres), ["e"])
        try expectEqual(Self.parse(["--data", "d"]).values(of: Self.wheres), [])
    }

    @Test func `An alias is another spelling of one flag`() throws {
        try expectEqual(Self.parse(["--data", "d", "--to", "x"])[Self.address], "x")
        try expectEqual(Self.parse(["--data", "d", "--from=y"])[Self.address], "y")
        expectEqual(Self.message(["--data", "d", "--to", "x", "--address", "y"]), "--address may be given only once")
    }

    @Test func `Words are counted, and follow each other wherever flags stand`() throws {
        try expectEqual(Self.parse(["a", "--data", "d", "b"], words: ["ONE", "TWO"]).words, ["a", "b"])
        try expectEqual(
            Self.parse(["--data", "d", "--", "--port", "-"], words: ["ONE", "TWO"]).words, ["--port", "-"])
        try expectEqual(Self.parse(["--data", "d", "a", "b", "c"], words: ["NAME..."]).words, ["a", "b", "c"])
        try expectEqual(Self.parse(["--data", "d"], words: ["[FILE]"]).words, [])
        expectEqual(Self.message(["--data", "d"], words: ["NAME..."]), "missing argument NAME")
        expectEqual(Self.message(["--data", "d", "a"], words: ["ONE", "TWO"]), "missing argument TWO")
        expectEqual(Self.message(["--data", "d", "a"]), "unexpected argument \"a\"")
        expectEqual(Self.message(["--data", "d", "a", "b"], words: ["[FILE]"]), "unexpected argument \"b\"")
    }

    @Test(
        arguments: [
            (["--data"], "--data needs a value: --data DIR"),
            (["--data", "a", "--data", "b"], "--data may be given only once"),
            ([], "missing --data DIR: A directory."),
            (
                [
                    "--data",
                    "",
                ], "--data must be a non-empty text, not \"\""
            ),
            (["--data", "d", "--port", "x"], "--port must be a whole number, not \"x\""),
            (["--data", "d", "--port", "65536"], "--port must be between 0 and 65535, not \"65536\""),
            (["--data", "d", "--port=-1"], "--port must be between 0 and 65535, not \"-1\""),
            (
                [
                    "--data", "d", "--port",
                    "99999999999999999999",
                ], "--port must be a whole number, not \"99999999999999999999\""
            ),
            (["--data", "d", "--quiet=maybe"], "--quiet must be true or false, not \"maybe\""),
            (["--prot", "1"], "unknown flag --prot; did you mean --port?"),
            (["-p", "1"], "unknown flag -p"), (["--zzzzzz"], "unknown flag --zzzzzz"),
            (["-data", "d"], "unknown flag -data; did you mean --data?"),
        ] as [([String], String)])
    func `An error says which flag, and what would be right`(arguments: [String], message: String) {
        expectEqual(Self.message(arguments), message)
    }

    @Test func `A wrong value of the environment names the variable`() {
        expectEqual(
            Self.message(["--data", "d"], environment: ["HEARTH_PORT": "many"]),
            "HEARTH_PORT must be a whole number, not \"many\"")
    }

    @Test func `The nearest spelling is within two edits, one for short words`() {
        expectEqual(Spelling.nearest(to: "sevre", among: ["serve", "get"]), "serve")
        expectEqual(Spelling.nearest(to: "gte", among: ["serve", "get"]), "get")
        expectEqual(Spelling.nearest(to: "gt", among: ["get"]), "get")
        expectNil(Spelling.nearest(to: "ge", among: ["query"]))
        expectEqual(Spelling.nearest(to: "qeuyr", among: ["query"]), "query")
        expectNil(Spelling.nearest(to: "", among: ["get"]))
        expectNil(Spelling.nearest(to: "x", among: []))
    }
}
