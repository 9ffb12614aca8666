// hearth fork and hearth serve --fork-of as processes.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ForkTests {
    private let directory = TemporaryDirectory("fork")

    @Test
    func `A fork made while serving has what was acknowledged, and is written to by itself`() async throws {
        let (data, fork) = (directory.path(of: "data"), directory.path(of: "fork"))
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 0..<10 { try await client.set("c/d\(number)", number: number) }
        let made = try HearthBinary.run(["fork", data, fork])
        expect(made.status == 0 && made.output == "\(fork) forked from \(data)\n", "\(made.errors)")
        try await client.set("c/d0", number: 100)
        let second = try ServerProcess(data: fork)
        let other = try TestClient(second)
        try await other.set("c/d1", number: 200)
        try await expectEqual(other.number("c/d0"), 0)
        try await expectEqual(client.number("c/d1"), 1)
        await other.close()
        await client.close()
        expectEqual(second.stop(), 0)
        expectEqual(server.stop(), 0)
        for path in [data, fork] { try expectEqual(HearthBinary.run(["check", "--data", path]).status, 0) }
    }

    @Test
    func `Servers of temporary forks have the data, and leave nothing`() async throws {
        let data = directory.path(of: "data")
        let first = try ServerProcess(data: data)
        let client = try TestClient(first)
        try await client.set("c/x", number: 5)
        // Once while it is served, then at the same time while it is not.
        var forks = [try ServerProcess(forkOf: data)]
        await client.close()
        expectEqual(first.stop(), 0)
        for _ in 0..<2 { forks.append(try ServerProcess(forkOf: data)) }
        for (number, fork) in forks.enumerated() {
            let client = try TestClient(fork)
            try await expectEqual(client.number("c/x"), 5)
            try await client.set("c/x", number: number)
            await client.close()
        }
        for fork in forks { expectEqual(fork.stop(), 0) }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
    }

    @Test
    func `What cannot be forked is refused, and nothing is made`() throws {
        let data = directory.path(of: "data")
        for (arguments, reason) in [
            (["fork", data, directory.path(of: "new")], "not a Hearth data directory"),
            (["serve", "--fork-of", data], "not a Hearth data directory"),
            (["serve", "--data", "x", "--fork-of", data], "cannot be combined"),
        ] {
            let outcome = try HearthBinary.run(arguments)
            expect(outcome.status != 0 && outcome.errors.contains(reason), "\(outcome.errors)")
        }
        let server = try ServerProcess(data: data)
        for target in [data, "\(data)/inside"] {
            let outcome = try HearthBinary.run(["fork", data, target])
            expect(outcome.status == 1 && outcome.errors.contains("two separate directories"), "\(outcome.errors)")
        }
        expectEqual(server.stop(), 0)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
    }
}
