// What /metrics says. Every family is described in docs/metrics.md.
//
// The loops count by plain loads and stores on separate memory; the page adds up what it finds there. Only what the
// transport counts is asked of each loop, so the answer comes a turn later.

internal import Basics
internal import Connections
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService
internal import Glibc
internal import HTTPProtocols
internal import Storage
internal import Synchronization

final class MetricsPage: Sendable {
    private let counters: [ServiceCounters]
    private let stores: [ServedStore]
    private let sessions: WebChannelTable
    private let version: String
    private let collections: CollectionTable
    /// The bound of the memory of the listeners of all loops.
    private let listenerBytesMax: Int
    /// The budget of `--memory`, in bytes; nil without one.
    private let memoryBudget: Int?
    /// Requests that limits of callers have refused, by limit.
    private let limited: @Sendable () -> [(label: String, count: UInt64)]
    /// What new connections are secured with; nil without TLS.
    private let tls: ServerTLS?
    /// Set once the server runs, before which nobody asks.
    private let server = Mutex<SocketServer?>(nil)
    /// Seconds since 1970 at which the server was started.
    private let startedAt: Double

    /// - Parameters:
    ///   - sessions: those of WebChannel.
    ///   - collections: what is known of collections.
    ///   - limited: requests that limits of callers have refused, by limit.
    ///   - tls: what new connections are secured with; nil without TLS.
    init(
        counters: [ServiceCounters], _ stores: [ServedStore], sessions: WebChannelTable, version: String,
        collections: CollectionTable, listenerBytesMax: Int = 0, memoryBudget: Int? = nil,
        limited: @escaping @Sendable () -> [(label: String, count: UInt64)] = { [] },
        tls: ServerTLS? = nil
    ) {
        self.limited = limited
        self.tls = tls
        self.collections = collections
        self.listenerBytesMax = listenerBytesMax
        self.memoryBudget = memoryBudget
        self.counters = counters
        self.stores = stores
        self.sessions = sessions
        self.version = version
        startedAt = Self.now()
    }

    func setServer(_ server: SocketServer?) { self.server.withLock { $0 = server } }

    func answer(_ exchange: HTTPExchange) {
        guard let server = server.withLock({ $0 }) else { return exchange.reply(.unavailable, "starting\n") }
        server.statistics { [self] statistics in
            exchange.loop.execute { [self] in
                let text = text(statistics)
                exchange.reply(.ok, contentType: MetricsText.contentType) { $0.append(utf8: text) }
            }
        }
    }

    func text(_ transport: ServerStatistics) -> String {
        var page = MetricsText()
        appendService(&page)
        appendTransport(transport, &page)
        StoreFigures(stores).append(to: &page)
        appendCollections(&page)
        appendMemory(&page)
        appendProcess(&page)
        return page.text
    }

    /// One microsecond to one minute, each bucket twice as wide as the one before.
    private static let timeBuckets = 10...36

    private func appendService(_ page: inout MetricsText) {
        let totals = CounterTotals(counters)
        page.family("hearth_requests_total", .counter, "Completed calls, by method and status code.")
        for method in Method.allCases {
            for code in StatusCode.allCases {
                let count = counters.reduce(0) { $0 &+ $1.callsEnded(method, code) }
                if count > 0 { page.sample(["method": method.label, "code": code.description], count) }
            }
        }
        page.family("hearth_request_seconds", .histogram, "Time from the arrival to the response, by method.")
        for method in Method.allCases {
            var reading = HistogramReading()
            for loop in counters { reading.add(loop.latency(method)) }
            guard reading.count > 0 else { continue }
            page.histogram(["method": method.label], reading, buckets: Self.timeBuckets, scale: 1e9)
        }
        page.family("hearth_documents_total", .counter, "Documents read, and documents requested but missing.")
        page.sample(["operation": "read"], totals["documents_read"] ?? 0)
        page.sample(["operation": "missing"], totals["documents_missing"] ?? 0)
        page.single("hearth_writes_total", .counter, "Writes submitted to the store.", totals["writes_submitted"] ?? 0)
        page.single(
            "hearth_calls_abandoned_total", .counter, "Calls cancelled by the client or past their deadline.",
            totals["calls_abandoned"] ?? 0)
        page.single(
            "hearth_listen_messages_total", .counter, "Messages sent to listeners.", totals["listen_messages"] ?? 0)
        page.single("hearth_streams_open", .gauge, "Open streaming responses.", totals["streams_open"] ?? 0)
    }

    private func appendTransport(_ transport: ServerStatistics, _ page: inout MetricsText) {
        page.single("hearth_connections_total", .counter, "Accepted connections.", transport.connectionsOpened)
        page.family("hearth_connections_open", .gauge, "Open connections, by protocol.")
        page.sample(["protocol": "hearth"], transport.hearthConnectionsOpen)
        page.sample(["protocol": "http1"], transport.http1ConnectionsOpen)
        page.sample(["protocol": "http2"], transport.http2ConnectionsOpen)
        let known = transport.hearthConnectionsOpen &+ transport.http1ConnectionsOpen &+ transport.http2ConnectionsOpen
        page.sample(["protocol": "unknown"], transport.connectionsOpen &- known)
        page.family(
            "hearth_tls_certificate_expiry_seconds", .gauge,
            "When the certificate expires, in seconds since 1970; infinite if it does not, and without TLS.")
        page.append("", [], tls?.certificateExpires.map(String.init) ?? "+Inf")
        page.family(
            "hearth_tls_crl_expiry_seconds", .gauge,
            "When the first revocation list expires, in seconds since 1970; infinite without one.")
        page.append("", [], tls?.revocationListExpires.map(String.init) ?? "+Inf")
        page.single("hearth_web_sessions_open", .gauge, "Open WebChannel sessions.", sessions.count)
        page.single("hearth_web_session_bytes", .gauge, "Bytes that WebChannel sessions hold.", sessions.heldBytesTotal)
        page.single("hearth_calls_open", .gauge, "Open calls.", transport.callsOpen)
        page.single(
            "hearth_connections_refused_total", .counter, "Connections beyond the connection limit.",
            transport.connectionsRefused)
        page.family(
            "hearth_limited_total", .counter,
            "Connections, sessions, requests, commits and listeners beyond a limit of their caller.")
        page.sample(["limit": "address_connections"], transport.networkConnectionsRefused)
        page.sample(["limit": "address_web_sessions"], sessions.refusedCount)
        for (label, count) in limited() { page.sample(["limit": label], count) }
        page.single(
            "hearth_protocol_errors_total", .counter, "Connections closed because of a protocol error.",
            transport.protocolErrors)
        page.single(
            "hearth_deadlines_exceeded_total", .counter, "Calls that ended because their deadline passed.",
            transport.deadlinesExceeded)
        page.single(
            "hearth_replies_stalled_total", .counter, "Streaming responses ended because the client did not read them.",
            transport.repliesStalled)
        page.family(
            "hearth_loop_iteration_seconds_max", .gauge, "Longest iteration of each event loop in the last minutes.")
        for (loop, nanoseconds) in transport.longestIterations.sorted(by: { $0.key < $1.key }) {
            page.sample(["loop": loop], Double(nanoseconds) / 1e9)
        }
        page.single("hearth_received_bytes_total", .counter, "Bytes received.", transport.bytesReceived)
        page.single("hearth_sent_bytes_total", .counter, "Bytes sent.", transport.bytesSent)
    }

    private func appendCollections(_ page: inout MetricsText) {
        collections.append(to: &page)
        collections.append(CollectionUse.most(counters, max: CollectionTable.groupsMax), to: &page)
    }

    /// The parts of memory that have a bound, and these bounds.
    private func appendMemory(_ page: inout MetricsText) {
        let all = stores.map(\.store)
        func used(_ value: (StoreStatistics) -> Int) -> Int { all.reduce(0) { $0 + value($1.statistics) } }
        func most(_ value: (StoreConfiguration) -> Int) -> Int { all.reduce(0) { $0 + value($1.configuration) } }
        let memtables = used { $0.engine.memtableBytes }
        let memtablesMax = most { 2 * EngineOptions.memtableGrowthMax * $0.engine.memtableBytesMax }
        let (queued, queuedMax) = (used { $0.bytesQueued }, most { $0.queuedBytesMax })
        let (transactions, transactionsMax) = (used { $0.transactionBytes }, most { $0.transactionBytesMax })
        let locks = used { $0.lockBytes }
        let locksMax = most { $0.shareLocksMax * StoreConfiguration.shareLockBytes + $0.queuedBytesMax }
        let (results, resultsMax) = (used { $0.sessionBytes }, most { $0.sessionBytesMax })
        let (changes, changesMax) = (used { $0.changeBytes }, most { $0.changeFeedBytesMax })
        let (databases, databasesMax) = (used { $0.databaseBytes }, most { $0.databaseBytesMax })
        let parts: [(name: String, used: Int, most: Int)] = [
            ("memtables", memtables, memtablesMax), ("commit_queue", queued, queuedMax),
            ("transactions", transactions, transactionsMax), ("locks", locks, locksMax),
            ("commit_results", results, resultsMax), ("changes", changes, changesMax),
            ("databases", databases, databasesMax),
            ("web_sessions", sessions.heldBytesTotal, sessions.limits.bytesTotalMax),
            ("listeners", Int(clamping: counters.reduce(0) { $0 &+ $1.listenerBytes.value }), listenerBytesMax),
        ]
        page.family("hearth_memory_bytes", .gauge, "Memory of the parts that have a bound.")
        for part in parts { page.sample(["part": part.name], part.used) }
        // Connections, and the program itself.
        let others = max(0, ProcessMemory.current.anonymous - parts.reduce(0) { $0 + $1.used })
        page.sample(["part": "others"], others)
        page.family("hearth_memory_max_bytes", .gauge, "The bound of each part; of others, what the budget leaves.")
        for part in parts { page.sample(["part": part.name], part.most) }
        guard let memoryBudget else { return }
        page.sample(["part": "others"], max(0, memoryBudget - parts.reduce(0) { $0 + $1.most }))
        page.single("hearth_memory_budget_bytes", .gauge, "The budget of --memory.", memoryBudget)
    }

    // MARK: The process

    private func appendProcess(_ page: inout MetricsText) {
        page.family("hearth_build_info", .gauge, "Always 1; the label is the version.")
        page.sample(["version": version], 1)
        page.single(
            "process_start_time_seconds", .gauge, "Start time of the process, in seconds since 1970.", startedAt)
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        page.single(
            "process_cpu_seconds_total", .counter, "Processor time of the process.",
            Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime))
        let memory = ProcessMemory.current
        page.single(
            "process_resident_memory_bytes", .gauge, "Resident memory, including mapped files.", memory.resident)
        page.single(
            "process_anonymous_memory_bytes", .gauge, "Resident memory that no file has.", memory.anonymous)
        page.single("hearth_heap_used_bytes", .gauge, "Memory that is allocated and not freed.", memory.heapUsed)
        page.single("hearth_heap_free_bytes", .gauge, "Freed memory that the allocator keeps.", memory.heapFree)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static func now() -> Double { Double(SystemClock.wallNanoseconds()) / 1e9 }
}
