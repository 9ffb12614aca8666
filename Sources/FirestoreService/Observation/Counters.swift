// Counters of the server's work: one set per event loop, written by that loop alone, read by any thread.

package import Basics
internal import DocumentModel
package import FirestoreMessages

/// What one loop's service counted since it started.
package final class ServiceCounters: TurnObserver, Sendable {
    /// Calls begun.
    package let callsStarted = Counter()
    /// Calls that ended with a status that is the caller's to handle.
    package let callsFailed = Counter()
    /// Calls that ended with INTERNAL, DATA_LOSS or UNKNOWN: our fault, each is logged.
    package let callsBroken = Counter()
    /// Calls the peer gave up, or whose deadline passed, before their answer.
    package let callsAbandoned = Counter()
    /// Documents sent in answers.
    package let documentsRead = Counter()
    /// Documents looked for and not found.
    package let documentsMissing = Counter()
    /// Writes handed to the store.
    package let writesSubmitted = Counter()
    /// Commits and batch writes whose answer has not come back yet: a gauge.
    package let commitsInFlight = Counter()
    /// Streaming answers under way: a gauge.
    package let streamsOpen = Counter()
    /// Messages sent to listeners.
    package let listenMessages = Counter()
    /// Bytes that listeners hold: a gauge.
    package let listenerBytes = Counter()

    private let samples = CollectionSamples()
    private let readSample = SamplePoint(seed: UInt64.random(in: .min ... .max))
    private let writeSample = SamplePoint(seed: UInt64.random(in: .min ... .max))

    /// About the use of collections, on this loop.
    var collectionUse: [CollectionUse] { samples.all }

    /// Counts a document of an answer.
    ///
    /// - Parameters:
    ///   - database: asked for rarely.
    ///   - path: of the document, below `documents`.
    @inline(__always)
    func countRead(_ path: RawSpan, of database: @autoclosure () -> String) {
        documentsRead.add()
        if readSample.isDue(documentsRead) { sampleRead(path, database()) }
    }

    /// Counts the documents of an answer that are all of one collection.
    func countReads(_ count: Int, _ path: RawSpan, of database: @autoclosure () -> String) {
        documentsRead.add(UInt64(count))
        if readSample.isDue(documentsRead) { sampleRead(path, database()) }
    }

    private func sampleRead(_ path: RawSpan, _ database: String) {
        var count: UInt64 = 0
        while readSample.isDue(documentsRead) {
            _ = readSample.take(documentsRead)
            count += 1
        }
        samples.note(database: database, path: path, count: count, isWrite: false)
    }

    /// Counts writes that are handed to the store.
    func countWrites(_ writes: borrowing WriteList) {
        writesSubmitted.add(UInt64(writes.count))
        while writeSample.isDue(writesSubmitted) {
            let fromEnd = writeSample.take(writesSubmitted)
            // The last write has made the counter what it is.
            let position = writes.count - 1 - Int(clamping: fromEnd)
            guard position >= 0 else { continue }
            samples.note(
                database: "\(writes.database)", path: writes.path(of: writes.writes[position]), count: 1, isWrite: true)
        }
    }

    /// Calls ended, by method and status code.
    private let ended = InlineArray<64, InlineArray<17, Counter>> { _ in InlineArray { _ in Counter() } }
    /// Nanoseconds from a call's arrival to its answer, by method.
    private let latencies = InlineArray<64, Histogram> { _ in Histogram() }
    /// Calls that began and ended in this loop iteration, by method; a bit for each method that has any.
    private let answeredImmediately = InlineArray<64, Counter> { _ in Counter() }
    private let methodsAnswered = Counter()

    package init() {}

    /// Counts the end of a call.
    @inline(__always)
    package func callEnded(_ rpc: RPC, _ code: StatusCode) {
        ended[rpc.row][Int(code.rawValue)].add()
    }

    /// Notes how long a call took that was not answered in the turn in which it came.
    func recordDuration(_ rpc: RPC, nanoseconds: UInt64) {
        latencies[rpc.row].record(nanoseconds)
    }

    /// Notes a call that ended in the loop iteration in which it began. Its reply is written at the end of the
    /// iteration, which is its time; all such calls of an iteration together read the clock twice.
    @inline(__always)
    func callAnsweredImmediately(_ rpc: RPC, on loop: any LoopThread) {
        let index = rpc.row
        if answeredImmediately[index].value == 0 {
            if methodsAnswered.value == 0 { loop.whenTurnEnds(self) }
            methodsAnswered.add(1 << UInt64(index))
        }
        answeredImmediately[index].add()
    }

    package func turnEnded(nanoseconds: UInt64) {
        var methods = methodsAnswered.value
        methodsAnswered.subtract(methods)
        while methods != 0 {
            let index = methods.trailingZeroBitCount
            methods &= methods &- 1
            let calls = answeredImmediately[index].value
            answeredImmediately[index].subtract(calls)
            latencies[index].record(nanoseconds, times: calls)
        }
    }

    package func callsEnded(_ method: Method, _ code: StatusCode) -> UInt64 {
        ended[method.rpc.row][Int(code.rawValue)].value
    }

    package func latency(_ method: Method) -> HistogramReading { latencies[method.rpc.row].reading }
}

extension RPC {
    /// Where its counters are, below 64: Firestore's methods by their numbers, then those of other services.
    @inline(__always)
    fileprivate var row: Int {
        let number = Int(number)
        if number < Self.otherServices { return number }
        return number < Self.administration ? number - Self.otherServices + 24 : number - Self.administration + 27
    }

    /// The lowest number of a method that is not Firestore's.
    private static var otherServices: Int { 128 }
    /// The lowest number of an administrative method.
    private static var administration: Int { 192 }
}

extension Method {
    /// Its name in metrics: those of other services carry the service's.
    package var label: String {
        switch service {
        case .firestore: name
        case .health: "Health/\(name)"
        case .reflection: "ServerReflection/\(name)"
        case .administration: "Admin/\(name)"
        case .firestoreAdmin: "FirestoreAdmin/\(name)"
        case .operations: "Operations/\(name)"
        }
    }
}

/// The counters of all loops added up at one moment.
package struct CounterTotals: Equatable, Sendable {
    package private(set) var values: [(name: String, value: UInt64)] = []

    package init(_ loops: [ServiceCounters]) {
        func total(_ name: String, _ counter: (ServiceCounters) -> UInt64) {
            values.append((name, loops.reduce(0) { $0 &+ counter($1) }))
        }
        total("calls_started") { $0.callsStarted.value }
        total("calls_succeeded") { counters in Method.allCases.reduce(0) { $0 &+ counters.callsEnded($1, .ok) } }
        total("calls_failed") { $0.callsFailed.value }
        total("calls_broken") { $0.callsBroken.value }
        total("calls_abandoned") { $0.callsAbandoned.value }
        total("documents_read") { $0.documentsRead.value }
        total("documents_missing") { $0.documentsMissing.value }
        total("writes_submitted") { $0.writesSubmitted.value }
        total("commits_in_flight") { $0.commitsInFlight.value }
        total("streams_open") { $0.streamsOpen.value }
        total("listen_messages") { $0.listenMessages.value }
    }

    /// The total of a name that logs use.
    package subscript(name: String) -> UInt64? { values.first { $0.name == name }?.value }

    package static func == (left: CounterTotals, right: CounterTotals) -> Bool {
        left.values.elementsEqual(right.values) { $0 == $1 }
    }
}
