internal import Basics
internal import Storage

/// Reads pages of runs for reads that wait, on a few threads, so that a disk has many requests at a time. Thread-safe.
///
/// The threads are started when they are needed, and end with the engine.
final class PageFetcher: Sendable {
    /// One call of `fetch`.
    private final class Request: Sendable {
        private struct State {
            var pagesLeft: Int
            var failure: StorageError?
        }

        private let state: Monitor<State>
        private let completion: @Sendable (Result<Void, StorageError>) -> Void

        init(pages: Int, _ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
            state = Monitor(State(pagesLeft: pages))
            self.completion = completion
        }

        /// One page is dealt with.
        /// - Returns: whether it was the last one.
        func pageEnded(_ failure: StorageError?) -> Bool {
            let ended = state.withLock { state -> State? in
                if state.failure == nil { state.failure = failure }
                state.pagesLeft -= 1
                return state.pagesLeft == 0 ? state : nil
            }
            guard let ended else { return false }
            completion(ended.failure.map { .failure($0) } ?? .success(()))
            return true
        }
    }

    private struct State {
        /// The pages to be read, the next one last.
        var queue: [(page: ColdPage, request: Request)] = []
        /// Those that came later, in their order.
        var arrived: [(page: ColdPage, request: Request)] = []
        var threads: [SystemThread] = []
        /// Threads that are reading.
        var busyThreads = 0
        /// Calls whose completion is to be called.
        var waiting = 0
        var isClosed = false

        /// Pages that no thread reads yet.
        var pageCount: Int { queue.count + arrived.count }

        mutating func takeNext() -> (page: ColdPage, request: Request)? {
            if queue.isEmpty {
                queue = arrived.reversed()
                arrived = []
            }
            return queue.popLast()
        }
    }

    /// Pages that may wait, for each read that may.
    private static let pagesPerRead = 16

    private let runs: RunStore
    private let threadsMax: Int
    private let waitingMax: Int
    private let state = Monitor(State())
    private let sweeper: PageSweeper

    init(_ runs: RunStore, _ options: EngineOptions) {
        self.runs = runs
        threadsMax = max(1, options.pageThreadsMax)
        waitingMax = options.waitingReadsMax
        sweeper = PageSweeper(runs)
    }

    /// Reads pages and verifies them.
    /// - Parameter completion: called once, on a thread for pages or at once: with `corrupt` if one cannot be read,
    ///   with `tooManyReaders` or `closed` if none is.
    func fetch(_ pages: [ColdPage], _ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        if pages.isEmpty { return completion(.success(())) }
        let request = Request(pages: pages.count, completion)
        let refusal = state.withLock { state -> StorageError? in
            if state.isClosed { return StorageError(.closed, "the engine is closed") }
            if state.waiting >= waitingMax || state.pageCount >= waitingMax * Self.pagesPerRead {
                return StorageError(.tooManyReaders, "too many reads wait for a disk")
            }
            state.waiting += 1
            state.arrived += pages.map { ($0, request) }
            startThreads(&state)
            return nil
        }
        if let refusal { return completion(.failure(refusal)) }
        for _ in 0..<min(pages.count, threadsMax) { state.wakeOne() }
        sweeper.readWasPending()
    }

    /// Whether a read may be pending. A read may be pending all the same if this is false.
    var mayBeCold: Bool { sweeper.isCold.load(ordering: .relaxed) }

    /// From now on pages that the kernel drops are looked for.
    func watch() { sweeper.start() }

    /// If the system has no thread left, those that there are do all, and the first one is tried for again.
    private func startThreads(_ state: inout State) {
        let wanted = state.busyThreads + state.pageCount
        var missing = min(wanted, threadsMax) - state.threads.count
        while missing > 0 {
            guard let thread = try? SystemThread.start("pages", { [self] in run() }) else { break }
            state.threads.append(thread)
            missing -= 1
        }
        if !state.threads.isEmpty { return }
        SystemThread.runDetached(name: "pages") { [self] in
            while let next = self.state.withLock({ $0.takeNext() }) { perform(next.page, next.request) }
        }
    }

    private func run() {
        while true {
            let next = state.wait { state -> (page: ColdPage, request: Request)?? in
                guard let next = state.takeNext() else { return state.isClosed ? .some(nil) : nil }
                state.busyThreads += 1
                return .some(next)
            }
            guard let next else { return }
            perform(next.page, next.request)
            state.withLock { $0.busyThreads -= 1 }
        }
    }

    private func perform(_ page: ColdPage, _ request: Request) {
        var failure: StorageError?
        do throws(StorageError) { try read(page) } catch { failure = error }
        if request.pageEnded(failure) { state.withLock { $0.waiting -= 1 } }
    }

    /// - Throws: `corrupt` if the page cannot be read or is damaged.
    private func read(_ page: ColdPage) throws(StorageError) {
        // Otherwise the file was merged, and the read will find others.
        guard let file = runs.file(page.file) else { return }
        if runs.fault.isSet {
            do throws(StorageError) {
                try runs.fault.check(.readPages, file: file.path)
            } catch {
                throw StorageError(.corrupt, error.message, file: file.path)
            }
        }
        try file.part.fetch(page.place)
    }

    /// Ends the threads. Reads that wait get `closed`.
    func close() {
        let (left, threads) = state.update { state in
            state.isClosed = true
            let left = state.queue + state.arrived
            state.queue = []
            state.arrived = []
            defer { state.threads = [] }
            return (left, state.threads)
        }
        for (_, request) in left where request.pageEnded(StorageError(.closed, "the engine is closed")) {
            state.withLock { $0.waiting -= 1 }
        }
        for thread in threads { thread.join() }
        sweeper.close()
    }
}
