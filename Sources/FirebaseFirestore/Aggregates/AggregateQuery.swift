// Totals over the results of a query, computed by the server.

import Basics
import DocumentCoding
import DocumentModel
import FirestoreMessages
public import Foundation
import HearthClient

/// A query and the totals wanted over its results. Immutable and thread-safe.
public final class AggregateQuery: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types.

    /// The query whose results are counted.
    public let query: Query
    let fields: [AggregateField]

    init(query: Query, fields: [AggregateField]) {
        self.query = query
        self.fields = fields
    }

    /// Computes the totals.
    ///
    /// - Parameter completion: called on the queue of the settings with a snapshot or an error.
    public func getAggregation(
        source: AggregateSource, completion: @escaping (AggregateQuerySnapshot?, (any Error)?) -> Void
    ) {
        let firestore = query.firestore
        let box = UncheckedBox(completion)
        compute { result in
            firestore.callBack {
                switch result {
                case .success(let snapshot): box.value(snapshot, nil)
                case .failure(let error): box.value(nil, error.asNSError)
                }
            }
        }
    }

    /// Computes the totals.
    @discardableResult
    nonisolated(nonsending) public func getAggregation(source: AggregateSource) async throws -> AggregateQuerySnapshot {
        try await query.firestore.awaitRead { self.compute(cancellation: $0, $1) }
    }

    private func compute(
        cancellation: Cancellation? = nil, _ completion: @escaping Firestore.ReadCompletion<AggregateQuerySnapshot>
    ) {
        let firestore = query.firestore
        firestore.checkUsable()
        let definition = query.definition
        enforcing { () throws(RuleViolation) in try QueryRules.checkExecutable(definition) }
        let request = RunAggregationQueryRequest(
            parent: firestore.parentName(of: definition),
            query: StructuredAggregationQuery(
                query: definition.structuredQuery(),
                aggregations: fields.enumerated().map { index, field in
                    Aggregation(field.wireOperation, alias: Self.alias(index))
                }))
        firestore.afterPendingWrites(in: ReadScope(collection: definition.collectionID), cancellation) {
            firestore.withClient(completion) { client in
                client.collectAggregation(request, options: .failFast.cancelled(by: cancellation)) { result in
                    completion(result.map { AggregateQuerySnapshot(query: self, totals: $0) })
                }
            }
        }
    }

    static func alias(_ index: Int) -> String { "aggregate_\(index)" }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? AggregateQuery else { return false }
        return query == other.query && fields == other.fields
    }

    public override var hash: Int { query.hash }
}

/// The totals over a query's results. Immutable and thread-safe.
public final class AggregateQuerySnapshot: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types.

    /// The aggregation that was computed.
    public let query: AggregateQuery
    /// The bytes of `Value` messages by alias.
    private let totals: [String: [UInt8]]

    init(query: AggregateQuery, totals: [String: [UInt8]]) {
        self.query = query
        self.totals = totals
    }

    /// The number of documents. Reading a count that the query does not contain is a programming error.
    public var count: NSNumber { self.get(.count()) as? NSNumber ?? 0 }

    /// An aggregate: `NSNumber`, or `NSNull` for the mean of no numbers. Reading an aggregate that the query does not
    /// contain is a programming error.
    @discardableResult
    public func get(_ aggregateField: AggregateField) -> Any {
        guard let index = query.fields.firstIndex(of: aggregateField) else {
            programmingError("'\(aggregateField.operation)' was not requested in the aggregation query.")
        }
        guard let bytes = totals[AggregateQuery.alias(index)] else { return NSNull() }
        return SnapshotValues.value(bytes, of: query.query.firestore)
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? AggregateQuerySnapshot else { return false }
        return query == other.query && totals == other.totals
    }

    public override var hash: Int { query.hash }
}

extension AggregateField {
    fileprivate var wireOperation: Aggregation.Operation {
        switch operation {
        case .count: .count(upTo: nil)
        case .sum(let path): .sum(path)
        case .average(let path): .average(path)
        }
    }
}

extension Query {
    /// Counts the query's documents on the server.
    public var count: AggregateQuery { AggregateQuery(query: self, fields: [.count()]) }

    /// Computes totals over the query's documents on the server; one to five of them.
    @discardableResult
    public func aggregate(_ aggregateFields: [AggregateField]) -> AggregateQuery {
        AggregateQuery(query: self, fields: aggregateFields)
    }
}
