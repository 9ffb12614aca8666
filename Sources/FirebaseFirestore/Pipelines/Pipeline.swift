// Pipelines: reads in stages, computed by the server.
//
//     let snapshot = try await db.pipeline().collection("books")
//         .where(Field("rating").greaterThan(4) && Field("genre").equal("sf"))
//         .aggregate([Field("price").average().as("price")], groups: [Field("author")])
//         .execute()
//
// A pipeline is a value: each stage makes a new one. Nothing happens before `execute()`.

import Basics
public import DocumentCoding
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient

/// A list of stages, each of which takes the documents of the one before it. Immutable and thread-safe.
public struct Pipeline: Sendable {
    let firestore: Firestore
    let stages: [NodeCall]
    /// What the pipeline reads, as far as it is known, for the pending writes that it has to see.
    let places: [PendingWrites.Place]

    /// The results of one execution.
    public struct Snapshot: Sendable {
        /// The results, in the order of the pipeline.
        public let results: [PipelineResult]
        /// The time as of which the pipeline has read.
        public let executionTime: Timestamp
    }

    private func adding(
        _ name: String, _ arguments: [PipelineNode], options: [NamedNode] = []
    ) -> Pipeline {
        Pipeline(
            firestore: firestore,
            stages: stages + [NodeCall(name: name, arguments: arguments, options: options)], places: places)
    }

    private static func map(_ selections: [any Selectable]) -> PipelineNode { .map(selections.map(\.namedNode)) }

    private static func fields(_ names: [String]) -> [any Selectable] { names.map { Field($0) } }

    // MARK: Stages

    /// The documents with further fields.
    public func addFields(_ selectables: [any Selectable]) -> Pipeline { adding("add_fields", [Self.map(selectables)]) }

    /// The documents without some fields.
    public func removeFields(_ fields: [Field]) -> Pipeline { adding("remove_fields", fields.map(\.node)) }

    /// The documents without some fields.
    public func removeFields(_ fields: [String]) -> Pipeline { removeFields(fields.map { Field($0) }) }

    /// Some fields alone.
    public func select(_ selections: [any Selectable]) -> Pipeline { adding("select", [Self.map(selections)]) }

    /// Some fields alone.
    public func select(_ selections: [String]) -> Pipeline { select(Self.fields(selections)) }

    /// The documents on which a condition is true.
    public func `where`(_ condition: any BooleanExpression) -> Pipeline { adding("where", [condition.node]) }

    /// All but the first documents.
    public func offset(_ offset: Int32) -> Pipeline { adding("offset", [.value(Int64(offset))]) }

    /// The first documents.
    public func limit(_ limit: Int32) -> Pipeline { adding("limit", [.value(Int64(limit))]) }

    /// One result for each combination of values.
    public func distinct(_ groups: [any Selectable]) -> Pipeline { adding("distinct", [Self.map(groups)]) }

    /// One result for each combination of values.
    public func distinct(_ groups: [String]) -> Pipeline { distinct(Self.fields(groups)) }

    /// Totals over all documents, or over each group.
    public func aggregate(_ aggregates: [AliasedAggregate], groups: [any Selectable]? = nil) -> Pipeline {
        adding("aggregate", [.map(aggregates.map(\.named)), Self.map(groups ?? [])])
    }

    /// The documents with the nearest vectors.
    public func findNearest(
        field: Field, vectorValue: VectorValue, distanceMeasure: DistanceMeasure, limit: Int? = nil,
        distanceField: String? = nil
    ) -> Pipeline {
        var options: [NamedNode] = []
        if let limit { options.append(NamedNode("limit", .value(Int64(limit)))) }
        if let distanceField { options.append(NamedNode("distance_field", .field(distanceField))) }
        return adding(
            "find_nearest", [field.node, .value(vectorValue), .value(distanceMeasure.rawValue)], options: options)
    }

    /// The documents in an order.
    public func sort(_ orderings: [Ordering]) -> Pipeline { adding("sort", orderings.map(\.node)) }

    /// A map in the place of each document's fields.
    public func replace(with expression: any Expression) -> Pipeline {
        adding("replace_with", [expression.node, .value("full_replace")])
    }

    /// A map in the place of each document's fields.
    public func replace(with fieldName: String) -> Pipeline { replace(with: Field(fieldName)) }

    /// So many documents, chosen at random.
    public func sample(count: Int64) -> Pipeline { adding("sample", [.value(count), .value("documents")]) }

    /// A share of the documents, 0...1, chosen at random.
    public func sample(percentage: Double) -> Pipeline { adding("sample", [.value(percentage), .value("percent")]) }

    /// These documents, then those of another pipeline.
    public func union(with other: Pipeline) -> Pipeline {
        let union = adding("union", [.pipeline(other.stages)])
        return Pipeline(firestore: firestore, stages: union.stages, places: places + other.places)
    }

    /// A document for each element of an array, which has the selection's name there.
    public func unnest(_ field: any Selectable, indexField: String? = nil) -> Pipeline {
        let named = field.namedNode
        let options = indexField.map { [NamedNode("index_field", .value($0))] } ?? []
        return adding("unnest", [named.node, .field(named.name)], options: options)
    }

    /// The documents with variables, for the stages and subqueries that follow.
    public func define(_ variables: [AliasedExpression]) -> Pipeline { adding("let", [Self.map(variables)]) }

    /// A stage by the name that requests have, for those that this library has no method for: `update`, `delete`.
    public func rawStage(
        name: String, params: [any Sendable], options: [String: any Sendable]? = nil
    ) -> Pipeline {
        let options = (options ?? [:]).sorted { $0.key < $1.key }
        return adding(
            name, params.map { PipelineNode($0) }, options: options.map { NamedNode($0.key, PipelineNode($0.value)) })
    }

    // MARK: Subqueries

    /// All results as an array, for an expression of another pipeline.
    public func toArrayExpression() -> FunctionExpression { FunctionExpression("array", [.pipeline(stages)]) }

    /// The one result, for an expression of another pipeline; null if there is none.
    public func toScalarExpression() -> FunctionExpression { FunctionExpression("scalar", [.pipeline(stages)]) }

    // MARK: Execution

    /// Runs the pipeline on the server.
    ///
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `.invalidArgument` for a pipeline that is not valid.
    nonisolated(nonsending) public func execute() async throws -> Snapshot {
        firestore.checkUsable()
        let request = try request()
        for place in places {
            try await firestore.awaitRead { cancellation, completion in
                firestore.afterPendingWrites(to: place, cancellation) { completion(.success(())) }
            }
        }
        do throws(RequestError) {
            return try await collect(try firestore.client().pipelineStream(request, options: .failFast))
        } catch {
            if Task.isCancelled { throw NSError.taskWasCancelled }
            throw error.asNSError
        }
    }

    nonisolated(nonsending) private func collect(_ stream: PipelineStream) async throws(RequestError) -> Snapshot {
        var results: [PipelineResult] = []
        var time = TimestampValue(seconds: 0, nanoseconds: 0)
        while let response = try await stream.next() {
            results += response.results.map { PipelineResult($0, firestore) }
            if let executionTime = response.executionTime { time = executionTime }
        }
        return Snapshot(
            results: results, executionTime: Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds))
    }

    private func request() throws -> ExecutePipelineRequest {
        var writer = ByteBuffer()
        do throws(RuleViolation) {
            try writer.withLengthPrefix(field: FieldNumber.StructuredPipeline.pipeline) {
                (writer) throws(RuleViolation) in
                try NodeCall.encode(stages, into: &writer, firestore)
            }
        } catch {
            throw NSError.firestore(.invalidArgument, error.message)
        }
        return ExecutePipelineRequest(database: firestore.databaseName.description, pipeline: writer.copyBytes())
    }
}
