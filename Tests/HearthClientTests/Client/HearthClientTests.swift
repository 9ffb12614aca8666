// The lower-level client against a scripted server: retries, deadlines, lost answers, streams.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct HearthClientTests {
    private let database: DatabaseName

    init() throws { database = try DatabaseName(project: "p") }

    private func client(
        _ server: FakeServer, _ change: (inout HearthClient.Configuration) -> Void = { _ in }
    ) throws -> HearthClient {
        var configuration = try HearthClient.Configuration(address: server.address)
        change(&configuration)
        return try HearthClient(configuration)
    }

    private func writes(_ id: String = "b1") -> CommitWrites {
        var writes = CommitWrites(database: database)
        writes.delete("\(database.documentsRoot)/books/\(id)")
        return writes
    }

    private static let time = TimestampValue(seconds: 5, nanoseconds: 6000)
    private static let committed = CommitResponse(
        writeResults: [WriteResult(updateMicroseconds: nil)], commitTime: time
    ).encodedBytes()

    @Test
    func `A commit brings back the server's answer and carries deadline and request id`() async throws {
        let server = try FakeServer { _ in .respond(Self.committed) }
        let client = try client(server)
        let response = try await client.commit(writes(), options: .init(timeout: .seconds(7)))
        expectEqual(response.commitTime, Self.time)
        expectEqual(response.writeResults.count, 1)
        let call = try #require(server.calls.first)
        expectEqual(call.method, .commit)
        expectEqual(call.payload, writes().request())
        expectEqual(call.requestID?.sequence, 1)
        expectEqual(call.requestID?.oldestPending, 1)
        expect((1...7000).contains(call.deadlineMilliseconds ?? 0))
        await client.close()
    }

    @Test
    func `A client that is let go of ends its calls and its threads`() async throws {
        let server = try FakeServer { _ in .hold }
        let task: Task<Void, any Error>
        do {
            let client = try HearthClient(.init(address: server.address))
            let (outcomes, continuation) = AsyncStream<Result<[UInt8], RequestError>>.makeStream()
            client.call(.getDocument, [], kind: .repeatable, options: .standard) { result in
                continuation.yield(result)
                continuation.finish()
            }
            task = Task { for await outcome in outcomes { _ = try outcome.get() } }
            await server.waitForCalls(1)
        }
        let error = await #expect(throws: RequestError.self) { try await task.value }
        expectEqual(error?.code, .cancelled)
    }

    @Test
    func `A commit whose connection is lost is sent again with the same request id`() async throws {
        let first = try FakeServer { _ in .hold }
        let port = first.port
        let client = try client(first)
        async let response = client.commit(writes())
        await first.waitForCalls(1)
        let lost = try #require(first.calls.first)
        first.cut()
        let second = try FakeServer(port: port) { _ in .respond(Self.committed) }
        try await expectEqual(response.commitTime, Self.time)
        let again = try #require(second.calls.first)
        expectEqual(again.requestID, lost.requestID)
        expectEqual(again.payload, lost.payload)
        await client.close()
    }

    @Test
    func `A batch of independent writes whose connection is lost is not sent again`() async throws {
        let first = try FakeServer { _ in .hold }
        let client = try client(first)
        let writes = writes()
        let task = Task { try await client.batchWrite(writes) }
        await first.waitForCalls(1)
        first.cut()
        let result = await task.result
        #expect {
            try result.get()
        } throws: {
            ($0 as? RequestError)?.code == .unavailable
        }
        await client.close()
    }

    /// A pipeline whose stages have names and nothing else.
    private func pipeline(_ stages: [String]) -> ExecutePipelineRequest {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: FieldNumber.StructuredPipeline.pipeline) { pipeline in
            for name in stages {
                pipeline.withLengthPrefix(field: FieldNumber.Pipeline.stages) { stage in
                    stage.appendField(FieldNumber.Pipeline.Stage.name, string: name)
                }
            }
        }
        return ExecutePipelineRequest(database: database.description, pipeline: writer.copyBytes())
    }

    @Test(arguments: ["update", "delete", "limit"])
    func `A pipeline whose connection is lost is sent again, unless it writes`(last: String) async throws {
        let first = try FakeServer { _ in .hold }
        let port = first.port
        let client = try client(first)
        let request = pipeline(["collection", last])
        let task = Task { try await client.pipelineStream(request).next() }
        await first.waitForCalls(1)
        first.cut()
        let second = try FakeServer(port: port) { _ in .stream([]) }
        let result = await task.result
        if last == "limit" {
            try expect(result.get() == nil && second.calls.count == 1)
        } else {
            #expect {
                try result.get()
            } throws: {
                ($0 as? RequestError)?.code == .unavailable
            }
            expect(second.calls.isEmpty)
        }
        await client.close()
    }

    @Test
    func `Ordered commits arrive in the order in which they were handed over, before and after a lost connection`()
        async throws
    {
        let first = try FakeServer { call in
            call.requestID!.sequence <= 20 ? .respond(Self.committed) : .hold
        }
        let port = first.port
        let client = try client(first)
        let answered = Mutex<[Int]>([])
        let done = AsyncStream<Void>.makeStream()
        let numbers = WriteNumbers()
        func commit(_ number: Int) -> HearthClient.OrderedCommit {
            let ticket = numbers.begin()
            return HearthClient.OrderedCommit(
                request: writes("b\(number)").request(), ticket: ticket, cancellation: nil
            ) { result in
                numbers.finish(ticket)
                if case .success = result { answered.withLock { $0.append(number) } }
                if answered.withLock({ $0.count }) == 100 { done.continuation.finish() }
            }
        }
        for number in 1...50 { client.commitInOrder([commit(number)], of: numbers) }
        client.commitInOrder((51...100).map(commit), of: numbers)
        await first.waitForCalls(100)
        expectEqual(first.calls.map { $0.requestID!.sequence }, Array(1...100))
        first.cut()
        let second = try FakeServer(port: port) { _ in .respond(Self.committed) }
        for await _ in done.stream {}
        let again = second.calls.map { $0.requestID!.sequence }
        expectEqual(again, again.sorted())
        expect(Set(again).isSuperset(of: 21...100))
        expectEqual(answered.withLock { Set($0) }, Set(1...100))
        await client.close()
    }

    @Test
    func `Ordered commits that the server refuses for a time are applied in their order`() async throws {
        let isFull = Mutex(true)
        let applied = Mutex<[UInt64]>([])
        let server = try FakeServer { call in
            if isFull.withLock({ $0 }) { return .fail(.resourceExhausted, "the disk is full") }
            applied.withLock { $0.append(call.requestID!.sequence) }
            return .respond(Self.committed)
        }
        let client = try client(server)
        let numbers = WriteNumbers()
        let (ends, end) = AsyncStream<Result<[UInt8], RequestError>>.makeStream()
        func commit(_ number: Int) -> HearthClient.OrderedCommit {
            let ticket = numbers.begin()
            return HearthClient.OrderedCommit(
                request: writes("b\(number)").request(), ticket: ticket, cancellation: nil
            ) { result in
                numbers.finish(ticket)
                end.yield(result)
            }
        }
        func tries(of sequence: UInt64) -> Int { server.calls.count { $0.requestID?.sequence == sequence } }
        client.commitInOrder([commit(1)], of: numbers)
        try await eventually("the first commit was tried some times") { tries(of: 1) >= 4 }
        // The waits between the tries of the later ones are shorter, because there were fewer.
        for number in 2...20 { client.commitInOrder([commit(number)], of: numbers) }
        try await eventually("the first commit was tried again") { tries(of: 1) >= 6 }
        isFull.withLock { $0 = false }
        var iterator = ends.makeAsyncIterator()
        for _ in 1...20 { _ = try await iterator.next()?.get() }
        expectEqual(applied.withLock { $0 }, Array(1...20))
        await client.close()
    }

    @Test(arguments: [StatusCode.resourceExhausted, .permissionDenied])
    func `Commits in flight after one that is refused are applied in their order`(refusal: StatusCode) async throws {
        // As a server does: a commit that names one before it is refused unless that one was applied.
        let applied = Mutex<[UInt64]>([])
        let refused = Mutex<Set<UInt64>>([])
        let server = try FakeServer { call in
            guard let id = call.requestID else { return .fail(.internal, "no identifier") }
            return applied.withLock { applied in
                if let after = id.after, !applied.contains(after.sequence) { return .fail(.aborted, "too early") }
                // Each tenth one is refused, at its first try.
                if id.sequence % 10 == 3, refused.withLock({ $0.insert(id.sequence).inserted }) {
                    return .fail(refusal, "not now")
                }
                applied.append(id.sequence)
                return .respond(Self.committed)
            }
        }
        let client = try client(server)
        let numbers = WriteNumbers()
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let commits = (1...200).map { number in
            let ticket = numbers.begin()
            return HearthClient.OrderedCommit(
                request: writes("b\(number)").request(), ticket: ticket, cancellation: nil
            ) { result in
                numbers.finish(ticket)
                if case .success = result { end.yield(true) } else { end.yield(false) }
            }
        }
        client.commitInOrder(commits, of: numbers)
        var successes = 0
        var iterator = ends.makeAsyncIterator()
        for _ in 1...200 where await iterator.next() == true { successes += 1 }
        let isLasting = refusal == .permissionDenied
        expectEqual(applied.withLock { $0 }, (1...200).filter { !isLasting || $0 % 10 != 3 })
        expectEqual(successes, isLasting ? 180 : 200)
        // Few are sent in vain: the first time all, then twice as many in each round.
        expect(server.calls.count < 200 + 200 + 20 * 20)
        await client.close()
    }

    @Test
    func `A server that is not available yet is tried again`() async throws {
        let tries = Mutex(0)
        let server = try FakeServer { _ in
            tries.withLock { tries in
                tries += 1
                return tries < 3 ? .fail(.unavailable, "later") : .respond(Self.committed)
            }
        }
        let client = try client(server)
        try await client.commit(writes())
        expectEqual(tries.withLock { $0 }, 3)
        expectEqual(Set(server.calls.map(\.requestID!.sequence)), [1])
        await client.close()
    }

    @Test
    func `Final errors come back with the server's code and text`() async throws {
        let server = try FakeServer { _ in .fail(.failedPrecondition, "no such thing") }
        let client = try client(server)
        await #expect(throws: RequestError(.failedPrecondition, "no such thing")) { try await client.commit(writes()) }
        expectEqual(server.calls.count, 1)
        await client.close()
    }

    @Test
    func `A call without a reply ends at its deadline, and the client cancels it at the server`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        await #expect {
            try await client.commit(writes(), options: .init(timeout: .milliseconds(50)))
        } throws: {
            ($0 as? RequestError)?.code == .deadlineExceeded
        }
        await client.close()
    }

    @Test
    func `A call that waits for a server ends at its deadline`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        server.cut()
        await #expect {
            try await client.commit(writes(), options: .init(timeout: .milliseconds(100)))
        } throws: {
            ($0 as? RequestError)?.code == .deadlineExceeded
        }
        await client.close()
    }

    @Test
    func `A call that must not wait fails with the first failed dial`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        server.cut()
        await #expect {
            _ = try await client.getDocument("x", options: .failFast)
        } throws: {
            ($0 as? RequestError)?.code == .unavailable
        }
        await client.close()
    }

    @Test
    func `A cancelled task cancels its call on the server`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        let writes = writes()
        let task = Task { try await client.commit(writes) }
        await server.waitForCalls(1)
        task.cancel()
        let result = await task.result
        #expect(throws: RequestError.self) { try result.get() }
        await server.waitForCancellations(1)
        await client.close()
    }

    @Test
    func `A draining server finishes what it accepted, and later calls go to its successor`() async throws {
        let first = try FakeServer { _ in .respond(Self.committed) }
        let port = first.port
        let client = try client(first)
        try await client.commit(writes())
        await first.drain()
        first.cut()
        let second = try FakeServer(port: port) { _ in .respond(Self.committed) }
        try await client.commit(writes())
        expectEqual(second.calls.count, 1)
        await client.close()
    }

    @Test
    func `Closing ends every call with CANCELLED, also those that come later`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        let writes = writes()
        let task = Task { try await client.commit(writes) }
        await server.waitForCalls(1)
        await client.close()
        for result in [await task.result, await Task { try await client.commit(writes) }.result] {
            #expect {
                try result.get()
            } throws: {
                ($0 as? RequestError)?.code == .cancelled
            }
        }
    }

    @Test
    func `Waiting for a switch of the network ends if the client is closed`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server)
        client.switchNetwork(false)
        await client.networkSwitched()
        await client.close()
        let hasEnded = Atomic(false)
        Task {
            await client.networkSwitched()
            hasEnded.store(true, ordering: .relaxed)
        }
        try await eventually("the wait has ended") { hasEnded.load(ordering: .relaxed) }
    }

    @Test
    func `A document is read with its times and its bytes as they are; a missing one is nil`() async throws {
        let name = "\(database.documentsRoot)/books/b1"
        let fields: [UInt8] = [0x12, 0x07, 0x0a, 0x01, 0x61, 0x12, 0x02, 0x10, 0x05]
        let message = DocumentMessage(
            name: name, fields: fields, createTime: Self.time, updateTime: TimestampValue(seconds: 9, nanoseconds: 0)
        ).encodedBytes()
        let server = try FakeServer { call in
            let request = try! GetDocumentRequest(wire: call.payload.span.bytes)
            return request.name == name ? .respond(message) : .fail(.notFound, "none")
        }
        let client = try client(server)
        let document = try #require(try await client.getDocument(name))
        expectEqual(document.fields, fields)
        expectEqual(document.createTime, Self.time)
        expectEqual(document.updateTime.seconds, 9)
        try await expectNil(client.getDocument("other"))
        await client.close()
    }

    @Test
    func `A stream that is cut in the middle is started again as long as its result is not delivered`() async throws {
        let root = database.documentsRoot
        @Sendable func message(_ number: Int) -> [UInt8] {
            RunQueryResponse(
                document: DocumentMessage(name: "\(root)/c/\(number)", fields: []), readTime: Self.time
            ).encodedBytes()
        }
        let first = try FakeServer { _ in .hold }
        let port = first.port
        let client = try client(first)
        async let documents = client.runQuery(RunQueryRequest(parent: root, query: StructuredQuery()))
        await first.waitForCalls(1)
        first.cut()
        let second = try FakeServer(port: port) { _ in .stream((0..<3).map(message)) }
        try await expectEqual(documents.map(\.name), (0..<3).map { "\(root)/c/\($0)" })
        expectEqual(second.calls.count, 1)
        await client.close()
    }

    @Test
    func `A stream is read at the consumer's pace, and ending early cancels it`() async throws {
        let server = try FakeServer { _ in .longStream(count: 10_000, byteCount: 10_000) }
        let client = try client(server)
        do {
            let stream = client.stream(.runQuery, [], options: .standard)
            let first = try await stream.next()
            expectEqual(first?.count, 10_000)
            for _ in 0..<200 { try await expect(stream.next() != nil) }
        }
        await server.waitForCancellations(1)
        expect(server.producedCount < 2000, "a slow reader does not make the server run ahead")
        await client.close()
    }

    @Test
    func `A whole stream arrives, in order`() async throws {
        let server = try FakeServer { _ in .longStream(count: 3000, byteCount: 5000) }
        let client = try client(server)
        let stream = client.stream(.runQuery, [], options: .standard)
        var count = 0
        while let message = try await stream.next() {
            expectEqual(message.count, 5000)
            expectEqual(message[0], UInt8(truncatingIfNeeded: 2999 - count))
            count += 1
        }
        expectEqual(count, 3000)
        await client.close()
    }

    @Test(arguments: [1, 2])
    func `Many tasks share few connections and every call gets its own answer`(eventLoops: Int) async throws {
        let server = try FakeServer(loops: 2) { call in .respond(call.payload) }
        let client = try client(server) {
            $0.eventLoops = eventLoops
            $0.callsPerConnection = 8
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
                group.addTask {
                    for call in 0..<50 {
                        let payload = Array("\(task).\(call)".utf8)
                        let answer = try await client.call(
                            .getDocument, payload, kind: .repeatable, options: .standard)
                        expectEqual(answer, payload)
                    }
                }
            }
            try await group.waitForAll()
        }
        expectEqual(server.calls.count, 64 * 50)
        await client.close()
    }

    @Test
    func `With the network off, calls that do not wait fail, and the others wait until it is on`() async throws {
        let server = try FakeServer { _ in .respond(Self.committed) }
        let client = try client(server)
        try await client.commit(writes())
        client.switchNetwork(false)
        await client.networkSwitched()
        await #expect {
            _ = try await client.getDocument("x", options: .failFast)
        } throws: {
            ($0 as? RequestError)?.code == .unavailable
        }
        async let late = client.commit(writes())
        client.switchNetwork(true)
        await client.networkSwitched()
        try await expectEqual(late.commitTime, Self.time)
        await client.close()
    }
}
