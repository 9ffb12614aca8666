// hearth health: ready, not ready, and no answer.

import EventLoops
import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct HealthTests {
    @Test func `A server that accepts work is ready, and one that has ended is not there`() throws {
        let directory = TemporaryDirectory("health")
        let data = directory.path(of: "data")
        let none = try HearthBinary.run(["health", "--data", data])
        expect(none.status == 1 && none.output.isEmpty)
        expectEqual(none.errors, "hearth: no server is running on \(data)\n")
        let object = try HearthBinary.run(["health", "--data", data, "--json"])
        expect(object.status == 1 && object.errors == none.errors)
        expectEqual(object.output, "{\"ready\":false,\"reason\":\"no server is running on \(data)\"}\n")
        let server = try ServerProcess(data: data)
        let ready = try HearthBinary.run(["health", "--data", data])
        expect(ready.status == 0 && ready.output == "ready\n", "\(ready.errors)")
        let readyObject = try HearthBinary.run(["health", "--data", data, "--json"])
        expect(readyObject.status == 0 && readyObject.output == "{\"ready\":true,\"reason\":null}\n")
        let environment = try HearthBinary.run(["health"], environment: ["HEARTH_DATA": data])
        expect(environment.status == 0 && environment.output == "ready\n", "\(environment.errors)")
        server.kill()
        try expect(HearthBinary.run(["health", "--data", data]).errors.contains("no server is running"))
    }

    @Test func `A closed server answers without a credential`() throws {
        let directory = TemporaryDirectory("health")
        let rules = directory.path(of: "firestore.rules")
        let text =
            "service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow get: if false; } } }"
        try Data(text.utf8).write(to: URL(filePath: rules))
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--rules", rules])
        let outcome = try HearthBinary.run(["health", "--data", directory.path(of: "data")])
        expect(outcome.status == 0 && outcome.output == "ready\n", "\(outcome.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test func `A server that does not answer is not healthy`() throws {
        let directory = TemporaryDirectory("health")
        let listener = try LocalSocket.listen(at: directory.path(of: "admin.sock"))
        defer { close(listener) }
        let outcome = try HearthBinary.run(["health", "--data", directory.path, "--timeout", "50ms"])
        expectEqual(outcome.status, 1)
        expectEqual(outcome.errors, "hearth: the server does not answer\n")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nready\n", 200, "ready"),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\nnot ready: a\nb\n", 503, "not ready: a\nb"),
        ("HTTP/1.1 204 \r\n\r\n", 204, ""),
    ])
    func `A reply is a status and a text`(reply: String, status: Int, body: String) throws {
        try expectEqual(LocalPage.reply(Array(reply.utf8)), LocalPage.Reply(status: status, body: body))
    }

    @Test(arguments: ["", "\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/2 200\r\n\r\n"])
    func `What is not a reply is an error`(reply: String) {
        #expect(throws: CommandFailure.self) { try LocalPage.reply(Array(reply.utf8)) }
    }
}
