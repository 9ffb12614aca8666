// The services beside Firestore, over a connection.

import Basics
import DocumentModel
import EventLoops
import FirestoreJSON
import FirestoreMessages
import FirestoreService
import NativeProtocol
import Server
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct HealthAndReflectionTests {
    private func message(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
        var writer = ByteBuffer()
        write(&writer)
        return writer.copyBytes()
    }

    @Test(arguments: ["", "google.firestore.v1.Firestore", "grpc.health.v1.Health"])
    func `A server that serves reports it for each of its services`(_ service: String) throws {
        let live = try LiveDatabaseServer()
        let (outcome, reply) = live.call(.healthCheck, message { $0.writeIfSet(1, string: service) })
        expectEqual(outcome.code, .ok)
        expectEqual(reply, [8, 1])
    }

    @Test
    func `A service that is not there is not found`() throws {
        let live = try LiveDatabaseServer()
        expectEqual(live.call(.healthCheck, message { $0.appendField(1, string: "a.B") }).outcome.code, .notFound)
        expectEqual(live.call(.healthCheck, [0xFF]).outcome.code, .invalidArgument)
    }

    @Test
    func `Watchers hear the status now, and that the server drains, which they do not hold up`() throws {
        let live = try LiveDatabaseServer()
        let watcher = MessageListener()
        live.connection.stream(FirestoreMessages.Method.healthWatch.rpc, [], handler: watcher)
        try watcher.came.wait(until: "a message has come")
        live.stop()
        try watcher.ended.wait(until: "the stream has ended")
        expectEqual(watcher.state.withLock { $0.outcome }.code, .unavailable)
        expectEqual(watcher.state.withLock { $0.messages }, [[8, 1], [8, 2]])
    }

    @Test
    func `A reflection stream that stays open is served and counted, and does not delay a drain`() throws {
        let live = try LiveDatabaseServer { $0.drainMilliseconds = 60_000 }
        let listener = MessageListener()
        let question = message { $0.appendField(7, string: "") }
        live.connection.stream(
            FirestoreMessages.Method.serverReflectionInfo.rpc, question, isComplete: false, handler: listener)
        try listener.came.wait(until: "a message has come")
        live.stop()
        try listener.ended.wait(until: "the stream has ended")
        let (outcome, messages) = listener.state.withLock { $0 }
        expect(outcome.code == .unavailable && outcome.message == "the server is draining")
        expectEqual(messages.count, 1)
    }

    @Test
    func `Calls are counted under the names of their services`() throws {
        let live = try LiveDatabaseServer()
        _ = live.call(.healthCheck, [])
        _ = live.call(.healthCheck, message { $0.appendField(1, string: "a.B") })
        _ = live.stream(.serverReflectionInfo, message { $0.appendField(7, string: "") })
        let page = try #require(HTTPTestClient(port: Int(live.gateway.port)).request("GET", "/metrics")?.body)
        for line in [
            #"hearth_requests_total{method="Health/Check",code="OK"} 1"#,
            #"hearth_requests_total{method="Health/Check",code="NOT_FOUND"} 1"#,
            #"hearth_requests_total{method="ServerReflection/ServerReflectionInfo",code="OK"} 1"#,
        ] {
            expect(page.contains(line + "\n"), "\(page)")
        }
    }

    // MARK: Reflection

    private struct Answer {
        var files: [String] = []
        var services: [String] = []
        var errorCode: Int32?
    }

    /// Asks one question, given as its field, and reads the answer.
    private func ask(
        _ live: LiveDatabaseServer, _ field: Int, _ text: String, on connection: ClientConnection? = nil
    ) throws -> Answer {
        let (outcome, messages) = live.stream(
            .serverReflectionInfo, message { $0.appendField(field, string: text) }, on: connection)
        expectEqual(outcome.code, .ok)
        var answer = Answer()
        let reply = try #require(messages.first)
        expectEqual(messages.count, 1)
        var reader = WireReader(reply.byteSpan)
        while let tag = try reader.nextTag() {
            let payload = try reader.span(tag)
            switch tag.fieldNumber {
            case 4:
                var list = WireReader(payload)
                while let entry = try list.nextTag() {
                    // A set of one file is that file as field 1.
                    let file = [UInt8](copying: try list.span(entry))
                    let set = message { $0.appendField(1, bytes: file) }
                    answer.files += DescriptorSet.files.filter { $0.set == set }.map(\.name)
                }
            case 6:
                var list = WireReader(payload)
                while let entry = try list.nextTag() {
                    var service = WireReader(try list.span(entry))
                    while let name = try service.nextTag() { answer.services.append(try service.string(name)) }
                }
            case 7:
                var error = WireReader(payload)
                while let entry = try error.nextTag() {
                    if entry.fieldNumber == 1 {
                        answer.errorCode = try error.int32(entry)
                    } else {
                        try error.skip(entry)
                    }
                }
            default: break
            }
        }
        return answer
    }

    @Test
    func `Reflection lists the services`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(
            ask(live, 7, "*").services,
            [
                "google.firestore.v1.Firestore", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ])
    }

    @Test
    func `The socket in the data directory lists and describes its services too, which the port does not`() throws {
        let live = try LiveDatabaseServer()
        let group = EventLoopGroup(count: 1, name: "test-admin")
        defer { group.stop() }
        let socket = try ClientConnection.connect(
            toSocketAt: AdminSocket.path(in: live.directory.path(of: "data")), on: group.next())
        defer { socket.close() }
        let administrative = [
            "google.firestore.admin.v1.FirestoreAdmin", "google.longrunning.Operations", "hearth.admin.v1.Admin",
        ]
        let all = try ask(live, 7, "*").services + administrative
        try expectEqual(ask(live, 7, "*", on: socket).services, all.sorted())
        for service in administrative {
            try expectEqual(ask(live, 4, service, on: socket).files.isEmpty, false)
            try expectEqual(ask(live, 4, service).errorCode, 5)
        }
        try expectEqual(ask(live, 3, "hearth/admin/v1/admin.proto").errorCode, 5)
    }

    @Test
    func `A symbol brings its file and all that it imports, each once`() throws {
        let live = try LiveDatabaseServer()
        let files = try ask(live, 4, "google.firestore.v1.Firestore").files
        expectEqual(files.first, "google/firestore/v1/service.proto")
        expect(files.contains("google/firestore/v1/firestore.proto"))
        expect(files.contains("google/protobuf/timestamp.proto"))
        expectEqual(Set(files).count, files.count)
        try expectEqual(ask(live, 4, "google.firestore.v1.Firestore.RunQuery").files, files)
        try expectEqual(ask(live, 3, "google/protobuf/empty.proto").files, ["google/protobuf/empty.proto"])
    }

    @Test(arguments: [(3, "a.proto"), (4, "a.B"), (5, ""), (6, "a.B")])
    func `What is not there is an answer with an error`(field: Int, text: String) throws {
        let live = try LiveDatabaseServer()
        try expectEqual(ask(live, field, text).errorCode, 5)
    }

    @Test
    func `The replies to many requests on one stream have their order`() throws {
        let live = try LiveDatabaseServer()
        let question = message { $0.appendField(3, string: "google/protobuf/empty.proto") }
        let listener = MessageListener()
        let call = live.connection.stream(
            FirestoreMessages.Method.serverReflectionInfo.rpc, question, isComplete: false, handler: listener)
        for _ in 1..<500 { call.send(question) }
        call.finishSending()
        try listener.ended.wait(until: "the stream has ended")
        let (outcome, messages) = listener.state.withLock { $0 }
        expectEqual(outcome.code, .ok)
        expectEqual(messages.count, 500)
        expectEqual(Set(messages).count, 1)
    }

    @Test
    func `A malformed question ends the call`() throws {
        let live = try LiveDatabaseServer()
        expectEqual(live.stream(.serverReflectionInfo, [0xFF]).outcome.code, .invalidArgument)
    }
}
