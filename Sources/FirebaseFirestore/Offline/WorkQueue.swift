import Dispatch
import Synchronization

/// A serial executor on which events that wait are taken together, and other work runs alone. Everything begins in the
/// order of the calls, and one thing at a time runs.
///
///     submit(a)  submit(b)  async(read)  submit(c)  submit(d)
///     └── take([a, b]) ──┘  └─ alone ─┘  └── take([c, d]) ──┘
///
/// Work runs on a dispatch queue. Events may run on the thread that submits them if nothing else runs: this saves two
/// thread switches. That thread also takes the events that come meanwhile, a bounded number of times.
/// Thread-safe.
final class WorkQueue<Event: Sendable>: Sendable {
    private enum Item {
        case event(Event)
        case work(@Sendable () -> Void)
    }

    private struct State {
        var items: [Item] = []
        /// Whether one of the items is work.
        var hasWork = false
        /// Whether a thread takes the items, or will.
        var isRunning = false
    }

    /// How often a thread that submits events takes those of others.
    private static var roundsMax: Int { 16 }

    private let queue: DispatchQueue
    private let state = Mutex(State())
    private let take: @Sendable ([Event]) -> Void

    /// - Parameter take: called on the queue with events, at least one.
    init(label: String, take: @escaping @Sendable ([Event]) -> Void) {
        queue = DispatchQueue(label: label)
        self.take = take
    }

    /// Adds events, which are taken together with others that wait.
    ///
    /// - Parameter mayRun: whether they may be taken on this thread.
    func submit(_ events: [Event], mayRun: Bool) { add(events.map { .event($0) }, isWork: false, mayRun: mayRun) }

    /// Runs a block alone.
    func async(_ body: @escaping @Sendable () -> Void) { add([.work(body)], isWork: true, mayRun: false) }

    /// Runs a block alone, not before the delay has passed.
    func async(after delay: DispatchTimeInterval, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + delay) { self.async(body) }
    }

    /// Runs a block alone after everything so far, and waits for its end.
    func sync(_ body: @escaping @Sendable () -> Void) {
        let end = DispatchSemaphore(value: 0)
        async {
            body()
            end.signal()
        }
        end.wait()
    }

    private func add(_ items: [Item], isWork: Bool, mayRun: Bool) {
        let wasRunning = state.withLock { state in
            state.items.append(contentsOf: items)
            if isWork { state.hasWork = true }
            defer { state.isRunning = true }
            return state.isRunning
        }
        if wasRunning { return }
        if mayRun { runOnCallingThread() } else { continueOnQueue() }
    }

    /// Not under the lock: the thread that wakes takes it at once.
    private func continueOnQueue() {
        queue.async { while self.step(onQueue: true) == .ran {} }
    }

    /// Takes events on the calling thread, and leaves the rest to the queue.
    private func runOnCallingThread() {
        for _ in 0..<Self.roundsMax {
            switch step(onQueue: false) {
            case .ran: continue
            case .idle: return
            case .left: return continueOnQueue()
            }
        }
        continueOnQueue()
    }

    private enum Step { case ran, idle, left }

    /// Runs what waits.
    ///
    /// - Parameter onQueue: whether the calling thread is the queue's; others leave work to it.
    private func step(onQueue: Bool) -> Step {
        let items: [Item]? = state.withLock { state in
            if state.hasWork && !onQueue { return nil }
            if state.items.isEmpty { state.isRunning = false }
            defer { (state.items, state.hasWork) = ([], false) }
            return state.items
        }
        guard let items else { return .left }
        if items.isEmpty { return .idle }
        var events: [Event] = []
        for item in items {
            switch item {
            case .event(let event): events.append(event)
            case .work(let body):
                deliver(&events)
                body()
            }
        }
        deliver(&events)
        return .ran
    }

    private func deliver(_ events: inout [Event]) {
        if events.isEmpty { return }
        take(events)
        events = []
    }
}
