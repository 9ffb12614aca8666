import Calls
import EventLoops

/// What a connection keeps with those of its calls that are not answered at once, as a value without I/O: deadlines,
/// sources, receivers, and which sources are to be asked next.
///
/// A call that ends while its request is handled is never in it. The connection performs: it asks the sources,
/// sets the timers and writes (`CallConnection+Streaming.swift`). The table decides:
///
///     ready ──ask──▶ asked ──.message──▶ ready
///                      ├──.waiting──▶ waiting ──resume──▶ ready
///                      └──window shut──▶ stalled ──window opens──▶ ready
package struct CallTable {
    private struct Entry {
        var source: (any ResponseSource)?
        var receiver: (any CallStream)?
        var deadline: Deadline?
        /// The source has nothing, until `resume`.
        var isWaiting = false
        /// `resume` came while the source was being asked.
        var wasResumed = false
        /// In `ready`.
        var isReady = false
        /// When the client's window was first found shut, in monotonic milliseconds; nil while it is open.
        var stalledSince: UInt64?
    }

    package struct Deadline {
        /// In monotonic milliseconds.
        let at: UInt64
        let timer: EventLoop.Timer
    }

    /// What the owner of an ended call has to notify and to stop.
    package struct Ended {
        let source: (any ResponseSource)?
        let timer: EventLoop.Timer?
    }

    private var entries = StreamTable<Entry>()
    /// Streams whose sources are to be asked, in order.
    private var ready: [UInt32] = []

    package var hasReady: Bool { !ready.isEmpty }
    var isEmpty: Bool { entries.isEmpty }

    /// Takes a call out; nil when the table has nothing of it.
    mutating func remove(_ stream: UInt32) -> Ended? {
        entries.remove(stream).map { Ended(source: $0.source, timer: $0.deadline?.timer) }
    }

    // MARK: Deadlines

    func deadline(of stream: UInt32) -> Deadline? {
        entries.position(of: stream).flatMap { entries[position: $0].deadline }
    }

    /// The caller has found that the call has no deadline yet.
    mutating func setDeadline(of stream: UInt32, _ deadline: Deadline) {
        let position = position(for: stream)
        entries[position: position].deadline = deadline
    }

    // MARK: Sources

    /// Gives a call its source, which is ready. At most once for a call.
    mutating func setSource(of stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        let position = position(for: stream)
        precondition(entries[position: position].source == nil, "a call has one source")
        entries[position: position].source = source
        entries[position: position].receiver = receiver
        makeReady(stream)
    }

    /// Who takes the client's messages.
    func receiver(of stream: UInt32) -> (any CallStream)? {
        entries.position(of: stream).flatMap { entries[position: $0].receiver }
    }

    /// The source has ended by itself: the end of the call does not cancel it.
    mutating func dropSource(of stream: UInt32) {
        guard let position = entries.position(of: stream) else { return }
        entries[position: position].source = nil
    }

    /// Puts the call among the ready ones, unless it is there, waits, or has no source; whether it did.
    @discardableResult
    mutating func makeReady(_ stream: UInt32) -> Bool {
        guard let position = entries.position(of: stream), entries[position: position].source != nil,
            !entries[position: position].isReady,
            !entries[position: position].isWaiting
        else { return false }
        entries[position: position].isReady = true
        ready.append(stream)
        return true
    }

    /// The same for every call: a window of all of them has opened.
    mutating func makeAllReady() { for stream in entries.streams { makeReady(stream) } }

    /// A source that waited has something again; whether it is ready now.
    mutating func resume(_ stream: UInt32) -> Bool {
        guard let position = entries.position(of: stream) else { return false }
        guard entries[position: position].isWaiting else {
            entries[position: position].wasResumed = true
            return false
        }
        entries[position: position].isWaiting = false
        return makeReady(stream)
    }

    // MARK: Sources to poll

    /// Takes out all ready streams, to be asked in order.
    mutating func takeReady() -> [UInt32] {
        let all = ready
        ready = []
        return all
    }

    /// Puts streams back that `takeReady` returned and that were not asked: before those that were.
    mutating func putBack(_ streams: ArraySlice<UInt32>) { ready.insert(contentsOf: streams, at: 0) }

    /// The source to ask; nil when the call is over or its source has ended.
    mutating func beginProducing(_ stream: UInt32) -> (any ResponseSource)? {
        guard let position = entries.position(of: stream), let source = entries[position: position].source else {
            return nil
        }
        entries[position: position].isReady = false
        entries[position: position].wasResumed = false
        return source
    }

    /// The source had nothing; whether it waits now. It does not when it was resumed while it was asked: then it is
    /// ready.
    mutating func sourceWaits(_ stream: UInt32) -> Bool {
        guard let position = entries.position(of: stream) else { return false }
        if entries[position: position].wasResumed {
            makeReady(stream)
            return false
        }
        entries[position: position].isWaiting = true
        return true
    }

    // MARK: Stalled clients

    /// Notes whether the client's window is open to the source.
    mutating func noteWindow(of stream: UInt32, isOpen: Bool, now: UInt64) {
        guard let position = entries.position(of: stream) else { return }
        entries[position: position].stalledSince = isOpen ? nil : entries[position: position].stalledSince ?? now
    }

    /// Streams whose clients have kept their windows shut for `limit` milliseconds.
    func stalled(now: UInt64, limit: UInt64) -> [UInt32] {
        entries.streams.filter { stream in
            guard let position = entries.position(of: stream), let since = entries[position: position].stalledSince
            else {
                return false
            }
            return now - since >= limit
        }
    }

    private mutating func position(for stream: UInt32) -> Int {
        entries.position(of: stream) ?? entries.insert(stream, Entry())
    }
}
