// Which conditions count as one.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct FilterRulesTests {
    private static let parent = Array("projects/p/databases/d/documents".utf8)

    private static func plan(_ filter: Filter) throws(RequestError) -> QueryPlan {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")], filter: filter)
        return try QueryPlan(query, parent: parent.byteSpan)
    }

    private static func condition(_ field: String, _ operation: FieldOperator, _ value: Value) throws -> Filter {
        .field(try FieldPath(field), operation, EncodedValue(value))
    }

    /// What the emulator answers.
    @Test
    func `The same array-contains counts once where it is written alike`() throws {
        let contains = try Self.condition("l", .arrayContains, .integer(1))
        let equal = try Self.condition("n", .equal, .integer(1))
        let any = try Self.condition("l", .arrayContainsAny, .array([.integer(1), .integer(2), .integer(2)]))
        let anyBackwards = try Self.condition("l", .arrayContainsAny, .array([.integer(2), .integer(1)]))
        let alike: [Filter] = [
            .and([any, anyBackwards]), .and([.or([any]), .or([anyBackwards])]),
            .and([contains, contains]), .and([.or([contains]), .or([contains])]),
            .and([.or([contains, contains]), .or([contains])]), .and([.and([contains]), .and([contains])]),
            .and([.and([contains, equal]), .and([equal, contains])]), .or([.and([contains, contains])]),
        ]
        for filter in alike {
            _ = try Self.plan(filter)
        }
        let different: [Filter] = [
            .and([contains, .or([contains])]), .and([.or([contains, contains]), contains]),
            .and([.and([.and([contains])]), contains]), .and([.and([contains]), .or([contains])]),
            .and([contains, .or([contains, equal])]), .or([.and([contains, .or([contains])]), equal]),
            .and([equal, .and([contains, equal]), contains]), .and([any, .or([anyBackwards])]), .and([any, contains]),
        ]
        for filter in different {
            let error = #expect(throws: RequestError.self, "\(filter)") { try Self.plan(filter) }
            expectEqual(error?.message, "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
        }
    }

    @Test
    func `Alternatives count once in whatever form they repeat`() throws {
        let six = try Self.condition("n", .isIn, .array((0..<6).map { .integer($0) }))
        let backwards = try Self.condition("n", .isIn, .array((0..<6).reversed().map { .integer($0) }))
        let filters: [Filter] = [
            .and([six, six]), .and([six, .or([six])]), .and([six, .or([six, six])]), .and([six, backwards]),
        ]
        for filter in filters {
            _ = try Self.plan(filter)
        }
    }
}
