// Copies the fields that the query returns.

import Basics
import DocumentModel

/// The rows of the input with some of their fields.
struct Project<Input: QueryOperator>: RowByRowOperator {
    var input: Input
    /// Nil returns all fields.
    private let selection: FieldSelection?

    init(_ input: Input, _ selection: FieldSelection?) {
        self.input = input
        self.selection = selection
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        guard let selection else { return try input.next(from: source, &work, into: page) }
        var fields = ByteBuffer(capacity: 256)
        try input.next(from: source, &work) { (row) throws(RequestError) in
            fields.reset(keeping: 1 << 20)
            selection.append(row.fields, into: &fields)
            return try page(
                QueryRow(
                    path: row.path, createMicroseconds: row.createMicroseconds,
                    updateMicroseconds: row.updateMicroseconds, fields: fields.bytes))
        }
    }

    var tree: PlanTree {
        guard let selection else { return input.tree }
        return PlanTree(line: "Project \(selection)", inputs: [input.tree])
    }
}
