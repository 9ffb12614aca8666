// Limits of one caller over sockets: requests, refusals, connections, WebChannel sessions.

import Authorization
import AuthorizationTestSupport
import Basics
import Calls
import ConnectionTestSupport
import FirestoreMessages
import Identity
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct CallerLimitTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"
    private static let permitted = "match /{p=**} { allow read, write; }"

    /// A server that lets everyone read and write. A closed one trusts this machine to name the client of each request.
    private func live(
        _ rates: CallerRates, _ rules: String = permitted, mode: SecurityMode = .closed,
        _ change: (inout DatabaseServerConfiguration) -> Void = { _ in }
    ) throws -> LiveDatabaseServer {
        let authorization = try TestAuthorization.make(rules, mode: mode, rates: rates)
        return try LiveDatabaseServer {
            $0.authorization = authorization
            $0.observation = ObservationOptions(host: "127.0.0.1", port: 0)
            if mode == .closed { $0.transport.trustedProxies = Self.thisMachine }
            change(&$0)
        }
    }

    private static let thisMachine = TrustedProxies([NetworkRange("127.0.0.0/8")].compactMap { $0 })

    /// The statuses of requests of one client, as many as there are.
    private func statuses(
        _ live: LiveDatabaseServer, _ count: Int, from client: String?, _ header: String? = nil,
        over http: HTTPTestClient? = nil
    ) -> [Int?] {
        let http = http ?? HTTPTestClient(port: Int(live.gateway.port))
        let headers =
            (client.map { ["X-Forwarded-For: \($0)"] } ?? []) + (header.map { ["Authorization: \($0)"] } ?? [])
        return (0..<count).map { _ in http.request("GET", Self.document, headers: headers)?.status }
    }

    /// How many of so many requests are served; the others get 429.
    private func served(_ statuses: [Int?]) -> Int {
        expect(statuses.allSatisfy { $0 == 200 || $0 == 404 || $0 == 429 }, "\(statuses)")
        return statuses.count { $0 != 429 }
    }

    private func limited(_ live: LiveDatabaseServer, _ limit: String) -> String? {
        let page = HTTPTestClient(port: Int(live.gateway.observationPort ?? 0)).request("GET", "/metrics")?.body
        let name = "hearth_limited_total{limit=\"\(limit)\"} "
        return page?.split(separator: "\n").first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
    }

    @Test func `A client has its share of requests, and the next one is not concerned`() throws {
        let live = try live(CallerRates(networkRequests: 20))
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let all = statuses(live, 200, from: "192.0.2.1", over: http)
        let count = served(all)
        expect(count >= 40 && all.prefix(40).allSatisfy { $0 == 404 })
        expectEqual(served(statuses(live, 20, from: "192.0.2.2")), 20)
        expectEqual(served(statuses(live, 20, from: "2001:db8::1")), 20)
    }

    @Test func `A call beyond the limit says when to come again, and is counted`() throws {
        let live = try live(CallerRates(networkRequests: 1))
        let http = HTTPTestClient(port: Int(live.gateway.port))
        var refused: HTTPTestClient.Reply?
        for _ in 0..<100 where refused == nil {
            let reply = http.request("GET", Self.document, headers: ["X-Forwarded-For: 192.0.2.1"])
            if reply?.status == 429 { refused = reply }
        }
        let reply = try #require(refused)
        expect(reply.headers["retry-after"] == "1" || reply.headers["retry-after"] == "2")
        expect(reply.body.contains("RESOURCE_EXHAUSTED") && reply.body.contains("from this address"))
        expect(limited(live, "address_requests").flatMap { Int($0) } ?? 0 >= 1)
    }

    @Test func `Each user has a share; principals have no limit`() throws {
        let live = try live(CallerRates(userRequests: 1), mode: .emulator)
        let (ada, eve) = (TestAuthorization.user("ada"), TestAuthorization.user("eve"))
        expect(2..<100 ~= served(statuses(live, 100, from: nil, ada)))
        expectEqual(served(statuses(live, 2, from: nil, eve)), 2)
        expectEqual(served(statuses(live, 100, from: nil, "Bearer owner")), 100)
        expect(limited(live, "user_requests") != "0" && limited(live, "address_requests") == "0")
    }

    private func commit(_ live: LiveDatabaseServer, from client: String, over http: HTTPTestClient) -> Int? {
        let body = """
            {"writes": [{"update": {"name": "projects/p/databases/d/documents/c/x", "fields": {}}}]}
            """
        return http.request(
            "POST", "/v1/projects/p/databases/d/documents:commit", body: body, headers: ["X-Forwarded-For: \(client)"])?
            .status
    }

    @Test func `Commits of an address have a limit, and its reads continue`() throws {
        var rates = CallerRates()
        rates.networkCommits = 1
        let live = try live(rates)
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let all = (0..<100).map { _ in commit(live, from: "192.0.2.1", over: http) }
        let count = served(all)
        expect(2..<100 ~= count && all.prefix(2) == [200, 200])
        expectEqual(served(statuses(live, 20, from: "192.0.2.1")), 20)
        expectEqual(commit(live, from: "192.0.2.2", over: http), 200)
        expectEqual(limited(live, "address_commits"), "\(100 - count)")
    }

    @Test func `Rules that work too much keep the calls of their caller waiting`() throws {
        var rates = CallerRates()
        rates.networkRuleWork = 1
        let live = try live(rates, "match /{p=**} { allow read: if request.time != null; }")
        let all = statuses(live, 200, from: "192.0.2.1")
        expect(1..<200 ~= served(all) && all.first == 404)
        expectEqual(served(statuses(live, 1, from: "192.0.2.2")), 1)
        expect(limited(live, "address_rule_work") != "0" && limited(live, "address_requests") == "0")
    }

    @Test func `An address listens to so many targets, on all of its streams`() throws {
        var rates = CallerRates()
        rates.networkListeners = 3
        let live = try live(rates)
        func listen(_ targets: ClosedRange<Int32>, from client: String) -> HTTP2Client {
            let grpc = HTTP2Client(port: live.gateway.port)
            let stream = grpc.newStream()
            grpc.send(
                .request(
                    FirestoreMessages.Method.listen.paths[0], stream: stream, fields: [("x-forwarded-for", client)]))
            for id in targets {
                let target = ListenTarget(.documents([Harness.name("c/x")]), id: id)
                let request = ListenRequest(database: Harness.database, .add(target)).encodedBytes()
                grpc.send(.data(grpcMessage(request), stream: stream, endStream: false))
            }
            return grpc
        }
        func changes(_ grpc: HTTP2Client) -> [ListenResponse.TargetChange] {
            (grpc.transcript.answers[1]?.messages ?? []).compactMap { bytes in
                guard case .targetChange(let change)? = try? ListenResponse(wire: bytes.byteSpan) else { return nil }
                return change
            }
        }
        func removed(_ grpc: HTTP2Client) -> [Int32] {
            changes(grpc).filter { $0.kind == .remove && $0.cause?.code == .resourceExhausted }.flatMap(\.targets)
        }
        func isCurrent(_ grpc: HTTP2Client, _ id: Int32) -> Bool {
            changes(grpc).contains { $0.kind == .current && $0.targets == [id] }
        }
        let first = listen(1...2, from: "192.0.2.1")
        expect(first.read { _ in isCurrent(first, 2) })
        let second = listen(1...3, from: "192.0.2.1")
        expect(second.read { _ in removed(second) == [2, 3] && isCurrent(second, 1) })
        let other = listen(1...3, from: "192.0.2.2")
        expect(other.read { _ in isCurrent(other, 3) })
        expectEqual(limited(live, "address_listeners"), "2")
        first.raw.finishSending()
        try waitUntil("the targets of a stream that has ended are free") {
            let next = listen(1...1, from: "192.0.2.1")
            return next.read { _ in isCurrent(next, 1) || !removed(next).isEmpty } && isCurrent(next, 1)
        }
    }

    @Test func `A client that repeats bad tokens is slowed, and its connection ends`() throws {
        let live = try live(CallerRates(networkRefusals: 5))
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let answers = statuses(live, 5, from: "192.0.2.1", "Bearer a.b.c", over: http)
        expectEqual(answers, Array(repeating: 401, count: 5))
        var last: HTTPTestClient.Reply?
        var count = 0
        while count < 5_000 {
            let headers = ["X-Forwarded-For: 192.0.2.1", "Authorization: Bearer a.b.c"]
            guard let reply = http.request("GET", Self.document, headers: headers) else { break }
            expect(reply.status == 429 || reply.status == 401)
            last = reply
            count += 1
        }
        expect(count > 50 && count < 5_000)
        expectEqual(last?.status, 429)
        expectEqual(statuses(live, 1, from: "192.0.2.2", "Bearer a.b.c"), [401])
    }

    @Test func `An address has so many connections`() throws {
        let live = try LiveDatabaseServer {
            $0.transport.networkConnectionsMax = 3
            $0.transport.countsPrivateNetworks = true
        }
        // The fixture has one.
        expectEqual(live.call(.healthCheck, []).outcome.code, .ok)
        var held: [HTTPTestClient] = []
        for _ in 0..<2 {
            held.append(HTTPTestClient(port: Int(live.gateway.port)))
            expectEqual(held.last?.request("GET", "/livez")?.status, 200)
        }
        let refused = try #require(HTTPTestClient(port: Int(live.gateway.port)).request("GET", "/livez"))
        expect(refused.status == 429 && refused.headers["retry-after"] == "1")
        expect(refused.body.contains("more than 3 connections"))
        let page = held[0].request("GET", "/metrics")?.body ?? ""
        expect(page.contains("\nhearth_limited_total{limit=\"address_connections\"} 1\n"))
        held.removeLast()
        try waitUntil("a connection is free") {
            HTTPTestClient(port: Int(live.gateway.port)).request("GET", "/livez")?.status == 200
        }
    }

    @Test func `Connections of private networks and trusted proxies are not counted`() throws {
        for countsPrivate in [false, true] {
            let live = try LiveDatabaseServer {
                $0.transport.networkConnectionsMax = 1
                $0.transport.countsPrivateNetworks = countsPrivate
                if countsPrivate { $0.transport.trustedProxies = Self.thisMachine }
            }
            let held = (0..<4).map { _ in HTTPTestClient(port: Int(live.gateway.port)) }
            for client in held { expectEqual(client.request("GET", "/livez")?.status, 200) }
        }
    }

    @Test func `An address has so many WebChannel sessions`() throws {
        let live = try live(CallerRates()) { $0.webChannel.networkSessionsMax = 2 }
        let channel = "/google.firestore.v1.Firestore/Write/channel?VER=8"
        func request(_ query: String, from client: String, body: String) -> HTTPTestClient.Reply? {
            HTTPTestClient(port: Int(live.gateway.port)).request(
                "POST", channel + query, body: body, headers: ["X-Forwarded-For: \(client)"])
        }
        var opened: [String] = []
        for _ in 0..<2 {
            let reply = try #require(request("&RID=1", from: "192.0.2.1", body: "count=0"))
            opened.append(reply.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? "")
        }
        expectEqual(request("&RID=1", from: "192.0.2.1", body: "count=0")?.status, 429)
        expectEqual(request("&RID=1", from: "192.0.2.2", body: "count=0")?.status, 200)
        expectEqual(request("&SID=\(opened[0])&TYPE=terminate", from: "192.0.2.1", body: "")?.status, 200)
        try waitUntil("a session has ended") {
            request("&RID=1", from: "192.0.2.1", body: "count=0")?.status == 200
        }
        expectEqual(request("&RID=1", from: "192.0.2.1", body: "count=0")?.status, 429)
    }
}
