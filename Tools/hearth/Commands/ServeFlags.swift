// The flags of `hearth serve`, and the configuration that they make. docs/operations.md lists them too.

import DocumentModel
import DocumentStore
import Gateway
import Glibc
import Transport

enum ServeFlags {
    // MARK: Where

    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory; created if there is none.")
    static let host = Flag("host", "HOST", default: "127.0.0.1", help: "The address or name to listen on.")
    static let port = Flag("port", "PORT", default: 8080, in: 0...65_535, help: "The port; 0 lets the system pick one.")
    static let loops = Flag(
        "loops", "N", default: max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1), in: 1...1_024,
        help: "Event loops, each a thread that serves its own connections. The default is one for each core.")

    // MARK: Connections

    static let connections = Flag(
        "max-connections", "N", default: 10_000, in: 1...10_000_000,
        help: "Connections open at once; a further one is refused in its own protocol. Fewer if the limit of file descriptors is lower.")
    static let backlog = Flag("backlog", "N", default: 1_024, in: 1...65_535, help: "Connections waiting to be accepted.")
    static let streams = Flag(
        "max-streams", "N", default: 1_024, in: 1...1_000_000,
        help: "Calls open at once on one connection; a further one is answered RESOURCE_EXHAUSTED.")
    static let messageBytes = Flag(
        "max-message", "SIZE", default: .mebibytes(10), in: .kibibytes(64)...ByteCount(bytes: 1 << 30),
        help: "The largest request; a larger one is answered RESOURCE_EXHAUSTED.")
    static let frameBytes = Flag(
        "max-frame", "SIZE", default: .kibibytes(256), in: .kibibytes(16)...mebibytes16,
        help: "The largest frame; longer messages come in parts.")
    static let assemblyBytes = Flag(
        "max-assembly", "SIZE", default: .mebibytes(32), in: .kibibytes(64)...ByteCount(bytes: 1 << 34),
        help: "Bytes of incomplete messages on one connection; a call beyond is answered RESOURCE_EXHAUSTED.")
    static let windowBytes = Flag(
        "stream-window", "SIZE", default: .kibibytes(256), in: .kibibytes(16)...ByteCount(bytes: 1 << 30),
        help: "Bytes that a client may send on a streaming call before they are taken.")
    static let http2WindowBytes = Flag(
        "http2-window", "SIZE", default: .mebibytes(1), in: .kibibytes(64)...ByteCount(bytes: 1 << 30),
        help: "The same for a call over gRPC.")
    static let http2ConnectionWindowBytes = Flag(
        "http2-connection-window", "SIZE", default: .mebibytes(16), in: .kibibytes(64)...ByteCount(bytes: 1 << 30),
        help: "Bytes that a client may send over all calls of one gRPC connection before they are taken.")
    static let metadataBytes = Flag(
        "max-metadata", "SIZE", default: .kibibytes(16), in: .kibibytes(1)...ByteCount(bytes: 1 << 20),
        help: "Header fields of one request over HTTP/2; a call beyond is answered RESOURCE_EXHAUSTED, any other request 431.")
    static let resets = Flag(
        "max-resets", "N", default: 2_000, in: 1...1_000_000,
        help: "gRPC calls that a client may reset at once; beyond, its connection ends. A tenth of it comes back each second.")
    static let idleFrames = Flag(
        "max-idle-frames", "N", default: 10_000, in: 10...10_000_000,
        help: "HTTP/2 frames that bring nothing, such as PING, that a client may send at once; beyond, its connection ends. A tenth of it comes back each second.")
    static let headerTime = Flag(
        "header-time", "TIME", default: TimeSpan.seconds(10),
        help: "Time for a new connection to say hello, and for a request's head, a frame or a message to arrive, from its first byte; a message has a second more for each 16 KB of it that has come.")
    static let idleTime = Flag(
        "idle-time", "TIME", default: TimeSpan.seconds(600),
        help: "A connection without calls is closed after this long without a frame; 0s never closes one.")
    static let callTime = Flag(
        "call-time", "TIME", default: TimeSpan.seconds(0),
        help: "Deadline of calls that bring none; 0s sets none.")
    static let outputPause = Flag(
        "output-pause", "SIZE", default: .kibibytes(256), in: .kibibytes(16)...ByteCount(bytes: 1 << 30),
        help: "Unsent bytes beyond which a slow reader's connection is paused.")
    static let outputMax = Flag(
        "max-output", "SIZE", default: .mebibytes(64), in: .mebibytes(1)...ByteCount(bytes: 1 << 34),
        help: "Unsent bytes beyond which a slow reader's connection is dropped.")
    static let slowReaderTime = Flag(
        "slow-reader-time", "TIME", default: TimeSpan.seconds(30),
        help: "A paused connection that takes nearly nothing for this long is dropped.")
    static let stalledReplyTime = Flag(
        "stalled-reply-time", "TIME", default: TimeSpan.seconds(300),
        help: "A streaming reply of which its client takes nothing for this long, while the connection is alive, ends with DEADLINE_EXCEEDED; 0s never ends one.")

    // MARK: HTTP

    static let httpHeadBytes = Flag(
        "max-http-head", "SIZE", default: .kibibytes(16), in: .kibibytes(1)...ByteCount.kibibytes(32),
        help: "First line and headers of an HTTP/1.1 request; a longer one is answered 431 or 414.")
    static let httpFields = Flag(
        "max-http-headers", "N", default: 100, in: 1...10_000,
        help: "Header lines of an HTTP/1.1 request; one with more is answered 431.")
    static let allowHost = Flag(
        "allow-host", "HOSTS", default: "auto",
        help: "The names that HTTP clients may know this server by, against DNS rebinding: any, local (localhost and loopback addresses), names with commas between, which are permitted beside those, or auto, which is local when --host is a loopback address and any otherwise."
    ) { $0 == "auto" || AllowedHosts($0) != nil ? nil : "auto, any, local, or names without ports, with commas between" }
    static let allowOrigin = Flag(
        "allow-origin", "ORIGINS", default: "local",
        help: "Whose pages may call from a browser: local (pages served from this machine), any, none, or origins such as https://app.example.org with commas between."
    ) { AllowedOrigins($0) == nil ? "local, any, none, or origins with commas between" : nil }
    static let emulatorEndpoints = Flag(
        "emulator-endpoints", "WHEN", default: "auto",
        help: "Whether DELETE /emulator/v1/projects/P/databases/D/documents deletes a database, as test suites ask of the emulator: on, off, or auto, which is on when --host is a loopback address."
    ) { ["auto", "on", "off"].contains($0) ? nil : "auto, on or off" }

    // MARK: Answers

    static let listPage = Flag(
        "list-page", "N", default: 300, in: 1...100_000, help: "Documents on a page of ListDocuments, at most.")
    static let listPageBytes = Flag(
        "list-page-bytes", "SIZE", default: .mebibytes(4), in: .kibibytes(1)...ByteCount(bytes: 1 << 30),
        help: "Bytes after which a page of ListDocuments ends.")
    static let collectionIDPage = Flag(
        "collection-id-page", "N", default: 1_000, in: 1...1_000_000, help: "Ids on a page of ListCollectionIds, at most.")
    static let batchGet = Flag(
        "max-batch-get", "N", default: 100_000, in: 1...10_000_000,
        help: "Documents named by one BatchGetDocuments; more are answered INVALID_ARGUMENT.")
    static let batchWrite = Flag(
        "max-batch-write", "N", default: 10_000, in: 1...10_000_000,
        help: "Writes of one BatchWrite; more are answered INVALID_ARGUMENT. A Commit has no such limit.")
    static let partitionCursors = Flag(
        "max-partition-cursors", "N", default: 1_000, in: 1...100_000,
        help: "Cursors of one PartitionQuery; who asks for more gets so many.")

    // MARK: Commits and transactions

    static let queuedRequests = Flag(
        "max-queued-requests", "N", default: 100_000, in: 1...100_000_000,
        help: "Commits that wait for the commit thread; the next is answered RESOURCE_EXHAUSTED.")
    static let queuedBytes = Flag(
        "max-queued-bytes", "SIZE", default: .mebibytes(256), in: .mebibytes(1)...ByteCount(bytes: 1 << 40),
        help: "Bytes of the commits that wait; the next is answered RESOURCE_EXHAUSTED.")
    static let groupBytes = Flag(
        "group-bytes", "SIZE", default: .mebibytes(4), in: .kibibytes(4)...ByteCount(bytes: 64 << 20),
        help: "Log bytes that are synced together, at most.")
    static let transactions = Flag(
        "max-transactions", "N", default: 100_000, in: 1...100_000_000,
        help: "Transactions open at once; the next is answered RESOURCE_EXHAUSTED.")
    static let commitWork = Flag(
        "max-commit-work", "SIZE", default: .mebibytes(512), in: .mebibytes(16)...ByteCount(bytes: 1 << 40),
        help: "Bytes of documents that the writes of one commit may read and rewrite; past it RESOURCE_EXHAUSTED.")
    static let connectionTransactions = Flag(
        "max-connection-transactions", "N", default: 10_000, in: 1...100_000_000,
        help: "Transactions that one connection may have open at once; its next is answered RESOURCE_EXHAUSTED.")
    static let turnTime = Flag(
        "turn-time", "TIME", default: TimeSpan.seconds(3),
        help: "How long a retried transaction may keep others from the documents it conflicted on.")
    static let transactionTime = Flag(
        "transaction-time", "TIME", default: TimeSpan.seconds(270), help: "Age at which a transaction expires.")
    static let transactionIdle = Flag(
        "transaction-idle", "TIME", default: TimeSpan.seconds(60), help: "Time without a read after which a transaction expires.")
    static let transactionReads = Flag(
        "max-transaction-reads", "N", default: 100_000, in: 1...100_000_000,
        help: "Documents and ranges that one transaction may read.")
    static let concurrencyMode = Flag(
        "concurrency-mode", "MODE", default: "optimistic",
        help: "How transactions run that ask for nothing else: optimistic or pessimistic."
    ) { concurrencyModes[$0] == nil ? "optimistic or pessimistic" : nil }
    static let lockWait = Flag(
        "lock-wait", "TIME", default: TimeSpan.seconds(15),
        help: "How long a commit waits for the locks of others: a transaction's is then ABORTED, a plain one goes on.")
    static let lockIdle = Flag(
        "lock-idle", "TIME", default: TimeSpan.seconds(10),
        help: "Silence after which a transaction loses locks that are in somebody's way.")
    static let shareLocks = Flag(
        "max-locks", "N", default: 1_000_000, in: 1...1_000_000_000,
        help: "Locks of all pessimistic transactions together; further reads take none.")
    static let databases = Flag(
        "max-databases", "N", default: 100_000, in: 1...4_000_000_000, help: "Databases in the data directory.")

    // MARK: Storage

    static let retention = Flag(
        "retention", "TIME", default: TimeSpan.seconds(3_600), in: TimeSpan.seconds(0)...TimeSpan.seconds(7 * 86_400),
        help: "How long earlier states stay readable at a read_time; transactions need theirs too.")
    static let overlayBytes = Flag(
        "overlay", "SIZE", default: .mebibytes(64), in: .mebibytes(1)...ByteCount(bytes: 64 << 30),
        help: "Memory for what is not in the tree yet; twice this while a checkpoint runs, four times when checkpoints cannot keep up. Larger ones make writing cheaper and recovery longer.")
    static let logSegment = Flag(
        "log-segment", "SIZE", default: .mebibytes(16), in: .mebibytes(1)...ByteCount(bytes: 1 << 30),
        help: "Size of one file of the log; only whole ones are used again.")
    static let diskReserve = Flag(
        "disk-reserve", "SIZE", default: .mebibytes(16), in: ByteCount(bytes: 0)...ByteCount(bytes: 1 << 36),
        help: "Disk space kept for commits that only delete, so that they can free space on a full disk; 0B keeps none.")
    static let automaticIndexes = Flag(
        "automatic-indexes", "on|off", default: "on",
        help: "Whether every field is indexed as it is written. Off makes writing cheaper and lets queries scan; on again, indexes are made anew in the background."
    ) { $0 == "on" || $0 == "off" ? nil : "on or off" }
    static let indexMode = Flag(
        "index-mode", "MODE", default: "lenient",
        help: "lenient runs every query; strict answers those FAILED_PRECONDITION that need an index nobody declared, as the cloud does."
    ) { $0 == "lenient" || $0 == "strict" ? nil : "lenient or strict" }
    static let indexEntries = Flag(
        "max-index-entries", "N", default: 40_000, in: 1...1_000_000,
        help: "Index entries one document may have; a write of one with more is refused with INVALID_ARGUMENT.")
    static let ttlInterval = Flag(
        "ttl-interval", "TIME", default: TimeSpan.seconds(60),
        help: "Time between two rounds that delete documents whose time has come, as field overrides with ttl ask for; 0s deletes none.")
    static let entryCache = Flag(
        "entry-cache", "SIZE", default: .mebibytes(16), in: ByteCount(bytes: 0)...ByteCount(bytes: 1 << 30),
        help: "Memory of each loop to remember where documents lie in the tree, 16 bytes each; speeds up reading them again.")
    static let mapBytes = Flag(
        "max-tree", "SIZE", default: ByteCount(bytes: 1 << 40), in: .mebibytes(16)...ByteCount(bytes: 1 << 46),
        help: "The largest tree file; address space, not disk. A full tree answers commits RESOURCE_EXHAUSTED.")

    // MARK: Running

    static let drainTime = Flag(
        "drain-time", "TIME", default: TimeSpan.seconds(10),
        help: "How long SIGTERM waits for calls under way before it ends them with UNAVAILABLE.")
    static let logLevel = Flag(
        "log-level", "LEVEL", default: "info",
        help: "What is logged: debug, info, warning or error and everything above."
    ) { LogLevel(name: $0) == nil ? "debug, info, warning or error" : nil }
    static let figuresInterval = Flag(
        "figures-interval", "TIME", default: TimeSpan.seconds(60),
        help: "Time between two lines of figures in the log; 0s writes none but the last.")

    static let groups = [
        FlagGroup(heading: "Where", flags: [data, host, port, loops]),
        FlagGroup(
            heading: "Connections",
            flags: [
                connections, backlog, streams, messageBytes, frameBytes, assemblyBytes, windowBytes, http2WindowBytes,
                http2ConnectionWindowBytes, metadataBytes, resets, idleFrames, headerTime, idleTime, callTime, outputPause,
                outputMax, slowReaderTime, stalledReplyTime,
            ]),
        FlagGroup(heading: "HTTP/1.1", flags: [httpHeadBytes, httpFields, allowHost, allowOrigin, emulatorEndpoints]),
        FlagGroup(heading: "Answers", flags: [listPage, listPageBytes, collectionIDPage, batchGet, batchWrite, partitionCursors]),
        FlagGroup(
            heading: "Commits and transactions",
            flags: [
                queuedRequests, queuedBytes, groupBytes, commitWork, transactions, connectionTransactions, transactionTime,
                transactionIdle, transactionReads, turnTime, concurrencyMode, lockWait, lockIdle, shareLocks, databases,
            ]),
        FlagGroup(
            heading: "Storage",
            flags: [retention, overlayBytes, logSegment, diskReserve, entryCache, mapBytes, automaticIndexes, indexMode, indexEntries, ttlInterval]),
        FlagGroup(heading: "Running", flags: [drainTime, logLevel, figuresInterval]),
    ]

    private static let concurrencyModes: [String: TransactionOptions.ConcurrencyMode] = [
        "optimistic": .optimistic, "pessimistic": .pessimistic,
    ]

    private static let mebibytes16 = ByteCount.mebibytes(16)
}

extension ServeFlags {
    static func configuration(_ arguments: ParsedArguments, _ log: Log) -> GatewayConfiguration {
        var configuration = GatewayConfiguration(store: store(arguments), log: log)
        configuration.transport = transport(arguments)
        configuration.loops = arguments[loops]
        configuration.drainMilliseconds = arguments[drainTime].milliseconds
        configuration.figuresMilliseconds = arguments[figuresInterval].milliseconds
        configuration.service.listPageDocuments = arguments[listPage]
        configuration.service.listPageBytes = arguments[listPageBytes].bytes
        configuration.service.collectionIDPageEntries = arguments[collectionIDPage]
        configuration.service.requiresIndexes = arguments[indexMode] == "strict"
        configuration.service.batchGetDocuments = arguments[batchGet]
        configuration.service.batchWriteWrites = arguments[batchWrite]
        configuration.http.allowedOrigins = AllowedOrigins(arguments[allowOrigin]) ?? .local
        let isLoopback = isLoopback(arguments[host])
        let names = arguments[allowHost] == "auto" ? (isLoopback ? "local" : "any") : arguments[allowHost]
        configuration.http.allowedHosts = AllowedHosts(names) ?? .local(and: [])
        let emulator = arguments[emulatorEndpoints]
        configuration.http.emulatorEndpoints = emulator == "on" || emulator == "auto" && isLoopback
        configuration.version = CommandRouter.version
        configuration.service.partitionCursors = arguments[partitionCursors]
        return configuration
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    private static func store(_ arguments: ParsedArguments) -> StoreConfiguration {
        var store = StoreConfiguration(directory: arguments[data])
        store.queuedRequestsMaximum = arguments[queuedRequests]
        store.queuedBytesMaximum = arguments[queuedBytes].bytes
        store.groupBytesMaximum = arguments[groupBytes].bytes
        store.commitWorkBytesMaximum = arguments[commitWork].bytes
        store.transactionsMaximum = arguments[transactions]
        store.transactionsPerConnectionMaximum = arguments[connectionTransactions]
        store.leaseHoldMilliseconds = UInt64(arguments[turnTime].milliseconds)
        store.transactionLifetimeMilliseconds = UInt64(arguments[transactionTime].milliseconds)
        store.transactionIdleMilliseconds = UInt64(arguments[transactionIdle].milliseconds)
        store.transactionReadsMaximum = arguments[transactionReads]
        store.concurrencyMode = concurrencyModes[arguments[concurrencyMode]] ?? .optimistic
        store.lockWaitMilliseconds = UInt64(arguments[lockWait].milliseconds)
        store.lockIdleMilliseconds = UInt64(arguments[lockIdle].milliseconds)
        store.shareLocksMaximum = arguments[shareLocks]
        store.indexesAutomatically = arguments[automaticIndexes] == "on"
        store.indexEntriesPerDocumentMaximum = arguments[indexEntries]
        store.expiryIntervalMilliseconds = UInt64(arguments[ttlInterval].milliseconds)
        store.databasesMaximum = arguments[databases]
        store.engine.retentionMicroseconds = UInt64(arguments[retention].milliseconds) * 1_000
        store.engine.overlayBytesMax = arguments[overlayBytes].bytes
        store.engine.logSegmentBytes = arguments[logSegment].bytes
        store.engine.diskReserveBytes = arguments[diskReserve].bytes
        store.engine.entryCacheBytesMax = arguments[entryCache].bytes
        store.engine.mapBytesMax = arguments[mapBytes].bytes
        return store
    }

    private static func transport(_ arguments: ParsedArguments) -> ServerConfiguration {
        var transport = ServerConfiguration()
        transport.host = arguments[host]
        transport.port = UInt16(arguments[port])
        transport.backlog = Int32(arguments[backlog])
        transport.connectionsMax = arguments[connections]
        transport.streamsPerConnectionMax = UInt32(arguments[streams])
        transport.messageBytesMax = UInt32(arguments[messageBytes].bytes)
        transport.frameBytesMax = UInt32(arguments[frameBytes].bytes)
        transport.assemblyBytesMax = arguments[assemblyBytes].bytes
        transport.http1HeadBytesMax = arguments[httpHeadBytes].bytes
        transport.http1FieldsMax = arguments[httpFields]
        transport.initialWindowBytes = UInt32(arguments[windowBytes].bytes)
        transport.http2WindowBytes = UInt32(arguments[http2WindowBytes].bytes)
        transport.http2ConnectionWindowBytes = UInt32(arguments[http2ConnectionWindowBytes].bytes)
        transport.metadataBytesMax = arguments[metadataBytes].bytes
        transport.resetsMax = UInt64(arguments[resets])
        transport.resetsPerSecond = max(transport.resetsMax / 10, 1)
        transport.idleFramesMax = UInt64(arguments[idleFrames])
        transport.idleFramesPerSecond = max(transport.idleFramesMax / 10, 1)
        transport.headerMilliseconds = UInt64(arguments[headerTime].milliseconds)
        transport.idleMilliseconds = UInt64(arguments[idleTime].milliseconds)
        transport.defaultDeadlineMilliseconds = UInt32(clamping: arguments[callTime].milliseconds)
        transport.outputPauseBytes = arguments[outputPause].bytes
        transport.outputBytesMax = arguments[outputMax].bytes
        transport.slowReaderMilliseconds = UInt64(arguments[slowReaderTime].milliseconds)
        transport.stalledReplyMilliseconds = UInt64(arguments[stalledReplyTime].milliseconds)
        return transport
    }
}
