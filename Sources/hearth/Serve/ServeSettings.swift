// The settings of `hearth serve`.

import Calls
import Connections
import DocumentStore
import FirestoreService
import Glibc
import PostgreSQLLog
import Server

/// The settings of `hearth serve`, each declared once.
///
/// The default of a flag is the initial value of the property that it sets. A test compares this list with the tables
/// of docs/operations.md.
enum ServeSettings {
    /// The configuration of a server that is started without flags.
    static let defaults: DatabaseServerConfiguration = {
        var configuration = DatabaseServerConfiguration(
            store: StoreConfiguration(directory: "./hearth-data"), log: .standardError(level: .info))
        configuration.transport.port = 8080
        configuration.loops = max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1)
        configuration.store.expiryIntervalMilliseconds = 60_000
        configuration.store.engine.scrubMilliseconds = 7 * 86_400_000
        return configuration
    }()

    private static let anyCount = 1...100_000_000

    private static let location: [ServeSetting] = [
        .text("data", "DIR", \.store.directory, "The data directory. It is created if it does not exist."),
        .text("host", "HOST", \.transport.host, "The address or name to listen on."),
        .number("port", "PORT", in: 0...65_535, \.transport.port, "The port. With 0 the system chooses one."),
        .number(
            "loops", in: 1...1_024, \.loops,
            "Event loops; each is a thread that serves its own connections. The default is the number of cores."),
    ]

    static let metricsAddress = Flag<Endpoint>(
        "metrics-address", "HOST:PORT", required: false,
        help: """
            A further address, in plain text and without credentials, for /metrics and health checks alone. Then the \
            other address does not serve /metrics.
            """)

    private static let connections: [ServeSetting] = [
        .number(
            "max-connections", in: 1...10_000_000, \.transport.connectionsMax,
            """
            Open connections. A further connection is refused in its own protocol. A lower limit of file descriptors \
            lowers this number.
            """),
        .number("backlog", in: 1...65_535, \.transport.backlog, "Connections that wait to be accepted."),
        .number(
            "max-streams", in: 1...1_000_000, \.transport.streamsPerConnectionMax,
            "Open calls of one connection. A further call gets RESOURCE_EXHAUSTED."),
        .size(
            "max-message", in: .kibibytes(64)...gibibyte, \.transport.messageBytesMax,
            "Size of one request. A larger request gets RESOURCE_EXHAUSTED."),
        .size(
            "max-frame", in: .kibibytes(16)...mebibytes16, \.transport.frameBytesMax,
            "Size of one frame. Longer messages are split into frames."),
        .size(
            "max-assembly", in: .kibibytes(64)...ByteCount(bytes: 1 << 34), \.transport.assemblyBytesMax,
            "Bytes of incomplete messages on one connection. A call that exceeds it gets RESOURCE_EXHAUSTED."),
        .size(
            "stream-window", in: .kibibytes(16)...gibibyte, \.transport.initialWindowBytes,
            "Bytes that a client may send on a streaming call before the server has read them."),
        .size(
            "http2-window", in: .kibibytes(64)...gibibyte, \.transport.http2WindowBytes,
            "The same for one HTTP/2 stream."),
        .size(
            "http2-connection-window", in: .kibibytes(64)...gibibyte, \.transport.http2ConnectionWindowBytes,
            "The same for all streams of one HTTP/2 connection."),
        .size(
            "max-metadata", in: .kibibytes(1)...mebibyte, \.transport.metadataBytesMax,
            """
            Size of the header fields of one HTTP/2 request. A larger gRPC request gets RESOURCE_EXHAUSTED, any \
            other 431.
            """),
        .number(
            "max-resets", in: 1...1_000_000, \.transport.resetsMax,
            """
            Streams that an HTTP/2 client may reset, or on which it may break a rule, in a burst. A tenth of the \
            number is added each second; a client that exceeds it is disconnected.
            """),
        .number(
            "max-idle-frames", in: 10...10_000_000, \.transport.idleFramesMax,
            """
            HTTP/2 frames without effect, such as PING, that a client may send in a burst; refilled like \
            --max-resets.
            """),
        .time(
            "header-time", \.transport.headerMilliseconds,
            """
            Time for a new connection's first frame, and for a request head, a frame or a message to arrive \
            completely, counted from its first byte. A message gets one more second for each 16 KB received.
            """),
        .time(
            "idle-time", \.transport.idleMilliseconds,
            "A connection without calls is closed after this time without a frame. 0s disables it."),
        .time(
            "call-time", \.transport.defaultDeadlineMilliseconds,
            "Deadline of calls that carry none. 0s sets no deadline."),
        .size(
            "output-pause", in: .kibibytes(16)...gibibyte, \.transport.outputPauseBytes,
            "Unsent bytes at which the server stops reading from a slow reader's connection."),
        .size(
            "max-output", in: mebibyte...ByteCount(bytes: 1 << 34), \.transport.outputBytesMax,
            "Unsent bytes at which a slow reader's connection is closed."),
        .time(
            "slow-reader-time", \.transport.slowReaderMilliseconds,
            "A paused connection that reads almost nothing for this time is closed."),
        .time(
            "stalled-reply-time", \.transport.stalledReplyMilliseconds,
            """
            A streaming response that its client does not read for this time, on a connection that is alive, ends with \
            DEADLINE_EXCEEDED. 0s disables it.
            """),
    ]

    private static let http: [ServeSetting] = [
        .size(
            "max-http-head", in: .kibibytes(1)...ByteCount.kibibytes(32), \.transport.http1HeadBytesMax,
            "Size of the request line and header fields of an HTTP/1.1 request. A larger head gets 431 or 414."),
        .number(
            "max-http-headers", in: 1...10_000, \.transport.http1FieldsMax,
            "Header fields of an HTTP/1.1 request. A request with more gets 431."),
        .number(
            "max-web-sessions", in: 1...10_000_000, \.webChannel.sessionsMax,
            "WebChannel sessions of web pages; each page has up to two. A further one gets RESOURCE_EXHAUSTED."),
        .size(
            "web-session-bytes", in: .kibibytes(16)...gibibyte, \.webChannel.unacknowledgedBytesMax,
            """
            Bytes that a WebChannel session may send before its page acknowledges them. Then the response ends and the \
            page asks again.
            """),
        .size(
            "max-web-session-bytes", in: mebibyte...ByteCount(bytes: 1 << 40), \.webChannel.bytesTotalMax,
            "Bytes that all WebChannel sessions hold. A session that exceeds it gets RESOURCE_EXHAUSTED."),
        .time(
            "web-session-idle", in: .seconds(1)...TimeSpan.seconds(86_400), \.webChannel.idleMilliseconds,
            "A WebChannel session whose page has no open request ends after this time."),
        .number(
            "hsts", "SECONDS", in: 0...1_000_000_000, \.http.hstsSeconds,
            """
            How long browsers shall use encrypted connections alone for this host (Strict-Transport-Security). Sent \
            over TLS, and to clients of a trusted proxy that use it. 0 sends nothing.
            """),
    ]

    /// Settings whose value `auto` depends on `--host`.
    private static let allowHost = Flag(
        "allow-host", "HOSTS", default: "auto",
        help: """
            Host names that HTTP clients may use for this server, against DNS rebinding: any, local (localhost and \
            loopback addresses), a list of further names separated by commas, or auto, which means local if --host is \
            a loopback address and any otherwise.
            """
    ) { text in
        let expected = "auto, any, local, or names without ports, separated by commas"
        return text == "auto" || AllowedHosts(text) != nil ? nil : expected
    }
    private static let allowOrigin = Flag(
        "allow-origin", "ORIGINS", default: "local",
        help: """
            Origins of the web pages that may call this server: local (pages served from this machine), any, none, or \
            a list such as https://app.example.org, separated by commas.
            """
    ) { AllowedOrigins($0) == nil ? "local, any, none, or origins separated by commas" : nil }
    private static let emulatorEndpoints = Flag(
        "emulator-endpoints", "WHEN", default: "auto",
        help: """
            Whether DELETE /emulator/v1/projects/P/databases/D/documents deletes a database, as on the emulator: on, \
            off, or auto, which means on if --host is a loopback address.
            """
    ) { ["auto", "on", "off"].contains($0) ? nil : "auto, on or off" }

    private static let console = Flag(
        "console", "WHEN", default: "on",
        help: "Whether the console is served at /console, for callers that may administer the server: on or off."
    ) { ["on", "off"].contains($0) ? nil : "on or off" }

    private static let backupDirectory = Flag<String>(
        "backup-directory", "DIR", required: false,
        help: "The directory into which the console may write backups, each into a new one. Without it, it writes none."
    )

    private static let trustedProxies = Flag<NetworkRange>(
        repeatable: "trusted-proxy", "CIDR",
        help: """
            Addresses of proxies that add Forwarded or X-Forwarded-For to every request, or send a header of the PROXY \
            protocol (version 2) before each connection: the client's address is taken from it. From others neither is \
            believed. An open server refuses them anyway.
            """)

    private static let responses: [ServeSetting] = [
        .number("list-page", in: 1...100_000, \.service.listPageDocuments, "Documents on one page of ListDocuments."),
        .size(
            "list-page-bytes", in: .kibibytes(1)...gibibyte, \.service.listPageBytes,
            "Size at which a page of ListDocuments ends."),
        .number(
            "collection-id-page", in: 1...1_000_000, \.service.collectionIDPageEntries,
            "Ids on one page of ListCollectionIds."),
        .number(
            "max-batch-get", in: 1...10_000_000, \.service.batchGetDocuments,
            "Documents named by one BatchGetDocuments. More get INVALID_ARGUMENT."),
        .number(
            "max-batch-write", in: 1...10_000_000, \.service.batchWriteWrites,
            "Writes of one BatchWrite. More get INVALID_ARGUMENT. A Commit has no such limit."),
        .number(
            "max-partition-cursors", in: 1...100_000, \.service.partitionCursors,
            "Cursors that one PartitionQuery returns. Larger requests are capped at this number."),
    ]

    private static let commits: [ServeSetting] = [
        .number(
            "max-queued-requests", in: anyCount, \.store.queuedRequestsMax,
            "Commits that wait for the commit thread. The next one gets RESOURCE_EXHAUSTED."),
        .size(
            "max-queued-bytes", in: mebibyte...ByteCount(bytes: 1 << 40), \.store.queuedBytesMax,
            "Bytes of the commits that wait. The next one gets RESOURCE_EXHAUSTED."),
        .size(
            "group-bytes", in: .kibibytes(4)...ByteCount(bytes: 64 << 20), \.store.groupBytesMax,
            "Log bytes of one commit group, which is synced at once."),
        .size(
            "max-commit-work", in: mebibytes16...ByteCount(bytes: 1 << 40), \.store.commitWorkBytesMax,
            """
            Document bytes that the writes of one commit may read and rewrite. A commit with more gets \
            RESOURCE_EXHAUSTED.
            """),
        .number(
            "max-transactions", in: anyCount, \.store.transactionsMax,
            "Open transactions. The next one gets RESOURCE_EXHAUSTED."),
        .number(
            "max-connection-transactions", in: anyCount, \.store.transactionsPerConnectionMax,
            "Open transactions of one connection. The next one gets RESOURCE_EXHAUSTED."),
        .time("transaction-time", \.store.transactionLifetimeMilliseconds, "Age at which a transaction expires."),
        .time(
            "transaction-idle", \.store.transactionIdleMilliseconds,
            "Time without a read after which a transaction expires."),
        .number(
            "max-transaction-reads", in: anyCount, \.store.transactionReadsMax,
            "Documents and ranges that one transaction may read. A further read gets RESOURCE_EXHAUSTED."),
        .size(
            "max-transaction-bytes", in: mebibyte...ByteCount(bytes: 1 << 40), \.store.transactionBytesMax,
            "Bytes of the reads and writes that all open transactions keep. A further one gets RESOURCE_EXHAUSTED."),
        .time(
            "turn-time", \.store.turnMilliseconds,
            "How long a retried transaction may keep others waiting for the documents of its conflict."),
        .choice(
            "concurrency-mode", "MODE", [("optimistic", .optimistic), ("pessimistic", .pessimistic)],
            \.store.concurrencyMode,
            "How a transaction runs that does not choose: optimistic or pessimistic."),
        .time(
            "lock-wait", \.store.lockWaitMilliseconds,
            "How long a commit waits for locks. Then a transaction gets ABORTED and a plain commit proceeds."),
        .time(
            "lock-idle", \.store.lockIdleMilliseconds,
            "Idle time after which a transaction loses locks that others wait for."),
        .number(
            "max-locks", in: 1...1_000_000_000, \.store.shareLocksMax,
            "Locks of all pessimistic transactions. Further reads take no locks."),
        .size(
            "max-result-bytes", in: mebibyte...ByteCount(bytes: 1 << 40), \.store.sessionBytesMax,
            """
            Bytes of the results that are kept for commits that may be sent again. Beyond it, those of the clients \
            that were silent longest are forgotten.
            """),
        .number("max-databases", in: 1...4_000_000_000, \.store.databasesMax, "Databases in the data directory."),
        .size(
            "max-database-bytes", in: mebibyte...ByteCount(bytes: 1 << 40), \.store.databaseBytesMax,
            "Memory for the names of databases and what is known of them; those that were deleted count too."),
    ]

    private static let storage: [ServeSetting] = [
        .time(
            "retention", in: .seconds(0)...TimeSpan.seconds(7 * 86_400), \.store.engine.retentionMicroseconds,
            perMillisecond: 1_000,
            "How long earlier versions stay readable at a read_time. It bounds the age of transactions, too."),
        .size(
            "memtable", in: mebibyte...ByteCount(bytes: 64 << 30), \.store.engine.memtableBytesMax,
            """
            Memory of the memtable, which holds commits until a checkpoint writes them to a run: up to twice this \
            during a checkpoint, four times if checkpoints are slower than commits. A larger memtable makes writes \
            cheaper and recovery longer.
            """),
        .size(
            "log-segment", in: mebibyte...gibibyte, \.store.engine.logSegmentBytes,
            "Size of one log file. A file is recycled as a whole."),
        .size(
            "disk-reserve", in: ByteCount(bytes: 0)...ByteCount(bytes: 1 << 36), \.store.engine.diskReserveBytes,
            "Disk space reserved for commits that only delete, so that they succeed on a full disk. 0B reserves none."),
        .size(
            "max-data", in: mebibytes16...ByteCount(bytes: 1 << 46), \.store.engine.runBytesMax,
            """
            Size limit of all files of sorted runs together. At the limit commits get RESOURCE_EXHAUSTED.
            """),
        .choice(
            "automatic-indexes", "MODE", [("on", .on), ("off", .off), ("adaptive", .adaptive)],
            \.store.automaticIndexes,
            """
            on: every field is indexed when it is written. off: no field is; writes are cheaper and queries scan. \
            adaptive: the index of a field is built in the background when queries need it, and dropped when it is \
            long unused. After a change to on, the indexes are built in the background.
            """),
        .number(
            "adaptive-index-demand", in: anyCount, \.store.adaptiveIndexes.documentsDemanded,
            """
            adaptive: documents that queries must have read in vain before an index is built. A query with less than a \
            tenth of it is not counted.
            """),
        .time(
            "adaptive-index-unused", in: .seconds(1)...TimeSpan.seconds(400 * 86_400),
            \.store.adaptiveIndexes.unusedMilliseconds, "adaptive: time without use after which an index is dropped."),
        .number(
            "max-group-adaptive-indexes", in: 1...1_000, \.store.adaptiveIndexes.indexesPerGroupMax,
            "adaptive: indexes built on demand in one collection group."),
        .number(
            "max-adaptive-indexes", in: 1...10_000, \.store.adaptiveIndexes.indexesPerDatabaseMax,
            "adaptive: indexes built on demand in one database."),
        .choice(
            "index-mode", "MODE", [("lenient", false), ("strict", true)], \.service.requiresIndexes,
            """
            lenient runs every query. strict returns FAILED_PRECONDITION for a query that needs an index which is not \
            declared, as the cloud does.
            """),
        .number(
            "max-index-entries", in: 1...1_000_000, \.store.indexEntriesPerDocumentMax,
            "Index entries of one document. A write that makes more gets INVALID_ARGUMENT."),
        .size(
            "log-keep", in: .kibibytes(0)...ByteCount(bytes: 1 << 40), \.store.engine.logKeptBytes,
            """
            Size of the log to keep at least, beyond what recovery needs, for replicas that connect later. A replica \
            that needs older commits copies everything again.
            """),
        .size(
            "replica-max-lag", in: .kibibytes(0)...ByteCount(bytes: 1 << 40), \.store.engine.logFollowedBytesMax,
            """
            Size of the log to keep, beyond what recovery needs, for each replica that has not taken it, also for ten \
            minutes after it has gone and over a clean restart.
            """),
        .time(
            "ttl-interval", \.store.expiryIntervalMilliseconds,
            "Time between two sweeps that delete expired documents (field overrides with ttl). 0s disables them."),
        .time(
            "scrub-interval", \.store.engine.scrubMilliseconds,
            """
            Time in which all files are read once and verified, so that damage is found before the data are needed. 0s \
            disables it.
            """),
    ]

    static let forkOf = Flag<String>(
        "fork-of", "DIR", required: false,
        help: """
            Serves a fork of this data directory, beside it, which is deleted when the server ends: a full copy for a \
            test, whatever its size. In place of --data.
            """)
    static let follow = Flag<Endpoint>(
        "follow", "HOST:PORT", required: false,
        help: """
            Serves a replica of this server: copies its state when the data directory is empty, then applies its \
            commits. Writes are forwarded to it. HEARTH_FOLLOW_TOKEN is the token of a principal that administers the \
            source.
            """)
    static let followReadOnly = Flag(
        switch: "follow-read-only", help: "Refuses writes with the address of the source, instead of forwarding them.")
    static let strictReads = Flag(
        switch: "strict-reads",
        help: """
            Reads of a replica ask its source for the newest commit and wait for it. Without it they see what the \
            replica has.
            """)
    static let followTLS = Flag(
        switch: "follow-tls", help: "Encrypts the connection to the source; its certificate must verify.")
    static let followAuthorities = Flag<String>(
        "follow-ca", "FILE", required: false,
        help: "Authorities of the source's certificate, PEM, instead of those of the system. Implies --follow-tls.")
    static let cluster = Flag<String>(
        "cluster", "URL", required: false,
        help: """
            Serves a store whose log is in this PostgreSQL database, as one of several servers: \
            postgresql://USER@HOST:PORT/DATABASE, or the keywords of libpq. The data directory is a cache of the \
            store. Put a password into HEARTH_CLUSTER or a password file, since others see command lines.
            """)
    static let clusterStore = Flag(
        "cluster-store", "NAME", default: "main", help: "The store of the database that --cluster serves."
    ) { StoreTables.admits($0) ? nil : "at most 30 lower-case letters, digits and _" }
    static let clusterStores = Flag<String>(
        "cluster-stores", "NAMES", required: false,
        help: """
            Serves several stores, each with its own log and leader, for example main,b. They lie in the database that \
            --cluster names, or where hearth cluster place has put them. New databases go to the store that has the \
            fewest. Each server of the cluster must have the same list. In place of --cluster-store.
            """
    ) { ClusterStores.problem(ofList: $0) }
    static let advertise = Flag<Endpoint>(
        "advertise", "HOST:PORT", required: false,
        help: "The address of this server for the clients and servers of the cluster. Needed with --cluster.")
    static let staleReads = Flag(
        "stale-reads", "TIME", default: TimeSpan.seconds(0),
        help: """
            Reads of the newest state at a server that does not lead its cluster see what the server has if that is \
            younger than this. Others ask the leader for the newest commit and wait for it. Clocks must agree.
            """)
    static let repairIndexes = Flag(
        switch: "repair-indexes",
        help: """
            Verifies all index entries before the start, and makes them again if some are damaged or missing: the \
            indexes are built in the background, queries scan until then, and earlier versions cannot be read.
            """)

    static let upgrade = Flag(
        switch: "upgrade",
        help: """
            Upgrades a data directory that an older version has written before it is served, as hearth upgrade does. \
            Without it such a directory is refused.
            """)

    static let memory = Flag<ByteCount>(
        "memory", "SIZE", required: false,
        help: """
            One budget for the memory of the server: memtables, queued commits, transactions, locks, remembered \
            results, changes for listeners, web sessions, listeners and connections get their shares of it, unless a \
            flag gives the bound of a part. At least 64MiB.
            """
    ) { $0.bytes >= 64 << 20 ? nil : "at least 64MiB" }

    private static let process: [ServeSetting] = [
        .time(
            "drain-time", \.drainMilliseconds,
            "How long SIGTERM waits for open calls before it ends them with UNAVAILABLE.")
    ]
    static let logLevel = Flag(
        "log-level", "LEVEL", default: "info",
        help: "The lowest level that is logged: debug, info, warning or error."
    ) { LogLevel(name: $0) == nil ? "debug, info, warning or error" : nil }
    private static let statistics: [ServeSetting] = [
        .time(
            "statistics-interval", \.summaryMilliseconds,
            "Time between two lines of statistics in the log. With 0s only the last line is written."),
        .number(
            "slow-call-ms", "MS", in: 0...86_400_000, \.service.slowCallMilliseconds,
            """
            Calls that take longer are logged, queries with their plan, which has values of the query. 0 logs none.
            """),
    ]

    private static let gibibyte = ByteCount(bytes: 1 << 30)
    private static let mebibyte = ByteCount.mebibytes(1)
    private static let mebibytes16 = ByteCount.mebibytes(16)

    /// The settings that set one property each.
    static let all = location + connections + http + responses + commits + storage + process + statistics

    /// The flags in the order of the help text.
    static let groups = [
        FlagGroup(
            heading: "Location",
            flags: [ConfigurationFile.flag] + location.map(\.flag) + [forkOf] + ServeExports.flags
                + ServeSocket.flags + [metricsAddress]),
        FlagGroup(heading: "TLS", flags: ServeTLS.flags),
        FlagGroup(heading: "Replica", flags: [follow, followTLS, followAuthorities, followReadOnly, strictReads]),
        FlagGroup(
            heading: "Cluster",
            flags: [cluster, clusterStore, clusterStores, advertise, staleReads] + ClusterFlags.all),
        FlagGroup(heading: "Security", flags: ServeSecurity.flags + [trustedProxies]),
        FlagGroup(heading: "Callers", flags: CallerFlags.flags),
        FlagGroup(heading: "Connections", flags: connections.map(\.flag)),
        FlagGroup(
            heading: "HTTP",
            flags: http.map(\.flag) + [allowHost, allowOrigin, emulatorEndpoints, console, backupDirectory]),
        FlagGroup(heading: "Responses", flags: responses.map(\.flag)),
        FlagGroup(heading: "Commits and transactions", flags: commits.map(\.flag)),
        FlagGroup(heading: "Storage", flags: storage.map(\.flag) + ServeIndexes.flags + [repairIndexes, upgrade]),
        FlagGroup(heading: "Archive", flags: ArchiveFlags.all),
        FlagGroup(heading: "Process", flags: [memory] + process.map(\.flag) + [logLevel] + statistics.map(\.flag)),
    ]

    /// Whether the web pages of all sites may call the server.
    static func admitsAllPages(_ arguments: ParsedArguments) -> Bool {
        AllowedOrigins(arguments[allowOrigin]) == .any
    }

    /// The configuration that a command line asks for.
    static func configuration(_ arguments: ParsedArguments, _ log: Log) -> DatabaseServerConfiguration {
        var configuration = defaults
        configuration.log = log
        configuration.version = CommandRouter.version
        for setting in all { setting.set(&configuration, arguments) }
        if let memory = arguments.value(of: memory) { share(memory.bytes, among: &configuration, arguments) }
        configuration.transport.resetsPerSecond = max(configuration.transport.resetsMax / 10, 1)
        configuration.transport.idleFramesPerSecond = max(configuration.transport.idleFramesMax / 10, 1)
        configuration.transport.trustedProxies = TrustedProxies(arguments.values(of: trustedProxies))
        let isLoopback = isLoopback(configuration.transport.host)
        configuration.http.allowedHosts = allowedHosts(arguments, isLoopback: isLoopback)
        configuration.http.allowedOrigins = AllowedOrigins(arguments[allowOrigin]) ?? .local
        configuration.observation = arguments.value(of: metricsAddress).map { address in
            ObservationOptions(
                host: address.host, port: UInt16(address.port),
                allowedHosts: allowedHosts(arguments, isLoopback: self.isLoopback(address.host)),
                allowedOrigins: configuration.http.allowedOrigins)
        }
        configuration.unixSocket = ServeSocket.options(arguments)
        configuration.store.archive = ArchiveFlags.settings(arguments, log)
        let emulator = arguments[emulatorEndpoints]
        configuration.http.emulatorEndpoints = emulator == "on" || emulator == "auto" && isLoopback
        if configuration.http.emulatorEndpoints, isLoopback { configuration.http.emulatorFiles = EmulatorFiles() }
        configuration.http.servesConsole = arguments[console] == "on"
        configuration.http.backupDirectory = arguments.value(of: backupDirectory).map(PathWords.absolute)
        return configuration
    }

    /// Gives the parts whose flags are not given their shares of a budget. There may be four times as many bytes in
    /// memtables as in one, so these get a quarter. The queue gets a sixteenth, as do the commits that wait for locks
    /// beside it and transactions; web sessions, listeners and connections an eighth each; sessions a 32nd; locks, the
    /// changes for listeners, those for the validation of transactions and the names of databases a 64th each. The
    /// rest, 6/64, is for the program.
    ///
    /// Connections have their share by their number, listeners by what those of a loop may hold.
    private static func share(
        _ bytes: Int, among configuration: inout DatabaseServerConfiguration, _ arguments: ParsedArguments
    ) {
        func isGiven(_ name: String) -> Bool { all.contains { $0.flag.name == name && arguments.has($0.flag) } }
        if !isGiven("memtable") { configuration.store.engine.memtableBytesMax = bytes / 16 }
        if !isGiven("max-queued-bytes") { configuration.store.queuedBytesMax = bytes / 16 }
        if !isGiven("max-transaction-bytes") { configuration.store.transactionBytesMax = bytes / 16 }
        if !isGiven("max-result-bytes") { configuration.store.sessionBytesMax = bytes / 32 }
        if !isGiven("max-locks") {
            configuration.store.shareLocksMax = min(
                configuration.store.shareLocksMax, bytes / 64 / StoreConfiguration.shareLockBytes)
        }
        configuration.store.changeFeedBytesMax = min(configuration.store.changeFeedBytesMax, bytes / 64)
        configuration.store.recentChangesMax = min(
            configuration.store.recentChangesMax, bytes / 64 / StoreConfiguration.recentChangeBytes)
        if !isGiven("max-database-bytes") { configuration.store.databaseBytesMax = bytes / 64 }
        if !isGiven("max-web-session-bytes") { configuration.webChannel.bytesTotalMax = bytes / 8 }
        configuration.memoryBudget = bytes
        configuration.service.boundListeners(bytes: bytes / 8 / max(1, configuration.loops))
        if !isGiven("max-connections") {
            configuration.transport.connectionsMax = min(
                configuration.transport.connectionsMax, bytes / 8 / connectionBytes)
        }
        if !isGiven("max-output") {
            configuration.transport.outputBytesMax = min(configuration.transport.outputBytesMax, bytes / 16)
        }
    }

    /// Gives each of several stores its part of a budget of memory.
    static func divide(among count: Int, _ store: inout StoreConfiguration, _ arguments: ParsedArguments) {
        guard arguments.has(memory) else { return }
        func isGiven(_ name: String) -> Bool { all.contains { $0.flag.name == name && arguments.has($0.flag) } }
        if !isGiven("memtable") {
            store.engine.memtableBytesMax = max(store.engine.memtableBytesMax / count, mebibyte.bytes)
        }
        if !isGiven("max-queued-bytes") { store.queuedBytesMax = max(store.queuedBytesMax / count, mebibyte.bytes) }
        if !isGiven("max-transaction-bytes") {
            store.transactionBytesMax = max(store.transactionBytesMax / count, mebibyte.bytes)
        }
        if !isGiven("max-result-bytes") { store.sessionBytesMax = max(store.sessionBytesMax / count, mebibyte.bytes) }
        if !isGiven("max-locks") { store.shareLocksMax = max(store.shareLocksMax / count, 1_000) }
        if !isGiven("max-database-bytes") { store.databaseBytesMax = max(store.databaseBytesMax / count, 1 << 19) }
        store.changeFeedBytesMax = max(store.changeFeedBytesMax / count, mebibyte.bytes)
        store.recentChangesMax = max(store.recentChangesMax / count, 1_000)
    }

    /// What a connection takes with TLS and HTTP/2 while a call is open, about, in bytes.
    private static let connectionBytes = 64 << 10

    /// The host names that an address may be known by.
    private static func allowedHosts(_ arguments: ParsedArguments, isLoopback: Bool) -> AllowedHosts {
        let names = arguments[allowHost] == "auto" ? (isLoopback ? "local" : "any") : arguments[allowHost]
        return AllowedHosts(names) ?? .local(and: [])
    }

    /// Whether `--allow-host` names hosts, which is one of the settings that close a server.
    static func namesHosts(_ arguments: ParsedArguments) -> Bool { arguments[allowHost] != "auto" }

    /// Whether a host is an address of this machine alone.
    static func isLoopback(_ host: String) -> Bool {
        var address = in_addr()
        if inet_pton(AF_INET, host, &address) == 1 { return UInt32(bigEndian: address.s_addr) >> 24 == 127 }
        return host == "localhost" || host == "::1"
    }
}
