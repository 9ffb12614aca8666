// The replies of /readyz.

import DocumentModel
import DocumentStore
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct ReadinessTests {
    @Test func `A server is ready until it drains`() throws {
        let harness = try Harness()
        let readiness = Readiness([ServedStore(name: "main", harness.store, leader: nil)])
        expectNil(readiness.notReadyReason)
        readiness.drain()
        expectEqual(readiness.notReadyReason, "the server is draining")
    }

    @Test func `A store whose database cannot be reached counts only if that is so of all stores`() throws {
        let (first, second) = (try Harness(), try Harness())
        let served = [("a", first), ("b", second)].map { ServedStore(name: $0.0, $0.1.store, leader: nil) }
        let away = try ServedStore(away: "c", StoreConfiguration(directory: "/nowhere"), leader: nil)
        expectNil(Readiness([served[0], away]).notReadyReason)
        expectEqual(Readiness([away]).notReadyReason, "the database of the store c cannot be reached")
        try served[1].close()
        let reason = Readiness([served[0], away, served[1]]).notReadyReason
        expectEqual(reason, "b: the store b is being opened again")
        expect(!away.isOpen && away.isCutOff && away.store.databaseDescriptions.isEmpty)
    }

    @Test func `A server whose disk is full is alive and not ready, and serves reads`() throws {
        let live = try LiveDatabaseServer {
            $0.store.engine.runBytesMax = 1 << 20
            $0.store.engine.memtableBytesMax = 128 << 10
        }
        let fields = Harness.fields(["a": .bytes([UInt8](repeating: 7, count: 60_000))])
        var number = 0
        while try live.set("c/d\(number)", fields).code == .ok, number < 1_000 { number += 1 }
        try expectEqual(live.set("c/more", fields).code, .resourceExhausted)
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let page = try #require(http.request("GET", "/readyz"))
        expect(
            page.status == 503
                && page.body.hasPrefix("not ready: the disk is full; commits other than deletes are refused: "))
        expectEqual(http.request("GET", "/livez")?.status, 200)
        expectEqual(http.request("GET", "/v1/\(Harness.name("c/d0"))")?.status, 200)
        expectEqual(http.request("GET", "/metrics")?.body.contains("\nhearth_store_full 1\n"), true)
    }
}
