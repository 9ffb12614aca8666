// Random parts of the rows.

internal import Basics

/// A number of rows that are chosen at random, each with the same probability.
final class SampleOfRows: PipelineOperator {
    private let input: any PipelineOperator
    private let count: Int
    private var rows: [PipelineRow] = []
    private var seen: UInt64 = 0
    private var hasCollected = false
    private var position = 0

    init(_ input: any PipelineOperator, count: Int) {
        self.input = input
        self.count = count
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while !hasCollected {
            let pulled = try next(input, work)
            switch pulled {
            case .row(let row): try collect(row, work)
            case .paused, .starved: return pulled
            case .finished: hasCollected = true
            }
        }
        guard position < rows.count else { return .finished }
        position += 1
        return .row(rows[position - 1])
    }

    private func collect(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        seen += 1
        if rows.count < count {
            try work.hold(row.memoryBytes, for: "sample")
            rows.append(row)
            return
        }
        let place = UInt64.random(in: 0..<seen)
        guard place < UInt64(rows.count) else { return }
        work.release(rows[Int(place)].memoryBytes)
        try work.hold(row.memoryBytes, for: "sample")
        rows[Int(place)] = row
    }

    var line: String { "Sample \(count)" }

    var inputs: [any PipelineOperator] { [input] }
}

/// Each row with a probability.
final class SampleOfShare: PipelineOperator {
    private let input: any PipelineOperator
    /// 0...1.
    private let share: Double

    init(_ input: any PipelineOperator, share: Double) {
        self.input = input
        self.share = share
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            let pulled = try next(input, work)
            guard case .row = pulled else { return pulled }
            if Double.random(in: 0..<1) < share { return pulled }
        }
    }

    var line: String { "Sample \(share * 100) %" }

    var inputs: [any PipelineOperator] { [input] }
}
