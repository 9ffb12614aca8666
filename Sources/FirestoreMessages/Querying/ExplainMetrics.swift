// Messages of explained queries.
//
// ExplainOptions: 1 analyze. ExplainMetrics: 1 plan_summary, 2 execution_stats. PlanSummary: 1 indexes_used, Structs.
// ExecutionStats: 1 results_returned, 3 execution_duration, 4 read_operations, 5 debug_stats, a Struct. It has what the
// API leaves to the server, among it a list `operators`: a Struct for each operator of the plan, from the top down.
//
// Two fields of ExplainMetrics are extensions of Hearth and not in proto/. Clients that do not know them skip them.

package import Basics
package import DocumentModel

/// That a query is to be explained.
package struct ExplainOptions: Equatable, Sendable {
    private typealias Field = FieldNumber.ExplainOptions

    /// The query is to be run too, and measured.
    package var analyze: Bool

    package init(analyze: Bool) { self.analyze = analyze }

    package init(wire: RawSpan) throws(InvalidDocument) {
        analyze = false
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == Field.analyze { analyze = try reader.boolean(tag) } else { try reader.skip(tag) }
        }
    }

    func encode(_ field: Int, into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: field) { $0.writeIfSet(Field.analyze, boolean: analyze) }
    }
}

/// The plan of a query, and what its execution took.
package struct ExplainMetrics: Equatable, Sendable {
    /// An index in use.
    package struct Index: Equatable, Sendable {
        /// `Collection` or `Collection group`.
        package var queryScope: String
        /// `(a ASC, __name__ ASC)`.
        package var properties: String

        package init(queryScope: String, properties: String) {
            self.queryScope = queryScope
            self.properties = properties
        }
    }

    /// What one operator of the plan did.
    package struct Operator: Equatable, Sendable {
        /// The number of operators above it.
        package var depth: Int64
        /// The operator as the tree has it.
        package var line: String
        /// Rows or index entries that it gave out.
        package var rows: Int64
        /// Index entries that it looked at; 0 for operators that read none themselves.
        package var entries: Int64
        /// The time in the operator and those below it.
        package var nanoseconds: Int64

        package init(depth: Int64, line: String, rows: Int64, entries: Int64, nanoseconds: Int64) {
            self.depth = depth
            self.line = line
            self.rows = rows
            self.entries = entries
            self.nanoseconds = nanoseconds
        }
    }

    /// What running it took.
    package struct Execution: Equatable, Sendable {
        package var resultsReturned: Int64
        package var durationNanoseconds: Int64
        package var documentsScanned: Int64
        package var indexEntriesScanned: Int64
        /// From the top of the plan down; empty if they were not measured.
        package var operators: [Operator]

        package init(
            resultsReturned: Int64, durationNanoseconds: Int64, documentsScanned: Int64, indexEntriesScanned: Int64,
            operators: [Operator] = []
        ) {
            self.operators = operators
            self.resultsReturned = resultsReturned
            self.durationNanoseconds = durationNanoseconds
            self.documentsScanned = documentsScanned
            self.indexEntriesScanned = indexEntriesScanned
        }

        /// The time of each operator without those below it, in nanoseconds, in the order of `operators`.
        package var ownNanoseconds: [Int64] {
            var own = operators.map(\.nanoseconds)
            // The operators above the present one, the nearest last.
            var above: [Int] = []
            for (position, one) in operators.enumerated() {
                while let last = above.last, operators[last].depth >= one.depth { above.removeLast() }
                if let parent = above.last { own[parent] = max(own[parent] &- one.nanoseconds, 0) }
                above.append(position)
            }
            return own
        }

        /// What the cloud would bill: a read for each result, and one for none.
        package var readOperations: Int64 { max(resultsReturned, 1) }
    }

    /// Our own field: the plan as a tree of lines.
    private static let treeField = 1000
    /// Our own field: an index that would make the query cheaper, as an entry of firestore.indexes.json.
    private static let adviceField = 1001

    package var indexes: [Index]
    /// The plan, what the results pass through last on top.
    package var tree: String
    /// An entry of firestore.indexes.json; empty when no index would help.
    package var advice: String
    /// Nil unless the query was run.
    package var execution: Execution?

    package init(indexes: [Index], tree: String, advice: String, execution: Execution? = nil) {
        self.indexes = indexes
        self.tree = tree
        self.advice = advice
        self.execution = execution
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: FieldNumber.ExplainMetrics.planSummary) { summary in
            for index in indexes {
                summary.withLengthPrefix(field: FieldNumber.PlanSummary.indexesUsed) { entry in
                    Self.member("query_scope", index.queryScope, into: &entry)
                    Self.member("properties", index.properties, into: &entry)
                }
            }
        }
        if let execution {
            writer.withLengthPrefix(field: FieldNumber.ExplainMetrics.executionStats) {
                Self.encode(execution, into: &$0)
            }
        }
        writer.writeIfSet(Self.treeField, string: tree)
        writer.writeIfSet(Self.adviceField, string: advice)
    }

    private static func encode(_ execution: Execution, into writer: inout ByteBuffer) {
        writer.writeIfSet(FieldNumber.ExecutionStats.resultsReturned, int64: execution.resultsReturned)
        writer.withLengthPrefix(field: FieldNumber.ExecutionStats.executionDuration) { duration in
            duration.writeIfSet(
                FieldNumber.Protobuf.Duration.seconds, int64: execution.durationNanoseconds / 1_000_000_000)
            duration.writeIfSet(
                FieldNumber.Protobuf.Duration.nanos, int64: execution.durationNanoseconds % 1_000_000_000)
        }
        writer.writeIfSet(FieldNumber.ExecutionStats.readOperations, int64: execution.readOperations)
        writer.withLengthPrefix(field: FieldNumber.ExecutionStats.debugStats) { statistics in
            statistics.withLengthPrefix(field: FieldNumber.Protobuf.Struct.fields) { entry in
                entry.appendField(FieldNumber.Protobuf.Struct.FieldsEntry.key, string: "billing_details")
                entry.withLengthPrefix(field: FieldNumber.Protobuf.Struct.FieldsEntry.value) { value in
                    value.withLengthPrefix(field: FieldNumber.Protobuf.Value.structValue) { details in
                        member("documents_billable", "\(execution.resultsReturned)", into: &details)
                        member("index_entries_billable", "0", into: &details)
                        member("min_query_cost", execution.resultsReturned == 0 ? "1" : "0", into: &details)
                        member("small_ops", "0", into: &details)
                    }
                }
            }
            member("documents_scanned", "\(execution.documentsScanned)", into: &statistics)
            member("index_entries_scanned", "\(execution.indexEntriesScanned)", into: &statistics)
            if !execution.operators.isEmpty { encode(execution.operators, into: &statistics) }
        }
    }

    private static func encode(_ operators: [Operator], into statistics: inout ByteBuffer) {
        typealias Value = FieldNumber.Protobuf.Value
        statistics.withLengthPrefix(field: FieldNumber.Protobuf.Struct.fields) { entry in
            entry.appendField(FieldNumber.Protobuf.Struct.FieldsEntry.key, string: "operators")
            entry.withLengthPrefix(field: FieldNumber.Protobuf.Struct.FieldsEntry.value) { value in
                value.withLengthPrefix(field: Value.listValue) { list in
                    for one in operators {
                        list.withLengthPrefix(field: FieldNumber.Protobuf.ListValue.values) { element in
                            element.withLengthPrefix(field: Value.structValue) { encode(one, into: &$0) }
                        }
                    }
                }
            }
        }
    }

    private static func encode(_ one: Operator, into writer: inout ByteBuffer) {
        member("operator", one.line, into: &writer)
        member("depth", "\(one.depth)", into: &writer)
        member("rows_returned", "\(one.rows)", into: &writer)
        member("index_entries_scanned", "\(one.entries)", into: &writer)
        member("duration_nanoseconds", "\(one.nanoseconds)", into: &writer)
    }

    /// Appends a member of a Struct with a text for a value.
    private static func member(_ name: String, _ text: String, into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: FieldNumber.Protobuf.Struct.fields) { entry in
            entry.appendField(FieldNumber.Protobuf.Struct.FieldsEntry.key, string: name)
            entry.withLengthPrefix(field: FieldNumber.Protobuf.Struct.FieldsEntry.value) {
                $0.appendField(FieldNumber.Protobuf.Value.stringValue, string: text)
            }
        }
    }
}

// MARK: Reading

extension ExplainMetrics {
    package init(wire: RawSpan) throws(InvalidDocument) {
        self.init(indexes: [], tree: "", advice: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.ExplainMetrics.planSummary:
                var summary = try reader.message(tag)
                while let tag = try summary.nextTag() {
                    guard tag.fieldNumber == FieldNumber.PlanSummary.indexesUsed else {
                        try summary.skip(tag)
                        continue
                    }
                    let members = try Self.members(try summary.span(tag))
                    indexes.append(
                        Index(queryScope: members["query_scope"] ?? "", properties: members["properties"] ?? ""))
                }
            case FieldNumber.ExplainMetrics.executionStats: execution = try Self.execution(try reader.span(tag))
            case Self.treeField: tree = try reader.string(tag)
            case Self.adviceField: advice = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    private static func execution(_ wire: RawSpan) throws(InvalidDocument) -> Execution {
        var execution = Execution(
            resultsReturned: 0, durationNanoseconds: 0, documentsScanned: 0, indexEntriesScanned: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.ExecutionStats.resultsReturned: execution.resultsReturned = try reader.int64(tag)
            case FieldNumber.ExecutionStats.executionDuration:
                var duration = try reader.message(tag)
                while let tag = try duration.nextTag() {
                    switch tag.fieldNumber {
                    case FieldNumber.Protobuf.Duration.seconds:
                        execution.durationNanoseconds &+= try duration.int64(tag) &* 1_000_000_000
                    case FieldNumber.Protobuf.Duration.nanos: execution.durationNanoseconds &+= try duration.int64(tag)
                    default: try duration.skip(tag)
                    }
                }
            case FieldNumber.ExecutionStats.debugStats:
                let members = try members(try reader.span(tag)) { name, value throws(InvalidDocument) in
                    if name == "operators" { execution.operators = try operators(value) }
                }
                execution.documentsScanned = members["documents_scanned"].flatMap { Int64($0) } ?? 0
                execution.indexEntriesScanned = members["index_entries_scanned"].flatMap { Int64($0) } ?? 0
            default: try reader.skip(tag)
            }
        }
        return execution
    }

    /// The elements of a list of operators.
    private static func operators(_ list: RawSpan) throws(InvalidDocument) -> [Operator] {
        var operators: [Operator] = []
        var reader = WireReader(list)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == FieldNumber.Protobuf.ListValue.values else {
                try reader.skip(tag)
                continue
            }
            var value = try reader.message(tag)
            while let tag = try value.nextTag() {
                guard tag.fieldNumber == FieldNumber.Protobuf.Value.structValue else {
                    try value.skip(tag)
                    continue
                }
                let members = try members(try value.span(tag))
                let number = { (name: String) in members[name].flatMap { Int64($0) } ?? 0 }
                operators.append(
                    Operator(
                        depth: number("depth"), line: members["operator"] ?? "", rows: number("rows_returned"),
                        entries: number("index_entries_scanned"), nanoseconds: number("duration_nanoseconds")))
            }
        }
        return operators
    }

    /// The members of a Struct that have texts for values.
    ///
    /// - Parameter takeList: gets the names of members that have lists for values, and the lists.
    private static func members(
        _ wire: RawSpan, lists takeList: (String, RawSpan) throws(InvalidDocument) -> Void = { _, _ in }
    ) throws(InvalidDocument) -> [String: String] {
        var members: [String: String] = [:]
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == FieldNumber.Protobuf.Struct.fields else {
                try reader.skip(tag)
                continue
            }
            var entry = try reader.message(tag)
            var name = ""
            while let tag = try entry.nextTag() {
                switch tag.fieldNumber {
                case FieldNumber.Protobuf.Struct.FieldsEntry.key: name = try entry.string(tag)
                case FieldNumber.Protobuf.Struct.FieldsEntry.value:
                    var value = try entry.message(tag)
                    while let tag = try value.nextTag() {
                        if tag.fieldNumber == FieldNumber.Protobuf.Value.stringValue {
                            members[name] = try value.string(tag)
                        } else if tag.fieldNumber == FieldNumber.Protobuf.Value.listValue {
                            try takeList(name, try value.span(tag))
                        } else {
                            try value.skip(tag)
                        }
                    }
                default: try entry.skip(tag)
                }
            }
        }
        return members
    }
}
