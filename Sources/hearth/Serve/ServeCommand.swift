// `hearth serve`: the server.

import Authorization
import Basics
import DocumentStore
import EmbeddedEngine
import EventLoops
import FileSystem
import FirestoreService
import Glibc
import Identity
import PostgreSQLLog
import Server

/// Serves a data directory until SIGTERM or SIGINT. SIGHUP reloads.
enum ServeCommand: BlockingSubcommand {
    static let name = "serve"
    static let summary = "Runs the server on a data directory."
    static let words: [String] = []
    static let flagGroups = ServeSettings.groups

    static let discussion = """
        Opens the data directory, creates it if it does not exist, recovers it after a
        crash, and prints one line on standard output when the server is ready:

          hearth ready on 127.0.0.1:8080

        The server logs to standard error: one event per line, as key=value pairs.

        The server acknowledges a commit after it is on disk. SIGTERM and SIGINT stop the
        server: it accepts no new calls, completes open calls, writes its state and exits
        with status 0. A second signal ends it immediately. SIGHUP makes it read again what
        it takes from files; flags need a restart. No acknowledged commit is lost if the
        process ends in any other way, including kill -9.

        Examples:

          hearth serve
          hearth serve --data /var/lib/hearth --host 0.0.0.0 --port 8080
          HEARTH_DATA=/tmp/try hearth serve --port 0 --log-level debug
        """

    static func run(_ arguments: ParsedArguments) throws {
        // Before any thread is started: threads inherit the mask, so all of them leave the signals to `Shutdown`.
        Shutdown.takeSignals()
        DescriptorLimit.raise()
        let log = Log.standardError(level: LogLevel(name: arguments[ServeSettings.logLevel]) ?? .info)
        for flag in ["follow", "cluster"]
        where arguments.given.contains(flag) && arguments[ServeSettings.repairIndexes] {
            throw UsageError(
                message: "--repair-indexes and --\(flag) cannot be combined: a directory with damaged index entries is "
                    + "removed, and made again from the other servers")
        }
        var configuration = ServeSettings.configuration(arguments, log)
        let tls = try ServeTLS.make(arguments)
        configuration.transport.tls = tls?.acceptance
        if arguments[ConfigurationCheck.flag] {
            return try ConfigurationCheck.print(arguments, configuration, tls: tls)
        }
        let start = InterruptibleStart(log)
        let fork = try makeFork(arguments)
        defer { fork?.remove() }
        if let fork { configuration.store.directory = fork.directory }
        try PathWords.checkAccess(configuration.store.directory)
        let replica = try Replica.make(arguments, directory: configuration.store.directory, log)
        try replica?.prepare()
        configuration.store.leader = replica?.source
        if let replica, !arguments[ServeSettings.followReadOnly] {
            configuration.leader = KnownLeader(.at(replica.leader))
            configuration.readsAreStrict = arguments[ServeSettings.strictReads]
        }
        let data = configuration.store.directory
        try ClusterFlags.check(arguments, data: data, archive: arguments.value(of: ArchiveFlags.archive))
        let cluster = try ClusterStores.make(arguments, data: data, DatabaseLimits(configuration.store), log)
        // What waits for others in a cluster ends in order itself.
        if cluster != nil { start.end() }
        try cluster?.prepare(&configuration, arguments)
        let exports = try ServeExports(arguments, configuration.store, log)
        let history = RulesHistory(dataDirectory: data, spareSpace: configuration.spareSpace)
        if !arguments.has(ServeSecurity.rules) { try cluster?.security.join(history) }
        if arguments.has(ServeSecurity.principals) {
            try cluster?.security.joinSecret(of: IdentityDirectory(dataDirectory: data))
        }
        let security = try ServeSecurity.make(
            arguments, host: configuration.transport.host, hasCertificate: tls != nil,
            hasAllowedHosts: ServeSettings.namesHosts(arguments), dataDirectory: data,
            history: history, spareSpace: configuration.spareSpace, log: log)
        if !arguments.has(ServeSecurity.rules), let gap = RulesInForce.gap(in: history) {
            log(.warning, "rules_missing", ["message": "\(gap)"])
        }
        let revocations = RevocationKeeper(
            security.revocations, shared: cluster?.security.revocations ?? replica?.revocations)
        try cluster?.security.join(revocations)
        if replica != nil { revocations.areAwaited = true }
        configuration.revocations = revocations
        CallerFlags.set(&configuration, arguments, security.mode)
        let indexes = try ServeIndexes.read(arguments)
        let authorization = security.makeAuthorization(rates: CallerFlags.rates(arguments, security.mode))
        configuration.authorization = authorization
        configuration.rules = security.makeRulesKeeper(history, authorization, shared: cluster?.security.rules)
        log(
            .info, "starting",
            [
                "data": data, "loops": String(configuration.loops), "pid": String(getpid()),
            ])
        let gateway: DatabaseServer
        do {
            if arguments[ServeSettings.upgrade] {
                for directory in configuration.storeDirectories {
                    try upgrade(DirectoryUpgrade(of: directory), directory, log)
                }
            }
            if arguments[ServeSettings.repairIndexes] {
                for directory in configuration.storeDirectories { try repairIndexes(directory, log) }
            }
            try exports.importDocuments()
            gateway = try DatabaseServer.start(configuration)
            try indexes?.declare(in: gateway.store, log)
        } catch {
            log(.error, "start_failed", ["message": ErrorText.describe(error)])
            throw CommandFailure(
                "cannot serve \(data): \(ErrorText.describe(error))\(advice(on: error, configuration.unixSocket))")
        }
        start.end()
        let endpoint = Endpoint(host: gateway.host, port: Int(gateway.port)).flagText
        let certificate = tls.map { "certificate until \($0.expires)" } ?? "off"
        var about = [("address", endpoint), ("tls", certificate), ("security", security.mode.rawValue)]
        if let socket = configuration.unixSocket { about.append(("socket", socket.path)) }
        if let metrics = arguments.value(of: ServeSettings.metricsAddress) {
            about.append(("metrics", metrics.flagText))
        }
        log.write(.info, "ready", about)
        tls?.warnOfExpiry(log)
        tls?.accessWarning?.write(to: log)
        for directory in configuration.storeDirectories { AccessWarning.ofData(in: directory)?.write(to: log) }
        if security.mode == .insecure {
            log(.warning, "insecure", ["message": "\(endpoint) permits everyone everything"])
        }
        replica?.start(gateway.store, rules: configuration.rules?.keeper, revocations: revocations)
        try cluster?.start(gateway.stores, rules: configuration.rules?.keeper, revocations: revocations)
        print("hearth ready on \(endpoint)")
        // A process that waits for the line may read it through a pipe.
        fflush(nil)
        // The first keys are fetched at once.
        security.tick()
        let reloading = Reloading(tls: tls, security: security, authorization)
        let signal = waitForSignal(
            gateway, security, ServiceManager(), endpoint: endpoint, onReload: { reloading.run(log) })
        log(.info, "draining", ["signal": Shutdown.name(of: signal)])
        if replica?.mustRebuild != true, cluster?.mustEnd != true { Shutdown.endAtOnceOnAnotherSignal(log) }
        replica?.stop()
        cluster?.beginStopping()
        gateway.stop()
        cluster?.stop()
        do {
            try exports.exportDocuments()
        } catch {
            log(.error, "export_failed", ["message": ErrorText.describe(error)])
            throw CommandFailure("the export at the end failed: \(ErrorText.describe(error))")
        }
        log(.info, "stopped")
        if let replica, replica.mustRebuild {
            let start = InterruptibleStart(log)
            defer { start.end() }
            try replica.rebuild()
        }
        try cluster?.restartIfNeeded()
    }

    /// What helps where another program listens; empty for other errors.
    private static func advice(on error: any Error, _ socket: UnixSocketOptions?) -> String {
        guard let error = error as? SocketError, error.code == EADDRINUSE else { return "" }
        let name = socket.map { error.attempt.hasSuffix($0.path) } == true ? "socket" : "port"
        return "; another program uses the \(name): --\(name) names another one"
    }

    /// The fork that is to be served; nil without `--fork-of`.
    private static func makeFork(_ arguments: ParsedArguments) throws -> TemporaryFork? {
        guard let source = arguments.value(of: ServeSettings.forkOf) else { return nil }
        if arguments.given.contains("data") { throw UsageError(message: "--data and --fork-of cannot be combined") }
        if arguments.has(ArchiveFlags.archive) {
            throw UsageError(message: "--archive and --fork-of cannot be combined: the fork is deleted at the end")
        }
        try PathWords.checkDataDirectory(source)
        let fork = try TemporaryFork(of: source)
        do {
            _ = try ForkCommand.make(of: source, at: fork.directory)
            return fork
        } catch {
            fork.remove()
            throw error
        }
    }

    /// Waits for the signal that ends the server, and keeps the service manager informed meanwhile.
    ///
    /// - Returns: the signal.
    private static func waitForSignal(
        _ gateway: DatabaseServer, _ security: ServeSecurity, _ manager: ServiceManager?, endpoint: String,
        onReload reload: () -> Void
    ) -> Int32 {
        let isReady = ServiceManager.State.ready("serving on \(endpoint)")
        manager?.notify(isReady)
        let watchdog = manager?.watchdogMilliseconds
        let tick: (() -> Void)? =
            security.readsFiles || watchdog != nil
            ? {
                if security.readsFiles { security.tick() }
                // A manager that hears nothing ends the server: an event loop hangs.
                if watchdog != nil, gateway.loopsRun() { manager?.notify(.alive) }
            } : nil
        let signal = Shutdown.waitForSignal(
            onReload: {
                manager?.notify(ServiceManager.reloading)
                reload()
                manager?.notify(isReady)
            }, everyMilliseconds: min(watchdog.map { max($0 / 2, 1) } ?? 1_000, 1_000), tick)
        manager?.notify(.stopping)
        return signal
    }

    /// Upgrades a directory of an older format. One that does not exist yet is left to be created.
    static func upgrade(_ upgrade: DirectoryUpgrade, _ directory: String, _ log: Log) throws {
        guard Directory.exists("\(directory)/FORMAT") else { return }
        let plan = try upgrade.plan()
        guard plan.from != plan.to else { return }
        log(.info, "upgrading", ["from": String(plan.from), "to": String(plan.to)])
        _ = try upgrade.run()
        log(.info, "upgraded", ["message": UpgradeCommand.describe(done: plan, of: directory)])
    }

    /// Drops index entries that are damaged; the store builds them again.
    private static func repairIndexes(_ directory: String, _ log: Log) throws {
        guard Directory.exists("\(directory)/FORMAT") else { return }
        let damage = try IndexRepair.dropDamaged(directory)
        guard let first = damage.first else { return log(.info, "indexes_intact") }
        log(.warning, "indexes_dropped", ["damaged_files": String(damage.count), "message": first])
    }
}

/// What SIGHUP makes the server read again: what it takes from files, such as certificates. Flags and environment
/// variables belong to the process and stay.
struct Reloading {
    /// A part of the server by its name in the log, and the work that reads it again. A part that throws keeps what it
    /// has.
    typealias Part = (name: String, reload: (Log) throws -> Void)

    private let parts: [Part]

    /// - Parameter tls: nil without TLS.
    init(tls: ServeTLS?, security: ServeSecurity, _ authorization: Authorization) {
        var parts: [Part] = []
        if let tls {
            parts.append(
                (
                    "tls",
                    { log in
                        try tls.reload()
                        tls.warnOfExpiry(log)
                        tls.accessWarning?.write(to: log)
                    }
                ))
        }
        if security.readsFiles { parts.append(("security", { _ in try security.reload(authorization) })) }
        self.parts = parts
    }

    /// Reads all parts again, and logs each that cannot be read.
    func run(_ log: Log) {
        var reloaded: [String] = []
        for part in parts {
            do {
                try part.reload(log)
                reloaded.append(part.name)
            } catch {
                log(.error, "reload_failed", ["part": part.name, "message": ErrorText.describe(error)])
            }
        }
        log(.info, "reloaded", ["parts": reloaded.isEmpty ? "none" : reloaded.joined(separator: ",")])
    }
}

/// A time in which a signal that ends the server ends the process at once, with the status of that signal: it has
/// accepted no calls, and may copy or recover for hours. Thread-safe.
final class InterruptibleStart: Sendable {
    private let thread = PacedThread()

    private static let intervalMilliseconds: UInt64 = 100

    /// Begins it. Without a thread of the system signals wait until the server is ready.
    init(_ log: Log) {
        try? thread.start(name: "start", everyMilliseconds: Self.intervalMilliseconds) { pause in
            while pause() {
                guard let signal = Shutdown.requested else { continue }
                log(.warning, "start_interrupted", ["signal": Shutdown.name(of: signal)])
                Shutdown.end(by: signal)
            }
        }
    }

    /// Ends it: signals wait to be taken again.
    func end() { thread.stop() }
}

/// The signals that end the server, and the one that does not.
enum Shutdown {
    private static var signals: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGHUP)
        return set
    }

    /// A signal that ends the server and waits to be taken; nil if there is none.
    static var requested: Int32? {
        var pending = sigset_t()
        sigpending(&pending)
        return [SIGTERM, SIGINT].first { sigismember(&pending, $0) == 1 }
    }

    /// Whether a signal that ends the server waits to be taken.
    static var isRequested: Bool { requested != nil }

    static func name(of signal: Int32) -> String { signal == SIGTERM ? "SIGTERM" : "SIGINT" }

    /// Ends the process as a signal does that is not handled.
    static func end(by number: Int32) -> Never {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        signal(number, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        // The first process of a container, for which the system does nothing; as a shell reports the signal.
        _exit(128 + number)
    }

    /// Keeps the signals from this thread and those it starts, so that they wait to be asked for.
    static func takeSignals() {
        var set = signals
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Waits for a signal that ends the server, and calls `onReload` for each SIGHUP before.
    ///
    /// - Parameters:
    ///   - interval: time between two ticks, at most a second.
    ///   - tick: called after each interval, and after each signal; nil lets the thread sleep.
    static func waitForSignal(
        onReload: () -> Void, everyMilliseconds interval: Int = 1_000, _ tick: (() -> Void)? = nil
    ) -> Int32 {
        var set = signals
        var time = timespec(tv_sec: interval / 1_000, tv_nsec: interval % 1_000 * 1_000_000)
        while true {
            let received = tick == nil ? sigwaitinfo(&set, nil) : sigtimedwait(&set, nil, &time)
            switch received {
            case SIGHUP: onReload()
            case SIGTERM, SIGINT: return received
            // The interval has passed, or the wait was interrupted.
            default: break
            }
            tick?()
        }
    }

    /// From now on a further signal ends the process with status 1, whatever is under way.
    static func endAtOnceOnAnotherSignal(_ log: Log) {
        let watcher = try? SystemThread(name: "signals") {
            _ = Shutdown.waitForSignal(onReload: {})
            log(.warning, "killed")
            _exit(1)
        }
        watcher?.detach()
    }
}
