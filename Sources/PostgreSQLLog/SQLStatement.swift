// Statements and their results as values.

internal import Basics

/// A value that a statement gets.
package enum SQLParameter: Sendable {
    /// A `bigint` with the same 64 bits.
    case number(UInt64)
    case text(String)
    case bytes([UInt8])

    /// Texts without line breaks, for ``StoreTables/texts(_:)``.
    static func list(_ texts: [String]) -> SQLParameter { .text(texts.joined(separator: "\n")) }

    /// Numbers, for ``StoreTables/numbers(_:)``.
    static func list(_ numbers: [UInt64]) -> SQLParameter {
        list(numbers.map { String(Int64(bitPattern: $0)) })
    }

    /// Bytes in the binary format.
    var byteCount: Int {
        switch self {
        case .number: 8
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        }
    }
}

/// A statement, with `$1` for its first value.
package struct SQLStatement: Sendable {
    package let text: String
    package let parameters: [SQLParameter]
    /// The text has several statements and no values.
    package let isScript: Bool
    /// The same text comes again and again: the database analyses it once.
    package let isRepeated: Bool

    package init(_ text: String, _ parameters: [SQLParameter] = [], isRepeated: Bool = false) {
        self.text = text
        self.parameters = parameters
        isScript = false
        self.isRepeated = isRepeated
    }

    /// Nothing is changed, so that there is no commit whose outcome could be unknown.
    var isRead: Bool { text.hasPrefix("SELECT ") }

    /// Several statements in one transaction.
    package init(script: String) {
        text = script
        parameters = []
        isScript = true
        isRepeated = false
    }
}

/// A row of a result: values in the binary format, nil for null.
package struct SQLRow: Sendable {
    package let columns: [[UInt8]?]

    /// A number of 8, 4, 2 or 1 bytes, or a truth value; nil for null.
    package func number(_ column: Int) -> UInt64? {
        columns[column].map { bytes in bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    }

    /// A text; empty for null.
    package func text(_ column: Int) -> String { String(decoding: columns[column] ?? [], as: UTF8.self) }

    /// Bytes; empty for null.
    package func bytes(_ column: Int) -> [UInt8] { columns[column] ?? [] }
}

/// What has become of a statement whose reply has arrived.
package enum SQLOutcome: Sendable {
    /// It was executed.
    /// - Parameter hasWarning: the server warned: a commit may not be on its standby.
    case rows([SQLRow], hasWarning: Bool)
    /// It was not executed.
    case failed(SQLFailure)
}

/// Why the database has refused a statement.
package struct SQLFailure: Error, Equatable, CustomStringConvertible {
    /// The five characters of SQLSTATE.
    package let state: String
    package let message: String

    package var description: String { state.isEmpty ? message : "\(message) (SQLSTATE \(state))" }

    /// There is no connection, or the server is ending or starting.
    package var isConnectionLost: Bool { state.isEmpty || state.hasPrefix("08") || state.hasPrefix("57P") }
    /// A table or schema does not exist.
    package var isMissingTable: Bool { state == "42P01" || state == "3F000" }
    /// A table has no such column.
    package var isMissingColumn: Bool { state == "42703" }
    /// A row with the key exists.
    package var isDuplicate: Bool { state == "23505" }
    /// A condition of a script does not hold, which divides by the number of rows that fulfil it.
    package var isDivisionByZero: Bool { state == "22012" }
    /// The role may not do that.
    package var isForbidden: Bool { state == "42501" }
}
