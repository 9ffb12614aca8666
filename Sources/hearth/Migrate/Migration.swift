// The steps of `hearth migrate`, one after the other.
//
//     survey ── question ── copy as of T ── changes since T ── compare as of S ── report
//                               └────────── state file ──────────┘

import Basics
import Dispatch
import DocumentModel
import Glibc
import HearthClient
import Synchronization

/// One migration; used once.
struct Migration: Sendable {
    struct Options: Sendable {
        /// The address of the source, for messages.
        var endpoint: String
        var statePath: String
        var resumes: Bool
        /// Whether a person is asked before documents are read.
        var asks: Bool
        /// Whether changes are followed until a signal.
        var follows: Bool
        var parallel: Int
        /// Time between two looks for new collections.
        var lookInterval: Duration
        var line: ProgressLine
    }

    let source: MigrationSource
    let names: MigrationNames
    let target: HearthClient
    let targetPatience: Patience
    let options: Options

    func run() async throws {
        try await target.waitForServer()
        let ledger = MigrationLedger(try await initialState(), path: options.statePath, options.line)
        do {
            try await ledger.save()
            try await copier(ledger).run()
            await ledger.clearLine()
            let time = try await follow(ledger)
            let totals = try await compare(ledger, time)
            try report(totals, time, await ledger.changeCount)
            unlink(options.statePath)
        } catch {
            await ledger.clearLine()
            try? await ledger.save()
            throw CommandFailure("\(ErrorText.describe(error)); continue with --resume")
        }
    }

    // MARK: Before the copy

    /// The state of the interrupted migration, or that of one which begins now and was agreed to.
    private func initialState() async throws -> MigrationState {
        let (from, to) = ("\(names.source) at \(options.endpoint)", "\(names.target)")
        ReplacingFile.removeAbandoned(of: options.statePath)
        let old = try MigrationState.read(from: options.statePath)
        guard options.resumes else {
            if let old {
                throw CommandFailure(
                    "a migration from \(old.source) was interrupted; continue with --resume, or delete "
                        + options.statePath)
            }
            return try await begin(from, to)
        }
        guard let old else { throw CommandFailure("there is no interrupted migration (no \(options.statePath))") }
        guard old.source == from, old.target == to else {
            throw CommandFailure(
                "the interrupted migration goes from \(old.source) to \(old.target); use the same flags, or delete "
                    + options.statePath)
        }
        return old
    }

    private func begin(_ from: String, _ to: String) async throws -> MigrationState {
        let survey = try await source.survey(parts: options.parallel)
        try StandardOutput.print(Self.price(survey, from, to))
        for note in Self.shortcomings(survey) { try StandardOutput.print(note) }
        try StandardOutput.flush()
        if options.asks { try ask() }
        var state = MigrationState(
            source: from, target: to, readTime: survey.readsEarlierStates ? survey.time : nil, listenFrom: survey.time)
        let ends: [String?] = survey.cuts.map { $0 } + [nil]
        let starts: [String?] = [nil] + survey.cuts.map { $0 }
        state.parts = zip(starts, ends).map { MigrationState.Part(start: $0, end: $1) }
        return state
    }

    /// US dollars for 100,000 reads in many regions of Google's.
    private static let readPrice = 0.06

    /// What is copied, and what it costs in the cloud.
    static func price(_ survey: MigrationSource.Survey, _ from: String, _ to: String) -> String {
        guard let documents = survey.documents else {
            return "\(from) does not count its documents. The migration to \(to) reads each of them twice."
        }
        let cents = Int((Double(2 * documents) * readPrice / 1_000).rounded(.up))
        let price = "\(cents / 100).\(cents % 100 < 10 ? "0" : "")\(cents % 100)"
        return """
            \(from) has \(ProgressLine.grouped(documents)) documents. The migration to \(to) reads each of them twice, \
            and once after each change: about \(ProgressLine.grouped(2 * documents)) reads, in the cloud about USD \
            \(price) where 100,000 reads cost \(readPrice).
            """
    }

    private static func shortcomings(_ survey: MigrationSource.Survey) -> [String] {
        var notes: [String] = []
        if !survey.partitions {
            notes.append("The source has no PartitionQuery: the collections of its root are the parts.")
        }
        if !survey.readsEarlierStates {
            notes.append(
                "The source reads no earlier states: each page has the state of its moment. The comparison at the end "
                    + "is repeated until both sides are equal; stop the writers of the source before.")
        }
        return notes
    }

    private func ask() throws {
        guard isatty(STDIN_FILENO) == 1 else { throw UsageError(message: "--yes is missing: nobody can be asked") }
        StandardError.write("Documents of the target that the source does not have are deleted. Continue (yes/no)? ")
        guard readLine(strippingNewline: true) == "yes" else { throw CommandFailure("nothing was copied") }
    }

    private func copier(_ ledger: MigrationLedger) -> MigrationCopier {
        MigrationCopier(
            source: source, names: names, target: target, targetPatience: targetPatience, ledger: ledger,
            parallel: options.parallel)
    }

    // MARK: Changes

    private enum Event {
        /// The target has the state of this time, or a later one.
        case reached(TimestampValue)
        /// The source has been silent for a while.
        case silent
        /// A signal asks for the end.
        case stop
        case failed(any Error)
    }

    /// Time without a message after which a source is believed to have nothing to say: it should report its progress
    /// more often, but the emulator does not.
    private static let silence = Duration.seconds(10)

    /// Follows the changes until the target has caught up, or a signal comes.
    ///
    /// - Returns: a time whose state the target has, as far as Listen reports.
    private func follow(_ ledger: MigrationLedger) async throws -> TimestampValue {
        let (events, continuation) = AsyncStream<Event>.makeStream()
        // Before a person reads that changes are followed, and ends that.
        let signals = options.follows ? Signals { continuation.yield(.stop) } : nil
        defer { signals?.end() }
        let state = await ledger.state
        note("copied \(ProgressLine.grouped(state.documents)) documents; following the changes")
        let begun = try await source.patience.call { try await source.now() }
        if state.groups.isEmpty, !options.follows { return begun }
        let heard = Heartbeat()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            let follower = MigrationFollower(
                source: source, names: names, target: target, targetPatience: targetPatience, ledger: ledger,
                heard: { heard.beat() }, reached: { continuation.yield(.reached($0)) },
                lookInterval: options.lookInterval)
            group.addTask {
                do { try await follower.run() } catch { continuation.yield(.failed(error)) }
            }
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .seconds(1))
                    if heard.age > Self.silence { continuation.yield(.silent) }
                }
            }
            let time = try await end(of: events, begun)
            group.cancelAll()
            try await group.waitForAll()
            try await ledger.save()
            return time
        }
    }

    /// Waits until the changes may end.
    private func end(of events: AsyncStream<Event>, _ begun: TimestampValue) async throws -> TimestampValue {
        var goal = options.follows ? nil : begun
        var isCaughtUp = false
        var reached: TimestampValue?
        for await event in events {
            switch event {
            case .reached(let time):
                reached = time
                if !isCaughtUp, time >= begun {
                    isCaughtUp = true
                    note("caught up as of \(time.rfc3339)")
                }
                if let goal, time >= goal { return time }
            case .stop:
                note("following what the source has now; a second signal ends at once, and --resume continues")
                goal = try await source.patience.call { try await source.now() }
            case .silent: if let goal { return max(goal, reached ?? goal) }
            case .failed(let error): throw error
            }
        }
        return reached ?? begun
    }

    // MARK: The end

    /// Comparisons with a source whose state may change meanwhile.
    private static let comparisonsMax = 5

    private func compare(_ ledger: MigrationLedger, _ time: TimestampValue) async throws -> MigrationTotals {
        let state = await ledger.state
        note("comparing both sides")
        let comparison = MigrationComparison(
            source: source, names: names, target: target, targetPatience: targetPatience,
            time: state.readTime == nil ? nil : time, parallel: options.parallel)
        var totals = try await comparison.run(state.parts, options.line)
        guard comparison.time == nil else { return totals }
        for _ in 1..<Self.comparisonsMax where totals.differences > 0 {
            let before = totals
            totals = try await comparison.run(state.parts, options.line)
            if totals.differences == 0 {
                (totals.added, totals.changed, totals.deleted) = (before.added, before.changed, before.deleted)
                return totals
            }
        }
        if totals.differences > 0 {
            throw CommandFailure("the source changes while it is compared: stop its writers")
        }
        return totals
    }

    private func report(_ totals: MigrationTotals, _ time: TimestampValue, _ changes: Int) throws {
        try StandardOutput.print(
            "\(names.target) has the \(ProgressLine.grouped(totals.documents)) documents of \(names.source) as of "
                + "\(time.rfc3339); \(ProgressLine.grouped(changes)) changes followed")
        for (name, part) in totals.collections.sorted(by: { $0.key < $1.key }) {
            let digits = String(part.sum, radix: 16)
            let sum = String(repeating: "0", count: 16 - digits.count) + digits
            try StandardOutput.print(
                "  \(name): \(ProgressLine.grouped(part.documents)) documents, "
                    + "\(ProgressLine.grouped(part.bytes)) bytes, sum \(sum)")
        }
        if totals.differences > 0 {
            try StandardOutput.print(
                "the comparison added \(ProgressLine.grouped(totals.added)), changed "
                    + "\(ProgressLine.grouped(totals.changed)) and deleted "
                    + "\(ProgressLine.grouped(totals.deleted)) documents")
        }
    }

    private func note(_ text: String) {
        if !options.line.isQuiet { StandardError.write("\(text)\n") }
    }
}

/// When a message came last. Thread-safe.
private final class Heartbeat: Sendable {
    private let last = Mutex(ContinuousClock().now)

    func beat() { last.withLock { $0 = ContinuousClock().now } }

    var age: Duration { ContinuousClock().now - last.withLock { $0 } }
}

/// Turns the first SIGINT or SIGTERM into a call. The next one ends the process.
private final class Signals {
    private let sources: [any DispatchSourceSignal]

    /// Whether there was a signal. Thread-safe.
    private final class First: Sendable {
        let isOver = Atomic<Bool>(false)
    }

    init(_ handler: @escaping @Sendable () -> Void) {
        let first = First()
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                // As a shell reports the end of a process by a signal.
                if first.isOver.exchange(true, ordering: .relaxed) { exit(128 + number) }
                handler()
            }
            source.resume()
            return source
        }
    }

    /// Signals end the process again.
    func end() {
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }
}
