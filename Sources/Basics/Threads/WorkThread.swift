/// State with a thread that exists while there is something to do. Thread-safe.
///
/// What the thread uses besides the state is its own, up to the `take` that returns nil.
///
///     any thread    add ──► state changes ──► the thread is started, unless there is one
///     the thread    take ──► work ──► … ──► take ──► nil: there is no thread any more, and it returns
///
/// `add` and `take` hold the same lock. So what is added while the thread decides to end is taken by it, or by a new
/// one.
package final class WorkThread<State>: Sendable {
    private struct Contents {
        var state: State
        var isRunning = false
    }

    private let name: String
    private let contents: Monitor<Contents>

    /// - Parameter name: of the thread.
    package init(name: String, _ state: State) {
        self.name = name
        contents = Monitor(Contents(state: state))
    }

    /// Changes the state, and starts the thread if there is none.
    ///
    /// - Parameter run: called on a new thread. It returns when ``take(_:)`` has returned nil.
    /// - Throws: if there can be no thread; nothing has changed then.
    package func add(
        run: @escaping () -> Void, _ change: (inout State) -> Void
    ) throws(SystemThread.StartFailure) {
        try contents.update { contents throws(SystemThread.StartFailure) in
            if !contents.isRunning { try SystemThread(name: name, run).detach() }
            contents.isRunning = true
            change(&contents.state)
        }
    }

    /// Changes the state, without starting the thread.
    package func update<Output>(_ change: (inout State) -> Output) -> Output {
        contents.update { change(&$0.state) }
    }

    /// The same if there is a thread, which will call ``take(_:)`` once more.
    /// - Returns: whether there is one.
    package func updateIfRunning(_ change: (inout State) -> Void) -> Bool {
        contents.update { contents in
            if contents.isRunning { change(&contents.state) }
            return contents.isRunning
        }
    }

    // MARK: The thread

    /// What the thread is to do next. If that is nothing, there is no thread from then on.
    package func take<Work>(_ work: (inout State) -> Work?) -> Work? {
        contents.update { contents in
            let work = work(&contents.state)
            contents.isRunning = work != nil
            return work
        }
    }

    /// There is no thread from now on, whatever there is to do: the next ``add(run:_:)`` starts one.
    package func end() { contents.update { $0.isRunning = false } }

    /// Waits until the state is as wanted, at most until a deadline of the monotonic clock.
    package func pause(untilNanoseconds deadline: UInt64, until isWanted: (State) -> Bool) {
        _ = contents.wait(untilNanoseconds: deadline) { isWanted($0.state) ? () : nil }
    }

    // MARK: Other threads

    /// Waits until there is no thread.
    package func waitForEnd() { contents.wait { $0.isRunning ? nil : () } }
}
