// /metrics of a real server: that the text parses, and that what was done is counted.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct MetricsTests {
    private static let root = "/v1/projects/p/databases/d/documents"

    /// A page of metrics, read as Prometheus reads it.
    private struct Page {
        /// Values by name and labels, as they stand: `name{a="b"}`.
        var samples: [String: Double] = [:]
        var types: [String: String] = [:]
        var problems: [String] = []

        init(_ text: String) {
            var help: Set<String> = []
            for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
                let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
                if line.hasPrefix("# HELP "), words.count == 4, !words[3].isEmpty {
                    if !help.insert(words[2]).inserted { problems.append("\(words[2]) has two HELP lines") }
                } else if line.hasPrefix("# TYPE "), words.count == 4,
                    ["counter", "gauge", "histogram"].contains(words[3])
                {
                    if !help.contains(words[2]) { problems.append("\(words[2]) has no HELP line before its TYPE") }
                    types[words[2]] = words[3]
                } else {
                    addSample(String(line))
                }
            }
        }

        private mutating func addSample(_ line: String) {
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
                return problems.append("no sample: \(line)")
            }
            let key = String(line[..<space])
            var name = String(key.prefix { $0 != "{" })
            if !name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }) {
                problems.append("bad name: \(line)")
            }
            if types[name] == nil {
                for suffix in ["_bucket", "_sum", "_count"] where name.hasSuffix(suffix) {
                    name.removeLast(suffix.count)
                }
                if types[name] != "histogram" { problems.append("no TYPE before: \(line)") }
            }
            if key.contains("{"), !key.hasSuffix("\"}") { problems.append("bad labels: \(line)") }
            if samples.updateValue(value, forKey: key) != nil { problems.append("twice: \(key)") }
        }

        /// Whether a histogram's cumulative counts rise to its total.
        func isSound(_ name: String, _ label: String = "") -> Bool {
            let buckets = samples.filter { $0.key.hasPrefix("\(name)_bucket{" + (label.isEmpty ? "" : "\(label),")) }
            let bounds = buckets.compactMap { key, value -> (bound: Double, count: Double)? in
                let bound = key.components(after: "le=\"")
                return bound == "+Inf" ? (.infinity, value) : Double(bound).map { ($0, value) }
            }.sorted { $0.bound < $1.bound }
            let total = samples["\(name)_count" + (label.isEmpty ? "" : "{\(label)}")]
            return bounds.count == buckets.count && bounds.count > 10 && bounds.last?.bound == .infinity
                && bounds.last?.count == total
                && zip(bounds, bounds.dropFirst()).allSatisfy { $0.count <= $1.count }
        }
    }

    @Test
    func `Collections are shown by their ids, and the parts of memory with their bounds`() throws {
        let directory = TemporaryDirectory("metrics")
        let data = directory.path(of: "data")
        let first = try ServerProcess(data: data)
        let writer = HTTPTestClient(port: first.port)
        for path in [
            "c?documentId=1", "c?documentId=2", "c/1/s?documentId=1", "c/2/s?documentId=1", "c/1/c?documentId=1",
        ] {
            expectEqual(
                writer.request("POST", "\(Self.root)/\(path)", body: #"{"fields":{"a":{"nullValue":null}}}"#)?.status,
                200)
        }
        expectEqual(first.stop(), 0)
        let server = try ServerProcess(
            data: data, arguments: ["--memory", "64MiB", "--max-queued-bytes", "3MiB"])
        let client = HTTPTestClient(port: server.port)
        var page = Page("")
        func value(_ name: String, _ collection: String) -> Double {
            page.samples["\(name){database=\"projects/p/databases/d\",collection=\"\(collection)\"}"] ?? -1
        }
        try waitUntil("the collections are shown") {
            page = Page(client.request("GET", "/metrics")?.body ?? "")
            return value("hearth_collection_documents", "c") > 0
        }
        expectEqual(page.problems, [])
        expect(value("hearth_collection_documents", "c") == 3 && value("hearth_collection_documents", "s") == 2)
        expect(value("hearth_collection_document_bytes", "c") > 0 && value("hearth_collection_index_entries", "c") > 0)
        let parts = [
            "memtables", "commit_queue", "transactions", "locks", "commit_results", "changes", "databases",
            "web_sessions", "listeners",
        ]
        let bounds = parts.map { part in
            page.samples["hearth_memory_max_bytes{part=\"\(part)\"}"].map { Int($0) / (1 << 20) }
        }
        expectEqual(bounds, [16, 3, 4, 1 + 3, 2, 1, 1, 8, 8])
        expect(page.samples["hearth_memory_bytes{part=\"databases\"}"] ?? 0 > 640)
        expect(page.samples["hearth_memory_bytes{part=\"memtables\"}"] != nil)
        expect(page.samples["hearth_memory_bytes{part=\"others\"}"] ?? 0 > 0)
        expectEqual(page.samples["hearth_memory_budget_bytes"], Double(64 << 20))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Reads and writes of collections are estimated`() throws {
        let directory = TemporaryDirectory("metrics")
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "1"])
        let client = HTTPTestClient(port: server.port)
        let names = (0..<500).map { "projects/p/databases/d/documents/\($0 % 5 == 0 ? "rare" : "often")/\($0)" }
        let writes = names.map { #"{"update":{"name":"\#($0)","fields":{}}}"# }.joined(separator: ",")
        for _ in 0..<20 {
            expectEqual(client.request("POST", "\(Self.root):commit", body: #"{"writes":[\#(writes)]}"#)?.status, 200)
        }
        let all = names.map { "\"\($0)\"" }.joined(separator: ",")
        for _ in 0..<20 {
            expectEqual(client.request("POST", "\(Self.root):batchGet", body: #"{"documents":[\#(all)]}"#)?.status, 200)
        }
        for _ in 0..<20 {
            let query = #"{"structuredQuery":{"from":[{"collectionId":"often"}]}}"#
            expectEqual(client.request("POST", "\(Self.root):runQuery", body: query)?.status, 200)
        }
        let page = Page(client.request("GET", "/metrics")?.body ?? "")
        expectEqual(page.problems, [])
        func value(_ name: String, _ collection: String) -> Double {
            let labels = "{database=\"projects/p/databases/d\",collection=\"\(collection)\"}"
            return page.samples["hearth_collection_\(name)_total\(labels)"] ?? 0
        }
        // Of 2,000 documents some 31 are looked at. The bounds are wider than four standard deviations.
        expect((10_000.0...22_000).contains(value("reads", "often")), "\(value("reads", "often")) of 16,000")
        expect((500.0...4_500).contains(value("reads", "rare")), "\(value("reads", "rare")) of 2,000")
        expect((4_500.0...11_500).contains(value("writes", "often")), "\(value("writes", "often")) of 8,000")
        expect((500.0...4_500).contains(value("writes", "rare")), "\(value("writes", "rare")) of 2,000")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A small budget of memory bounds connections; what is beyond is refused with UNAVAILABLE`() throws {
        let directory = TemporaryDirectory("metrics")
        let server = try ServerProcess(
            data: directory.path(of: "data"), arguments: ["--memory", "64MiB", "--loops", "1"])
        // An eighth of the budget, at 64 KiB each.
        let clients = (0..<128).map { _ in HTTPTestClient(port: server.port) }
        for client in clients { expectEqual(client.request("GET", "/livez")?.status, 200) }
        let refused = try #require(HTTPTestClient(port: server.port).request("GET", "/livez"))
        expect(refused.status == 503 && refused.body.contains("more than 128 connections"), "\(refused)")
        let page = Page(clients[0].request("GET", "/metrics")?.body ?? "")
        expectEqual(page.samples["hearth_memory_max_bytes{part=\"commit_queue\"}"], Double(4 << 20))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `The page is in Prometheus' format and counts what was done`() throws {
        let directory = TemporaryDirectory("metrics")
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "2"])
        for number in 0..<3 {
            // New connections, so that both loops have their share.
            let client = HTTPTestClient(port: server.port)
            expectEqual(client.request("POST", "\(Self.root)/c?documentId=\(number)", body: "{}")?.status, 200)
            expectEqual(client.request("GET", "\(Self.root)/c/\(number)")?.status, 200)
            expectEqual(client.request("GET", "\(Self.root)/c/none")?.status, 404)
            expectEqual(
                client.request(
                    "POST", "\(Self.root):runQuery", body: #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#)?
                    .status, 200)
            expectEqual(client.request("POST", "\(Self.root):commit", body: "{")?.status, 400)
        }
        let client = HTTPTestClient(port: server.port)
        let reply = try #require(client.request("GET", "/metrics"))
        expectEqual(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        let page = Page(reply.body)
        expectEqual(page.problems, [])
        let expected: [String: Double] = [
            #"hearth_requests_total{method="GetDocument",code="OK"}"#: 3,
            #"hearth_requests_total{method="GetDocument",code="NOT_FOUND"}"#: 3,
            #"hearth_requests_total{method="CreateDocument",code="OK"}"#: 3,
            #"hearth_requests_total{method="RunQuery",code="OK"}"#: 3,
            #"hearth_requests_total{method="Commit",code="INVALID_ARGUMENT"}"#: 3,
            #"hearth_request_seconds_count{method="GetDocument"}"#: 6,
            #"hearth_documents_total{operation="read"}"#: 3 + 3 + 1 + 2 + 3,
            #"hearth_documents_total{operation="missing"}"#: 3, "hearth_documents_written_total": 3,
            "hearth_commits_total": 3, "hearth_transactions_open": 0,
            #"hearth_connections_open{protocol="unknown"}"#: 0, "hearth_databases": 1,
            "hearth_connections_total": 4, "hearth_store_full": 0, "hearth_store_failed": 0,
        ]
        for (key, value) in expected { expectEqual(page.samples[key], value, "\(key)") }
        expect(page.samples[#"hearth_connections_open{protocol="http1"}"#] ?? 0 >= 1)
        expect(page.samples["process_resident_memory_bytes"] ?? 0 > 1_000_000)
        expect(page.samples["process_cpu_seconds_total"] ?? 0 > 0)
        let unsound = [
            ("hearth_request_seconds", #"method="GetDocument""#), ("hearth_sync_seconds", ""),
            ("hearth_commit_group_requests", ""),
        ]
        .filter { !page.isSound($0.0, $0.1) }.map(\.0)
        expectEqual(unsound, [])
        expectEqual(page.samples["hearth_commit_group_requests_sum"], 3)
        expectEqual(page.samples["hearth_sync_seconds_count"], page.samples["hearth_commit_groups_total"])
        expect(page.samples.keys.contains { $0.hasPrefix("hearth_build_info{version=\"") })
        expectEqual(server.stop(), 0)
    }
}

extension String {
    /// What stands between `prefix` and the next quote.
    fileprivate func components(after prefix: String) -> String {
        guard let start = firstRange(of: prefix)?.upperBound else { return "" }
        return String(self[start...].prefix { $0 != "\"" })
    }
}
