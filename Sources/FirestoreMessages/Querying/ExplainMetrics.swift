// Explaining queries: what a request asks for, and what comes back with the last message.
// ExplainOptions: 1 analyze. ExplainMetrics: 1 plan_summary, 2 execution_stats. PlanSummary: 1 indexes_used, Structs.
// ExecutionStats: 1 results_returned, 3 execution_duration, 4 read_operations, 5 debug_stats, a Struct.
//
// Two fields of ExplainMetrics are our own, and skipped by clients that do not know them: 1000, the plan as a tree of lines,
// and 1001, an index that would make the query cheaper, as an entry of firestore.indexes.json.

package import DocumentModel

/// That a query is to be explained.
package struct ExplainOptions: Equatable, Sendable {
    /// The query is to be run too, and measured.
    package var analyze: Bool

    package init(analyze: Bool) { self.analyze = analyze }

    package init(wire: RawSpan) throws(InvalidDocument) {
        analyze = false
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 1 { analyze = try reader.boolean(tag) } else { try reader.skip(tag) }
        }
    }

    func encode(_ field: Int, into writer: inout WireWriter) {
        writer.withLengthPrefix(field: field) { $0.writeIfSet(1, boolean: analyze) }
    }
}

/// How a query is answered, and what that took.
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

    /// What running it took.
    package struct Execution: Equatable, Sendable {
        package var resultsReturned: Int64
        package var durationNanoseconds: Int64
        package var documentsScanned: Int64
        package var indexEntriesScanned: Int64

        package init(
            resultsReturned: Int64, durationNanoseconds: Int64, documentsScanned: Int64, indexEntriesScanned: Int64
        ) {
            self.resultsReturned = resultsReturned
            self.durationNanoseconds = durationNanoseconds
            self.documentsScanned = documentsScanned
            self.indexEntriesScanned = indexEntriesScanned
        }

        /// What the cloud would bill: a read for each result, and one for none.
        package var readOperations: Int64 { max(resultsReturned, 1) }
    }

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

    package func encode(into writer: inout WireWriter) {
        writer.withLengthPrefix(field: 1) { summary in
            for index in indexes {
                summary.withLengthPrefix(field: 1) { entry in
                    Self.member("query_scope", index.queryScope, into: &entry)
                    Self.member("properties", index.properties, into: &entry)
                }
            }
        }
        if let execution { writer.withLengthPrefix(field: 2) { Self.encode(execution, into: &$0) } }
        writer.writeIfSet(1000, string: tree)
        writer.writeIfSet(1001, string: advice)
    }

    private static func encode(_ execution: Execution, into writer: inout WireWriter) {
        writer.writeIfSet(1, int64: execution.resultsReturned)
        writer.withLengthPrefix(field: 3) { duration in
            duration.writeIfSet(1, int64: execution.durationNanoseconds / 1_000_000_000)
            duration.writeIfSet(2, int64: execution.durationNanoseconds % 1_000_000_000)
        }
        writer.writeIfSet(4, int64: execution.readOperations)
        writer.withLengthPrefix(field: 5) { statistics in
            statistics.withLengthPrefix(field: 1) { entry in
                entry.appendField(1, string: "billing_details")
                entry.withLengthPrefix(field: 2) { value in
                    value.withLengthPrefix(field: 5) { details in
                        member("documents_billable", "\(execution.resultsReturned)", into: &details)
                        member("index_entries_billable", "0", into: &details)
                        member("min_query_cost", execution.resultsReturned == 0 ? "1" : "0", into: &details)
                        member("small_ops", "0", into: &details)
                    }
                }
            }
            member("documents_scanned", "\(execution.documentsScanned)", into: &statistics)
            member("index_entries_scanned", "\(execution.indexEntriesScanned)", into: &statistics)
        }
    }

    /// Appends a member of a Struct with a text for a value.
    private static func member(_ name: String, _ text: String, into writer: inout WireWriter) {
        writer.withLengthPrefix(field: 1) { entry in
            entry.appendField(1, string: name)
            entry.withLengthPrefix(field: 2) { $0.appendField(3, string: text) }
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
            case 1:
                var summary = try reader.message(tag)
                while let tag = try summary.nextTag() {
                    guard tag.fieldNumber == 1 else {
                        try summary.skip(tag)
                        continue
                    }
                    let members = try Self.members(try summary.span(tag))
                    indexes.append(
                        Index(queryScope: members["query_scope"] ?? "", properties: members["properties"] ?? ""))
                }
            case 2: execution = try Self.execution(try reader.span(tag))
            case 1000: tree = try reader.string(tag)
            case 1001: advice = try reader.string(tag)
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
            case 1: execution.resultsReturned = try reader.int64(tag)
            case 3:
                var duration = try reader.message(tag)
                while let tag = try duration.nextTag() {
                    switch tag.fieldNumber {
                    case 1: execution.durationNanoseconds &+= try duration.int64(tag) &* 1_000_000_000
                    case 2: execution.durationNanoseconds &+= try duration.int64(tag)
                    default: try duration.skip(tag)
                    }
                }
            case 5:
                let members = try members(try reader.span(tag))
                execution.documentsScanned = members["documents_scanned"].flatMap { Int64($0) } ?? 0
                execution.indexEntriesScanned = members["index_entries_scanned"].flatMap { Int64($0) } ?? 0
            default: try reader.skip(tag)
            }
        }
        return execution
    }

    /// The members of a Struct that have texts for values.
    private static func members(_ wire: RawSpan) throws(InvalidDocument) -> [String: String] {
        var members: [String: String] = [:]
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == 1 else {
                try reader.skip(tag)
                continue
            }
            var entry = try reader.message(tag)
            var name = ""
            while let tag = try entry.nextTag() {
                switch tag.fieldNumber {
                case 1: name = try entry.string(tag)
                case 2:
                    var value = try entry.message(tag)
                    while let tag = try value.nextTag() {
                        if tag.fieldNumber == 3 { members[name] = try value.string(tag) } else { try value.skip(tag) }
                    }
                default: try entry.skip(tag)
                }
            }
        }
        return members
    }
}
