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
public class Pipeline: @unchecked Sendable {
    /// Nil for one that begins with a ``Subcollection``.
    private let firestore: Firestore?
    let stages: [NodeCall]

    init(firestore: Firestore?, stages: [NodeCall]) {
        self.firestore = firestore
        self.stages = stages
    }

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
            firestore: firestore, stages: stages + [NodeCall(name: name, arguments: arguments, options: options)])
    }

    private static func map(_ selections: [any Selectable]) -> PipelineNode {
        .map(selections.map(\.namedNode), of: "selectables")
    }

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
        adding("aggregate", [.map(aggregates.map(\.named), of: "accumulators"), Self.map(groups ?? [])])
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
            "find_nearest", [field.node, .value(vectorValue), .value(distanceMeasure.name)], options: options)
    }

    /// The documents that have words, or lie near a place. This stage is the first one after the source.
    ///
    /// - Parameters:
    ///   - query: a condition: ``DocumentMatches``, a ``Field/geoDistance(_:)`` compared with a number, or both.
    ///   - languageCode: the language of the words (BCP 47).
    ///   - retrievalDepth: how many of the documents with the words are scored and sorted.
    ///   - sort: orders, which may use ``Score``.
    ///   - addFields: further fields, which may use ``Score``.
    public func search(
        query: any Expression, languageCode: String? = nil, retrievalDepth: Int? = nil, sort: [Ordering]? = nil,
        offset: Int? = nil, limit: Int? = nil, addFields: [any Selectable]? = nil
    ) -> Pipeline {
        var options = [NamedNode("query", query.node)]
        if let languageCode { options.append(NamedNode("language_code", .value(languageCode))) }
        if let retrievalDepth { options.append(NamedNode("retrieval_depth", .value(Int64(retrievalDepth)))) }
        if let sort { options.append(NamedNode("sort", .list(sort.map(\.node)))) }
        if let offset { options.append(NamedNode("offset", .value(Int64(offset)))) }
        if let limit { options.append(NamedNode("limit", .value(Int64(limit)))) }
        if let addFields { options.append(NamedNode("add_fields", Self.map(addFields))) }
        return adding("search", [], options: options)
    }

    /// The documents that have the words of a text query. This stage is the first one after the source.
    public func search(
        query: String, languageCode: String? = nil, retrievalDepth: Int? = nil, sort: [Ordering]? = nil,
        offset: Int? = nil, limit: Int? = nil, addFields: [any Selectable]? = nil
    ) -> Pipeline {
        search(
            query: DocumentMatches(query), languageCode: languageCode, retrievalDepth: retrievalDepth, sort: sort,
            offset: offset, limit: limit, addFields: addFields)
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
    public func union(with other: Pipeline) -> Pipeline { adding("union", [.pipeline(other.stages)]) }

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
        adding(name, params.map { PipelineNode(stageArgument: $0) }, options: NamedNode.list(options ?? [:]))
    }

    // MARK: Subqueries

    /// All results as an array, for an expression of another pipeline.
    public func toArrayExpression() -> any Expression { FunctionExpression("array", [.pipeline(stages)]) }

    /// The one result, for an expression of another pipeline; null if there is none.
    public func toScalarExpression() -> any Expression { FunctionExpression("scalar", [.pipeline(stages)]) }

    // MARK: Execution

    /// Runs the pipeline on the server, after the pending writes to the collections and documents that it reads, in
    /// subqueries too. It waits ten seconds for them at most, and not while the network is disabled.
    ///
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `.invalidArgument` for a pipeline that is not valid.
    nonisolated(nonsending) public func execute() async throws -> Snapshot {
        guard let firestore else {
            throw NSError.firestore(
                .invalidArgument,
                "This pipeline was created without a database, by Subcollection: it can be part of another pipeline.")
        }
        firestore.checkUsable()
        let request = try request(of: firestore)
        var scope = ReadScope()
        for stage in stages { stage.addReads(to: &scope) }
        try await firestore.awaitRead { cancellation, completion in
            firestore.afterPendingWrites(in: scope, cancellation) { completion(.success(())) }
        }
        // It may write, so it is not sent for nobody.
        if Task.isCancelled { throw NSError.taskWasCancelled }
        do throws(RequestError) {
            return try await collect(try firestore.client().pipelineStream(request, options: .failFast), firestore)
        } catch {
            if Task.isCancelled { throw NSError.taskWasCancelled }
            throw error.asNSError
        }
    }

    nonisolated(nonsending) private func collect(
        _ stream: PipelineStream, _ firestore: Firestore
    ) async throws(RequestError) -> Snapshot {
        var results: [PipelineResult] = []
        var time = TimestampValue(seconds: 0, nanoseconds: 0)
        while let response = try await stream.next() {
            results += response.results.map { PipelineResult($0, firestore) }
            if let executionTime = response.executionTime { time = executionTime }
        }
        return Snapshot(
            results: results, executionTime: Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds))
    }

    private func request(of firestore: Firestore) throws -> ExecutePipelineRequest {
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
