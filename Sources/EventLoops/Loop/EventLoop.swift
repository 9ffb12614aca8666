// One thread that runs a libuv loop: sockets, coarse timers, and work handed over by other threads.
//
// Everything that belongs to a connection lives on the thread of its loop and needs no lock. Other threads reach in
// through `execute` only. Each entry from libuv (bytes arrived, a write ended, timers, handed-over work) is a *turn*;
// connections that have something to send say so with `needsSettling`, and at the end of the turn each is settled:
// so all replies of one read, and all completions of one commit group, leave in one write. Work that may be long is not
// done in these turns but in shares after them (`needsWork`, IterationBudget.swift).

package import Basics
import CUV
import Glibc
import Synchronization

/// The target of a timer; called on the loop's thread.
package protocol TimerTarget: AnyObject {
    func timerFired(_ token: UInt64)
}

/// A libuv loop on its own thread.
///
/// `execute` and `stop` may be called from any thread; all else on the loop's thread only, which is checked.
@safe package final class EventLoop: LoopThread, @unchecked Sendable {
    // Sendable: `submittedWork` and `wakeUp` serve all threads, the rest is confined to the loop's thread, and the
    // memory of the libuv handles lives until the loop's thread has ended and `deinit` runs.

    /// Name of the thread, for tools and logs.
    package let name: String
    /// Length of a timer tick in milliseconds: the precision of every deadline.
    package static let tickMilliseconds: UInt64 = 10

    let uv: UnsafeMutablePointer<uv_loop_t>
    /// Memory that a read may fill when its connection holds no part of a frame; lent to one read at a time.
    let readBuffer: UnsafeMutableRawBufferPointer
    let readBufferBytes: Int
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let ticker: UnsafeMutablePointer<uv_timer_t>
    private let beforeWaiting: UnsafeMutablePointer<uv_prepare_t>
    /// Called when everything that had come was read.
    private let afterReading: UnsafeMutablePointer<uv_check_t>
    /// While it is active the loop does not wait.
    private let moreWork: UnsafeMutablePointer<uv_idle_t>
    private var waitObservers: [() -> Void] = []
    private let submittedWork = Mutex(SubmittedWork())
    private let life = Mutex(Life.notStarted)
    /// The thread that runs the loop, zero before it does.
    private let runningThread = Atomic<UInt>(0)

    private let pool = Confined(WriterPool())
    private var wheel: TimerWheel<DueTimer>
    private var tickerDue: UInt64 = .max
    private let unsettled = Confined<[Channel]>([])
    /// Those that are settled at the end of the iteration.
    private let gathering = Confined<[Channel]>([])
    private let longWork = Confined(LongWork())
    private var jobs: [Job] = []
    private var nextJob = 0
    /// Nanoseconds when the clock was read in this turn; 0 before.
    private let clock = Confined<UInt64>(0)
    /// Nanoseconds when the first turn of this iteration began; 0 before.
    private let iterationStart = Confined<UInt64>(0)
    private var longestIteration = LongestIteration()
    private let readClock: (() -> UInt64)?
    private let turnObservers = Confined<[any TurnObserver]>([])
    /// Whether `uv_run` is to end at the next chance.
    private var isStopping = false

    private enum Life {
        case notStarted
        case running(SystemThread)
        case stopped
    }

    /// Work from another thread. A structure: closures as elements of an array have another calling convention, for
    /// which each would be wrapped in a further object.
    private struct Job {
        let work: @Sendable () -> Void
    }

    private struct SubmittedWork {
        var jobs: [Job] = []
        var isClosed = false
    }

    private struct LongWork {
        var rotation = WorkRotation()
        var budget = IterationBudget()
    }

    /// Jobs that are done between two looks at the clock.
    private static let jobsPerCheck = 16

    /// Makes a loop; nothing runs before `start`.
    ///
    /// - Parameters:
    ///   - readBufferBytes: how much one read from a socket may bring.
    ///   - clock: monotonic nanoseconds, not zero, for tests; nil stands for the system's clock.
    package init(name: String = "hearth-loop", readBufferBytes: Int = 64 << 10, clock readClock: (() -> UInt64)? = nil)
    {
        self.name = name
        self.readBufferBytes = readBufferBytes
        self.readClock = readClock
        unsafe uv = .allocate(capacity: 1)
        unsafe wakeUp = .allocate(capacity: 1)
        unsafe ticker = .allocate(capacity: 1)
        unsafe beforeWaiting = .allocate(capacity: 1)
        unsafe afterReading = .allocate(capacity: 1)
        unsafe moreWork = .allocate(capacity: 1)
        unsafe readBuffer = .allocate(byteCount: readBufferBytes, alignment: 64)
        unsafe expectSuccess(uv_loop_init(uv), "uv_loop_init")
        wheel = TimerWheel(now: unsafe uv_now(uv) / Self.tickMilliseconds)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe expectSuccess(
            uv_async_init(uv, wakeUp) { unsafe EventLoop.of($0!.pointee.data).takeSubmittedWork() }, "uv_async_init")
        unsafe wakeUp.pointee.data = this
        unsafe expectSuccess(uv_timer_init(uv, ticker), "uv_timer_init")
        unsafe ticker.pointee.data = this
        unsafe expectSuccess(uv_prepare_init(uv, beforeWaiting), "uv_prepare_init")
        unsafe beforeWaiting.pointee.data = this
        unsafe expectSuccess(uv_check_init(uv, afterReading), "uv_check_init")
        unsafe afterReading.pointee.data = this
        unsafe expectSuccess(uv_idle_init(uv, moreWork), "uv_idle_init")
        unsafe moreWork.pointee.data = this
        unsafe expectSuccess(
            uv_prepare_start(beforeWaiting) { unsafe EventLoop.of($0!.pointee.data).willWait() }, "uv_prepare_start")
        unsafe expectSuccess(
            uv_check_start(afterReading) { unsafe EventLoop.of($0!.pointee.data).doLongWork() }, "uv_check_start")
    }

    deinit {
        // The thread holds a reference while it runs, so it has ended or was never started.
        if case .notStarted = life.withLock({ $0 }) { closeHandles() }
        unsafe uv.deallocate()
        unsafe wakeUp.deallocate()
        unsafe ticker.deallocate()
        unsafe beforeWaiting.deallocate()
        unsafe afterReading.deallocate()
        unsafe moreWork.deallocate()
        unsafe readBuffer.deallocate()
    }

    private static func of(_ data: UnsafeMutableRawPointer?) -> EventLoop {
        unsafe Unmanaged<EventLoop>.fromOpaque(data!).takeUnretainedValue()
    }

    // MARK: The thread

    /// Starts the loop's thread.
    package func start() {
        _ = signal(SIGPIPE, SIG_IGN)
        life.withLock { life in
            guard case .notStarted = life else { preconditionFailure("a loop is started once") }
            do {
                life = .running(try SystemThread(name: "loop") { self.run() })
            } catch {
                preconditionFailure("\(error)")
            }
        }
    }

    /// Ends the loop and waits for its thread. Connections still open are cut. Work handed over later is dropped, and
    /// stopping again does nothing.
    package func stop() {
        precondition(!isCurrent, "a loop cannot wait for its own end")
        let running = life.withLock { life -> SystemThread? in
            guard case .running(let thread) = life else { return nil }
            life = .stopped
            return thread
        }
        guard let running else { return }
        execute { [unowned self] in
            isStopping = true
            unsafe uv_stop(uv)
        }
        running.join()
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool { runningThread.load(ordering: .relaxed) == Self.currentThread }

    private static var currentThread: UInt {
        #if os(Linux)
            pthread_self()
        #else
            UInt(bitPattern: pthread_self())
        #endif
    }

    private func run() {
        runningThread.store(Self.currentThread, ordering: .relaxed)
        unsafe hearth_name_thread(name)
        repeat { _ = unsafe uv_run(uv, UV_RUN_DEFAULT) } while !isStopping
        submittedWork.withLock {
            $0.isClosed = true
            $0.jobs = []
        }
        closeHandles()
    }

    /// Runs the loop on the calling thread, instead of ``start()``, until `isDone`, which is asked after each event.
    ///
    /// For programs and tests whose thread has nothing else to do. It may be called again, on the same thread.
    package func run(until isDone: () -> Bool) {
        runningThread.store(Self.currentThread, ordering: .relaxed)
        while !isDone() { _ = unsafe uv_run(uv, UV_RUN_ONCE) }
        runningThread.store(0, ordering: .relaxed)
    }

    /// Closes whatever is left, so that each handle's memory is given back by its close callback.
    private func closeHandles() {
        unsafe uv_walk(
            uv,
            { handle, _ in
                guard unsafe uv_is_closing(handle) == 0 else { return }
                switch unsafe uv_handle_get_type(handle) {
                case UV_TCP: unsafe TCPHandle.closeOrphan(handle!)
                case UV_POLL: unsafe Listener.closeOrphan(handle!)
                default: unsafe uv_close(handle, nil)
                }
            }, nil)
        _ = unsafe uv_run(uv, UV_RUN_DEFAULT)
        unsafe expectSuccess(uv_loop_close(uv), "uv_loop_close")
        releaseWork()
    }

    /// Releases what would have run: it knows the loop. What is released may call the loop, so it is taken out first.
    private func releaseWork() {
        let (timers, observers, work, left) = (wheel, waitObservers, longWork.state.rotation, jobs)
        wheel = TimerWheel(slots: 1)
        waitObservers = []
        longWork.state.rotation.removeAll()
        gathering.state.removeAll()
        jobs = []
        withExtendedLifetime((timers, observers, work, left)) {}
    }

    // MARK: Work from other threads

    /// Runs `work` on the loop's thread, in the order of the calls; from any thread, also its own.
    ///
    /// However many calls come before the loop gets to them, it is woken once. Dropped when the loop has stopped.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        // The signal is sent under the lock, so that the loop cannot end in between.
        submittedWork.withLock {
            guard !$0.isClosed else { return }
            $0.jobs.append(Job(work: work))
            if $0.jobs.count == 1 { unsafe uv_async_send(wakeUp) }
        }
    }

    private func takeSubmittedWork() {
        beginTurn()
        let hadRest = !jobs.isEmpty
        if !hadRest { submittedWork.withLock { swap(&$0.jobs, &jobs) } }
        let end = turnNanoseconds + IterationBudget.iterationNanoseconds
        while nextJob < jobs.count {
            jobs[nextJob].work()
            nextJob += 1
            if nextJob % Self.jobsPerCheck == 0, nanoseconds >= end { break }
        }
        let hasRest = nextJob < jobs.count
        if !hasRest {
            // What the jobs refer to is released now, not when the next one comes.
            jobs.removeAll(keepingCapacity: true)
            nextJob = 0
        }
        // The rest has its turn after others. libuv joins signals: the one for the rest may also be that of new jobs.
        if hasRest || hadRest { unsafe uv_async_send(wakeUp) }
        endTurn()
    }

    // MARK: Turns

    /// Settles the channel once at the end of this turn, or of the iteration if it gathers output. The caller ensures
    /// that it does not wait for that yet.
    func needsSettling(_ channel: Channel) {
        if channel.gathersOutput { gathering.state.append(channel) } else { unsettled.state.append(channel) }
    }

    /// Every callback from libuv begins with this.
    @inline(__always)
    func beginTurn() {
        guard iterationStart.state == 0 else { return }
        iterationStart.state = nanoseconds
        clock.state = iterationStart.state
    }

    /// Every callback from libuv ends with this.
    func endTurn() {
        var index = 0
        while index < unsettled.state.count {
            let channel = unsettled.state[index]
            index += 1
            channel.settle()
        }
        if index > 0 { unsettled.state.removeAll(keepingCapacity: true) }
        if !turnObservers.state.isEmpty { notifyObservers() }
        clock.state = 0
    }

    /// When the first turn of this iteration began, in nanoseconds; 0 before.
    var iterationStartNanoseconds: UInt64 { iterationStart.state }

    /// The iteration has done all it does, and the loop is about to wait or to look whether more has come.
    private func willWait() {
        for observer in waitObservers { observer() }
        settleGathering()
        guard iterationStart.state != 0 else { return }
        let now = nanoseconds
        longestIteration.record(now &- iterationStart.state, now: now)
        iterationStart.state = 0
    }

    private func settleGathering() {
        while !gathering.state.isEmpty {
            beginTurn()
            swap(&unsettled.state, &gathering.state)
            endTurn()
        }
    }

    /// The longest iteration of the last one to two minutes, in nanoseconds: for so long something that had come may
    /// have waited to be read.
    package var longestIterationNanoseconds: UInt64 { longestIteration.value(now: nanoseconds) }

    // MARK: Long work

    /// Has ``LoopWork/work()`` called once, when everything that had come was read and those that wait already had
    /// their shares. The caller sees to it that it does not wait yet.
    package func needsWork(_ worker: any LoopWork) {
        if longWork.state.rotation.isEmpty {
            unsafe expectSuccess(uv_idle_start(moreWork) { _ in }, "uv_idle_start")
        }
        longWork.state.rotation.append(worker)
    }

    /// Counts bytes that the worker which has its share has made.
    package func spend(_ bytes: Int) { longWork.state.budget.spend(bytes, now: nanoseconds) }

    /// Whether the worker that has its share should stop.
    package var isShareSpent: Bool { longWork.state.budget.isShareSpent }

    private func doLongWork() {
        guard !longWork.state.rotation.isEmpty else { return }
        beginTurn()
        longWork.state.budget.begin(now: nanoseconds)
        while !longWork.state.budget.isIterationSpent, let worker = longWork.state.rotation.popFirst() {
            longWork.state.budget.beginShare()
            worker.work()
            spend(0)
            longWork.state.budget.endShare()
            endTurn()
        }
        if longWork.state.rotation.isEmpty { unsafe uv_idle_stop(moreWork) }
    }

    /// Calls `observer` each time the loop has dealt with all that was there and is about to wait for more.
    package func beforeEachWait(_ observer: @escaping () -> Void) {
        waitObservers.append(observer)
    }

    // MARK: Buffers

    /// An empty buffer to write output into.
    package func takeWriter() -> ByteBuffer { pool.state.take() }

    /// Takes a buffer back whose bytes have been sent.
    package func recycle(_ writer: consuming ByteBuffer) { pool.state.give(writer) }

    // MARK: Time

    package typealias Timer = TimerWheel<DueTimer>.Timer

    /// What a timer calls.
    package struct DueTimer {
        fileprivate let target: any TimerTarget
        fileprivate let token: UInt64
    }

    /// Monotonic milliseconds, as of the beginning of this turn.
    package var nowMilliseconds: UInt64 { unsafe uv_now(uv) }

    /// Monotonic nanoseconds as of the first time that this was asked in this turn: however many ask, the clock is read
    /// once.
    package var turnNanoseconds: UInt64 {
        if clock.state == 0 { clock.state = nanoseconds }
        return clock.state
    }

    /// Monotonic nanoseconds now.
    package var nanoseconds: UInt64 { readClock?() ?? uv_hrtime() }

    /// Has the observer called, once, when everything of this turn has been handed to the sockets.
    package func whenTurnEnds(_ observer: any TurnObserver) { turnObservers.state.append(observer) }

    private func notifyObservers() {
        let started = turnNanoseconds
        let duration = nanoseconds - started
        // Observers ask for the next turn's end in the next turn only.
        for observer in turnObservers.state { observer.turnEnded(nanoseconds: duration) }
        turnObservers.state.removeAll(keepingCapacity: true)
    }

    /// Calls `target.timerFired(token)` once, `milliseconds` from now or up to a tick later. The wheel holds the target
    /// until then.
    package func schedule(afterMilliseconds milliseconds: UInt64, _ target: any TimerTarget, token: UInt64 = 0) -> Timer
    {
        let now = nowMilliseconds
        if wheel.count == 0 { _ = wheel.takeDue(upTo: now / Self.tickMilliseconds) }
        let due = (now + min(milliseconds, 1 << 48) + Self.tickMilliseconds - 1) / Self.tickMilliseconds
        let timer = wheel.insert(at: due, DueTimer(target: target, token: token))
        armTicker(at: due)
        return timer
    }

    /// Runs `work` once, `milliseconds` from now or up to a tick later.
    @discardableResult
    package func schedule(afterMilliseconds milliseconds: UInt64, _ work: @escaping () -> Void) -> Timer {
        schedule(afterMilliseconds: milliseconds, TimedWork(work))
    }

    package func execute(afterMilliseconds milliseconds: UInt64, _ work: @escaping () -> Void) {
        schedule(afterMilliseconds: milliseconds, work)
    }

    /// Forgets a timer; harmless when it has fired.
    package func cancel(_ timer: Timer) { wheel.remove(timer) }

    private func armTicker(at tick: UInt64) {
        guard tick < tickerDue else { return }
        tickerDue = tick
        let at = tick * Self.tickMilliseconds
        let now = nowMilliseconds
        unsafe uv_timer_start(
            ticker, { unsafe EventLoop.of($0!.pointee.data).fireTimers() }, at > now ? at - now : 0, 0)
    }

    private func fireTimers() {
        beginTurn()
        tickerDue = .max
        for due in wheel.takeDue(upTo: nowMilliseconds / Self.tickMilliseconds) { due.target.timerFired(due.token) }
        if let next = wheel.nextTick { armTicker(at: next) }
        endTurn()
    }
}

/// A closure as a timer's target.
private final class TimedWork: TimerTarget {
    private let work: () -> Void
    init(_ work: @escaping () -> Void) { self.work = work }
    func timerFired(_ token: UInt64) { work() }
}

/// Traps with libuv's message when a call fails that can only fail by our mistake or for lack of memory.
func expectSuccess(_ result: Int32, _ call: StaticString) {
    guard result < 0 else { return }
    fatalError("\(call) failed: \(describeError(result))")
}

/// libuv's text for one of its error numbers.
func describeError(_ error: Int32) -> String { unsafe String(cString: uv_strerror(error)) }
