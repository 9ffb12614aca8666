/// How far a long piece of work on a directory has come.
package struct WorkProgress: Sendable, Equatable {
    /// What is counted.
    package enum Unit: Sendable {
        case bytes, entries
    }

    /// What is being done, for example "checking the runs".
    package var stage: String
    package var done: Int
    /// How much there is, about; 0 if that is not known.
    package var total: Int
    package var unit: Unit

    package init(_ stage: String, done: Int, total: Int, _ unit: Unit) {
        self.stage = stage
        self.done = done
        self.total = total
        self.unit = unit
    }

    /// Gets the progress, often enough for a display and rarely enough to cost nothing.
    package typealias Handler = (WorkProgress) -> Void

    /// Steps between two reports of work whose steps are short.
    package static let stepsBetweenReports = 4_096
}

/// Counts the steps of one stage and reports every few thousand.
package struct WorkMeter {
    private var progress: WorkProgress
    private let report: WorkProgress.Handler

    /// Reports the beginning of a stage.
    package init(_ stage: String, total: Int, _ report: @escaping WorkProgress.Handler) {
        progress = WorkProgress(stage, done: 0, total: total, .entries)
        self.report = report
        report(progress)
    }

    /// Counts one step.
    package mutating func step() {
        progress.done += 1
        if progress.done % WorkProgress.stepsBetweenReports == 0 { report(progress) }
    }
}
