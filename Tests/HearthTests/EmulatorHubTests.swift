// The routes by which tools of Firebase find the emulators, on a real server.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct EmulatorHubTests {
    private let directory = TemporaryDirectory("hub")

    @Test func `The hub lists the server, answers for functions, and writes no files`() throws {
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = HTTPTestClient(port: server.port)
        let reply = try #require(client.request("GET", "/emulators"))
        expectEqual(reply.status, 200)
        let found = try JSONSerialization.jsonObject(with: Data(reply.body.utf8)) as? [String: [String: Any]]
        expectEqual(found?.keys.sorted(), ["firestore", "hub"])
        expect(found?["firestore"]?["host"] as? String == "127.0.0.1")
        expect(found?["firestore"]?["port"] as? Int == server.port)
        let listen = (found?["firestore"]?["listen"] as? [[String: Any]])?.first
        expect(listen?["family"] as? String == "IPv4" && listen?["port"] as? Int == server.port)
        for verb in ["disable", "enable"] {
            expectEqual(client.request("PUT", "/functions/\(verb)BackgroundTriggers")?.status, 200)
        }
        let target = directory.path(of: "export")
        let export = client.request("POST", "/_admin/export", body: #"{"path": "\#(target)"}"#)
        expect(export?.status == 501 && export?.body.contains("hearth backup") == true)
        expect(!FileManager.default.fileExists(atPath: target))
        for path in ["/emulators/x", "/functions", "/_admin/import"] {
            expectEqual(client.request("GET", path)?.status, 404, "\(path)")
        }
        expectEqual(server.stop(), 0)
    }

    @Test func `A server without the emulator's routes, or one that is closed, has no hub`() throws {
        let off = try ServerProcess(data: directory.path(of: "off"), arguments: ["--emulator-endpoints", "off"])
        expectEqual(HTTPTestClient(port: off.port).request("GET", "/emulators")?.status, 404)
        expectEqual(off.stop(), 0)
        let rules = directory.path(of: "rules")
        try Data("service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read; } }".utf8)
            .write(to: URL(filePath: rules))
        let closed = try ServerProcess(data: directory.path(of: "closed"), arguments: ["--rules", rules])
        expect([401, 403].contains(HTTPTestClient(port: closed.port).request("GET", "/emulators")?.status))
        expectEqual(closed.stop(), 0)
    }
}
