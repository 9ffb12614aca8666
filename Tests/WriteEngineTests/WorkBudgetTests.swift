// The work of array transforms: bounded by the elements that are compared, wherever they come from.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing
import WriteEngine

@Suite(.timeLimit(.minutes(20)))
struct WorkBudgetTests {
    enum Way: CaseIterable {
        /// The elements are in the request: distinct, or one of them repeated.
        case given, repeated
        /// They are in the stored array.
        case stored
        /// Each of several transforms of the field compares them again.
        case severalTransforms
        /// Several fields have some of them each.
        case severalFields
    }

    /// What a transform of so many elements comes to with a budget that pays for 1,000.
    private func apply(_ count: Int, _ way: Way, isUnion: Bool) throws -> WriteOutcome {
        func operation(_ elements: [Int64]) -> FieldTransform.Operation {
            let elements = elements.map { EncodedValue(.integer($0)) }
            return isUnion ? .appendMissingElements(elements) : .removeAllFromArray(elements)
        }
        func transform(_ path: String, _ elements: [Int64]) throws -> FieldTransform {
            FieldTransform(path: try FieldPath(path), operation: operation(elements))
        }
        let numbers = (0..<Int64(count)).map { $0 }
        var stored: [Int64] = []
        let transforms: [FieldTransform]
        switch way {
        case .given: transforms = [try transform("a", numbers)]
        case .repeated: transforms = [try transform("a", [Int64](repeating: 5, count: count))]
        case .stored:
            stored = numbers
            transforms = [try transform("a", [-1])]
        case .severalTransforms:
            stored = Array(numbers.prefix(count / 10))
            transforms = try (1...10).map { try transform("a", [Int64(-$0)]) }
        case .severalFields:
            transforms = try (0..<10).map { try transform("a\($0)", Array(numbers.prefix(count / 10))) }
        }
        var list = WriteList(database: try DatabaseName(testDatabase), rules: .stored)
        let (name, nothing) = (testName, [UInt8]())
        try list.update(
            name.byteSpan, fields: nothing.byteSpan, mask: DocumentMask(paths: []), transforms: transforms)
        let fields = MapValue([("a", .array(stored.map { .integer($0) }))]).documentBytes
        var application = WriteApplication()
        application.budget = WorkBudget(bytes: 1_000 * (WorkBudget.elementCost + 100))
        return try application.apply(
            list.writes[0], of: list,
            to: StoredDocumentView(createMicroseconds: 1, updateMicroseconds: 1, fields: fields.byteSpan),
            commitMicroseconds: 2)
    }

    @Test(arguments: Way.allCases, [true, false])
    func `Elements beyond the budget are refused with INVALID_ARGUMENT before they are compared`(
        way: Way, isUnion: Bool
    ) throws {
        _ = try apply(900, way, isUnion: isUnion)
        let error = #expect(throws: RequestError.self) { try apply(1_300, way, isUnion: isUnion) }
        expectEqual(error?.code, .invalidArgument)
        expectEqual(error?.message.contains("Commit fewer writes or elements at a time."), true)
    }
}
