// What the operators of an analyzed pipeline did.

internal import Basics
internal import QueryEngine

/// The rows and times of operators. Confined to one thread.
final class OperatorMeasures {
    private var pulled: [ObjectIdentifier: OperatorFigures] = [:]

    /// Pulls a row of an operator and notes the time, that of the operators below it included.
    func pull(_ source: any PipelineOperator, _ work: PipelineWork) throws(RequestError) -> Pull {
        let start = SystemClock.monotonicNanoseconds()
        let result = try source.pull(work)
        let nanoseconds = SystemClock.monotonicNanoseconds() - start
        var figures = pulled[ObjectIdentifier(source)] ?? OperatorFigures()
        if case .row = result { figures.rows += 1 }
        figures.nanoseconds += nanoseconds
        pulled[ObjectIdentifier(source)] = figures
        return result
    }

    /// What an operator did. The reads for it and for those below it were made between pulls; their time is part of its
    /// time.
    func figures(of source: any PipelineOperator) -> OperatorFigures {
        var figures = pulled[ObjectIdentifier(source)] ?? OperatorFigures()
        var pending: [any PipelineOperator] = [source]
        while let next = pending.popLast() {
            figures.nanoseconds += next.readNanoseconds
            pending += next.inputs
        }
        return figures
    }
}
