// Steps that storage could not finish, because something was not in memory.

import Basics

/// The rows of the input. A step of the input that meets what must be waited for is undone and made again later, and
/// the rows that it gave out before are not given out again.
///
///     step       row 1, row 2, pending        the input goes back to its position before the step
///     again      row 1, row 2                 passed over; the input keeps its position after row 2
///                row 3, ...                   given out
///
/// So the operators below need not know that reads may wait, and those above get each row once. A row that had to be
/// waited for costs a second look at the rows of its step before it.
struct Repeat<Input: QueryOperator>: RowByRowOperator {
    var input: Input
    /// Rows of the step to be made again that were given out.
    private var given = 0

    init(_ input: Input) { self.input = input }

    mutating func restart() {
        input.restart()
        given = 0
    }

    var tree: PlanTree { input.tree }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        try passGiven(source)
        let before = input
        var count = 0
        do throws(RequestError) {
            try input.next(from: source, &work) { (row) throws(RequestError) in
                count += 1
                return try page(row)
            }
        } catch {
            if error.isPending {
                input = before
                given = count
            }
            throw error
        }
    }

    /// Brings the input to its position after the rows that were given out.
    private mutating func passGiven<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) {
        if given == 0 { return }
        let before = input
        var left = given
        var work = StepWork(budget: .max)
        do throws(RequestError) {
            try input.next(from: source, &work) { (row) throws(RequestError) in
                left -= 1
                return left == 0 ? .full : .more
            }
        } catch {
            input = before
            throw error
        }
        given = 0
    }
}
