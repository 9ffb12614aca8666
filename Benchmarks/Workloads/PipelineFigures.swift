// What pipelines cost: groups of all documents, searches for two words, and stages that queries have as well.

import FirebaseFirestore
import Foundation

/// Figures of pipelines over the documents of `gen_docs COUNT texts` in the collection `texts`.
struct PipelineFigures {
    /// `HOST:PORT` of a server.
    let host: String
    /// The server's process, whose time is measured.
    let server: Int32
    /// Lines of two words each.
    let queries: String
    /// How often each measurement is taken.
    let runs: Int

    func run() async throws {
        let firestore = Firestore.benchClient(app: "pipelines", host: host, cache: .standard)
        try await groups(firestore)
        try await searches(firestore)
        try await firstTier(firestore)
        try await firestore.terminate()
    }

    // MARK: Groups

    private func groups(_ firestore: Firestore) async throws {
        let pipeline = firestore.pipeline().collection("texts")
            .aggregate(
                [CountAll().as("count"), Field("number").sum().as("sum"), Field("price").average().as("average")],
                groups: [Field("group")])
        var times: [Double] = []
        var groups = 0
        let start = serverTicks
        for _ in 0..<runs {
            let stopwatch = BenchStopwatch()
            groups = try await pipeline.execute().results.count
            times.append(stopwatch.elapsed)
        }
        print("groups\t\(groups)\t")
        print("group-by, processor\t\(number(Double(serverTicks - start) * 10 / Double(runs)))\tms")
        print("group-by\t\(number(times.sorted()[runs / 2]))\tms")
    }

    // MARK: Searches

    private func searches(_ firestore: Firestore) async throws {
        let lines = try String(contentsOfFile: queries, encoding: .utf8).split(separator: "\n").map(String.init)
        var times: [Double] = []
        var found = 0
        var start = serverTicks
        for run in 0...1 {
            start = serverTicks
            for words in lines {
                let matches = FunctionExpression(functionName: "document_matches", args: [Constant(words)])
                let pipeline = firestore.pipeline().collection("texts")
                    .rawStage(name: "search", params: [], options: ["query": matches, "limit": 20])
                let stopwatch = BenchStopwatch()
                let count = try await pipeline.execute().results.count
                // The first round fills caches.
                if run == 0 { continue }
                times.append(stopwatch.elapsed)
                found += count
            }
        }
        times.sort()
        print("search, processor\t\(number(Double(serverTicks - start) * 10 / Double(times.count)))\tms")
        print("search, results\t\(found)\t")
        print("search, p50\t\(number(times[times.count / 2]))\tms")
        print("search, p90\t\(number(times[times.count * 9 / 10]))\tms")
        print("search, p99\t\(number(times[times.count * 99 / 100]))\tms")
    }

    // MARK: What queries have as well

    private func firstTier(_ firestore: Firestore) async throws {
        let collection = firestore.collection("texts")
        let source = firestore.pipeline().collection("texts")
        let page = collection.whereField("group", isEqualTo: "group 7").limit(to: 20)
        let pagePipeline = source.where(Field("group").equal("group 7")).limit(20)
        try await compare(
            "page of 20", rounds: 2_000, { try await page.getDocuments(source: .server).count },
            { try await pagePipeline.execute().results.count })
        let range = collection.whereField("number", isGreaterThan: 5_000).order(by: "number").limit(to: 1_000)
        let rangePipeline = source.where(Field("number").greaterThan(5_000)).sort([Field("number").ascending()])
            .limit(1_000)
        try await compare(
            "range of 1,000", rounds: 150, { try await range.getDocuments(source: .server).count },
            { try await rangePipeline.execute().results.count })
        let scan = collection.whereField("group", isEqualTo: "group 7").whereField("number", isLessThan: 50_000)
        let scanPipeline = source.where(Field("group").equal("group 7") && Field("number").lessThan(50_000))
        try await compare(
            "two conditions", rounds: 150, { try await scan.getDocuments(source: .server).count },
            { try await scanPipeline.execute().results.count })
        let counted = collection.whereField("group", isEqualTo: "group 7").count
        let countPipeline = source.where(Field("group").equal("group 7")).aggregate([CountAll().as("n")])
        try await compare(
            "count of a group", rounds: 500,
            { Int(truncating: try await counted.getAggregation(source: .server).count) },
            { (try await countPipeline.execute().results[0].get("n") as? NSNumber)?.intValue ?? 0 })
    }

    /// Server time of a query and of the pipeline that says the same.
    private func compare(
        _ name: String, rounds: Int, _ query: () async throws -> Int, _ pipeline: () async throws -> Int
    ) async throws {
        let (expected, found) = (try await query(), try await pipeline())
        guard expected == found, found > 0 else { fatalError("\(name): \(found) results in the place of \(expected)") }
        var ticks = (query: 0, pipeline: 0)
        // In turn, since the load of the machine changes.
        for _ in 0..<2 * runs {
            var start = serverTicks
            for _ in 0..<rounds { _ = try await query() }
            ticks.query += serverTicks - start
            start = serverTicks
            for _ in 0..<rounds { _ = try await pipeline() }
            ticks.pipeline += serverTicks - start
        }
        let calls = Double(2 * runs * rounds)
        print("\(name), query\t\(number(Double(ticks.query) * 1e4 / calls))\tus")
        print("\(name), pipeline\t\(number(Double(ticks.pipeline) * 1e4 / calls))\tus")
    }

    /// Processor time of the server, in hundredths of a second.
    private var serverTicks: Int {
        let text = (try? String(contentsOfFile: "/proc/\(server)/stat", encoding: .utf8)) ?? ""
        let columns = text.split(separator: ")").last?.split(separator: " ") ?? []
        return columns.count > 12 ? (Int(columns[11]) ?? 0) + (Int(columns[12]) ?? 0) : 0
    }

    private func number(_ value: Double) -> String { String(format: "%.2f", value) }
}
