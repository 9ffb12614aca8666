// Figures of the last hour, for the console: a sample every five seconds, in memory.
//
// Most figures are totals since the start; the page makes rates of them. Times are of the calls and syncs between two
// samples, since a total says nothing about the present.

internal import Basics
internal import DocumentJSON
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService
internal import Storage
internal import Synchronization

/// Samples of the last hour. Thread-safe; about 200 KB.
final class ConsoleHistory: Sendable {
    static let intervalSeconds = 5
    private static let samplesMax = 3_600 / intervalSeconds

    /// What a sample has, in its order.
    private static let names = [
        "time", "commits", "documentsWritten", "documentsRead", "calls", "listenMessages", "streamsOpen",
        "requestMedian", "requestTail", "syncMedian", "syncTail", "queuedRequests", "memtableBytes", "runs", "runBytes",
        "logBytes", "mergePendingBytes", "merges", "mergeSeconds", "checkpoints", "historyEntries", "residentBytes",
        "anonymousBytes", "heapBytes",
    ]

    private struct State {
        var samples: [[Double]] = []
        /// Where the next sample goes once all places are taken.
        var next = 0
        var requests = HistogramReading()
        var syncs = HistogramReading()
        var levels: [UInt64] = []
    }

    private let stores: [ServedStore]
    private let counters: [ServiceCounters]
    private let state = Mutex(State())

    init(_ stores: [ServedStore], counters: [ServiceCounters]) {
        self.stores = stores
        self.counters = counters
    }

    /// Takes a sample.
    func sample() {
        let stores = StoreSums(stores.map(\.store.statistics))
        let totals = CounterTotals(counters)
        let memory = ProcessMemory.current
        var requests = HistogramReading()
        for method in Method.allCases {
            for loop in counters { requests.add(loop.latency(method)) }
        }
        state.withLock { state in
            let requestTimes = Self.difference(requests, state.requests)
            let syncTimes = Self.difference(stores.syncs, state.syncs)
            state.requests = requests
            state.syncs = stores.syncs
            state.levels = stores.levelBytes
            let before: [Double] = [
                Double(SystemClock.wallNanoseconds()) / 1e9, stores.commits, stores.documentsWritten,
                Double(totals["documents_read"] ?? 0), Double(requests.count), Double(totals["listen_messages"] ?? 0),
                Double(totals["streams_open"] ?? 0), Self.quantile(0.5, requestTimes),
                Self.quantile(0.99, requestTimes), Self.quantile(0.5, syncTimes), Self.quantile(0.99, syncTimes),
            ]
            let process = [Double(memory.resident), Double(memory.anonymous), Double(memory.heapUsed)]
            let values = before + stores.sizes + process
            if state.samples.count < Self.samplesMax { return state.samples.append(values) }
            state.samples[state.next] = values
            state.next = (state.next + 1) % Self.samplesMax
        }
    }

    /// The samples, the oldest first.
    var json: JSONValue {
        let (samples, levels) = state.withLock { state in
            (Array(state.samples[state.next...] + state.samples[..<state.next]), state.levels)
        }
        return .object([
            "intervalSeconds": .integer(Int64(Self.intervalSeconds)),
            "names": .array(Self.names.map { .string($0) }),
            "samples": .array(samples.map { .array($0.map { .double($0) }) }),
            "levelBytesWritten": .array(levels.map { .integer(Int64(clamping: $0)) }),
        ])
    }

    private static func difference(_ new: HistogramReading, _ old: HistogramReading) -> [UInt64] {
        zip(new.counts, old.counts).map { $0 &- $1 }
    }

    /// The bound, in seconds, below which a share of the values lies; 0 without values.
    private static func quantile(_ share: Double, _ counts: [UInt64]) -> Double {
        let total = counts.reduce(0, &+)
        guard total > 0 else { return 0 }
        var below: UInt64 = 0
        for (bucket, count) in counts.enumerated() {
            below &+= count
            if Double(below) >= share * Double(total) { return Double(HistogramReading.upperBound(bucket)) / 1e9 }
        }
        return 0
    }
}

/// The figures of all stores together, in the order of a sample.
private struct StoreSums {
    var commits = 0.0
    var documentsWritten = 0.0
    var syncs = HistogramReading()
    /// From `queuedRequests` to `historyEntries`.
    var sizes = [Double](repeating: 0, count: 10)
    /// Bytes written to runs, by level.
    var levelBytes: [UInt64] = []

    init(_ stores: [StoreStatistics]) {
        for store in stores {
            let engine = store.engine
            commits += Double(store.commits)
            documentsWritten += Double(store.documentsWritten)
            syncs.add(engine.syncNanoseconds)
            let own: [Double] = [
                Double(store.requestsQueued), Double(engine.memtableBytes), Double(engine.runs),
                Double(engine.runBytes), Double(engine.logBytesWritten), Double(engine.mergePendingBytes),
                Double(engine.merges), Double(engine.mergeNanoseconds) / 1e9, Double(engine.checkpoints),
                Double(engine.historyEntries),
            ]
            for (index, value) in own.enumerated() { sizes[index] += value }
            for (level, bytes) in engine.runBytesWritten.enumerated() {
                if level == levelBytes.count { levelBytes.append(0) }
                levelBytes[level] &+= bytes
            }
        }
    }
}
