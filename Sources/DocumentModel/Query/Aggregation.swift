// `google.firestore.v1.StructuredAggregationQuery`: totals over the results of a query.

/// A query and the totals wanted over its results.
package struct StructuredAggregationQuery: Sendable, Equatable {
    package var query: StructuredQuery

    /// One to five totals; the rule is checked when the aggregation is planned.
    package var aggregations: [Aggregation]

    package init(query: StructuredQuery, aggregations: [Aggregation]) {
        self.query = query
        self.aggregations = aggregations
    }
}

/// One total, and the name it has in the result.
package struct Aggregation: Sendable, Equatable {
    package enum Operation: Sendable, Equatable {
        /// The number of results, counted no further than `upTo` if that is given.
        case count(upTo: Int64?)
        /// The total of the field's numbers.
        case sum(FieldPath)
        /// The mean of the field's numbers.
        case average(FieldPath)
    }

    package var operation: Operation

    /// The key in the result, by the rules of field names. Empty means `field_1`, `field_2`, ... over those without
    /// one.
    package var alias: String

    package init(_ operation: Operation, alias: String = "") {
        self.operation = operation
        self.alias = alias
    }
}
