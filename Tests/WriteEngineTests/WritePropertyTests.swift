// Random sequences of writes to one document: `WriteApplication` against the naive application.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing
import WriteEngine

/// A document name in the test database.
let testName = Array("\(testRoot)/users/alice".utf8)

/// A list with one write.
func list(_ write: TestWrite) throws(RequestError) -> WriteList {
    var list = WriteList(database: try DatabaseName(testDatabase), rules: .stored)
    try list.add(write, to: testName)
    return list
}

/// Applies a write and reads back what would be stored.
func apply(
    _ write: TestWrite, to current: TestState?, at commit: UInt64, with application: inout WriteApplication
) throws -> (state: TestState?, result: WriteResult, effect: WriteOutcome.Effect) {
    let list = try list(write)
    let outcome: WriteOutcome
    if let current {
        let bytes = current.fields.documentBytes
        let view = StoredDocumentView(
            createMicroseconds: current.createMicroseconds, updateMicroseconds: current.updateMicroseconds,
            fields: bytes.byteSpan)
        outcome = try application.apply(list.writes[0], of: list, to: view, commitMicroseconds: commit)
    } else {
        outcome = try application.apply(list.writes[0], of: list, to: nil, commitMicroseconds: commit)
    }
    switch outcome.effect {
    case .none: return (current, outcome.result, .none)
    case .delete: return (nil, outcome.result, .delete)
    case .put:
        let stored = application.newFields(of: list.writes[0], in: list)
        let validity = try DocumentValidator.validate(fields: stored)
        expect(validity.isCanonical)
        let state = TestState(
            fields: try MapValue(documentBytes: stored), createMicroseconds: outcome.createMicroseconds,
            updateMicroseconds: commit)
        return (state, outcome.result, .put)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct WritePropertyTests {
    static let paths = ["a", "b", "m", "m.x", "m.y", "m.x.z", "n.o.p", "v", "v.value"].map { try! FieldPath($0) }

    static func number(_ random: inout RandomDocuments) -> FieldTransform.Number {
        random.generator.oneIn(2) ? .integer(random.integer()) : .double(random.double())
    }

    static func value(_ random: inout RandomDocuments) -> Value {
        switch random.generator.below(6) {
        case 0: .map(["x": random.value(depth: 1), "y": .integer(1)])
        case 1: .array((0..<random.generator.below(4)).map { _ in element(&random) })
        case 2: .integer(random.integer())
        case 3: .double(random.double())
        case 4: .vector([1, 2])
        default: random.value(depth: 2)
        }
    }

    static func element(_ random: inout RandomDocuments) -> Value {
        random.generator.pick([.integer(1), .double(1), .double(.nan), .null, .string("x"), .map(["k": .double(0)])])
    }

    static func transform(_ random: inout RandomDocuments) -> FieldTransform {
        let elements = (0..<random.generator.below(4)).map { _ in EncodedValue(element(&random)) }
        let operation: FieldTransform.Operation =
            switch random.generator.below(6) {
            case 0: .requestTime
            case 1: .increment(number(&random))
            case 2: .maximum(number(&random))
            case 3: .minimum(number(&random))
            case 4: .appendMissingElements(elements)
            default: .removeAllFromArray(elements)
            }
        return FieldTransform(path: random.generator.pick(paths), operation: operation)
    }

    static func write(_ random: inout RandomDocuments, current: TestState?, commit: UInt64) -> TestWrite {
        var write = TestWrite()
        write.kind = random.generator.pick([.update, .update, .update, .update, .delete, .verify, .transform])
        if write.kind == .update {
            for name in ["a", "b", "m", "n", "v"] where random.generator.oneIn(2) {
                write.fields[name] = value(&random)
            }
            if random.generator.oneIn(5), let current { write.fields = current.fields }
            if random.generator.oneIn(2) {
                write.mask = (0..<random.generator.below(4)).map { _ in random.generator.pick(paths) }
                // A path inside another of the mask says nothing more, whatever their order.
                write.mask = write.mask.map { mask in
                    mask.filter { path in !mask.contains { $0 != path && $0.isPrefix(of: path) } }
                }
            }
        }
        if write.kind == .update || write.kind == .transform {
            let least = write.kind == .transform ? 1 : 0
            for _ in 0..<max(least, random.generator.below(4)) {
                let next = transform(&random)
                // A field and one inside it cannot be transformed by one write.
                let isNested = write.transforms.contains { other in
                    other.path != next.path
                        && (other.path.isPrefix(of: next.path) || next.path.isPrefix(of: other.path))
                }
                if !isNested { write.transforms.append(next) }
            }
        }
        if random.generator.oneIn(4) || write.kind == .verify {
            write.precondition =
                switch random.generator.below(5) {
                case 0: .exists(true)
                case 1: .exists(false)
                case 2: .updateTime(TimestampValue(microseconds: Int64(commit) + 1))
                case 3: .updateTime(TimestampValue(microseconds: Int64(commit) - 1))
                default: .updateTime(TimestampValue(microseconds: Int64(current?.updateMicroseconds ?? 0)))
                }
        }
        return write
    }

    @Test(arguments: 0..<16 as Range<UInt64>)
    func `Random writes do what the naive application does`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        var application = WriteApplication()
        var current: TestState?
        for round in 0..<150 {
            let commit = UInt64(1000 + round * 10)
            let write = Self.write(&random, current: current, commit: commit)
            let expected = Result { () throws(RequestError) in
                try NaiveWrites.apply(write, to: current, at: commit)
            }
            do {
                let found = try apply(write, to: current, at: commit, with: &application)
                let outcome = try expected.get()
                expectEqual(
                    found.state, outcome.state,
                    "seed \(seed), round \(round): \(write) on \(String(describing: current))")
                expectEqual(found.result.updateMicroseconds, outcome.updateMicroseconds, "seed \(seed), round \(round)")
                expectEqual(
                    found.result.transformResults, outcome.transformResults.map { EncodedValue($0) },
                    "seed \(seed), round \(round)")
                current = outcome.state
            } catch let error as RequestError {
                // What the naive application cannot say, such as a broken vector, is checked by the validator.
                guard case .failure(let wanted) = expected else {
                    let outcome = try expected.get()
                    let bytes = outcome.state.map { $0.fields.documentBytes } ?? []
                    #expect(throws: InvalidDocument.self, "seed \(seed), round \(round): \(error), \(write)") {
                        _ = try DocumentValidator.validate(fields: bytes.byteSpan)
                    }
                    continue
                }
                expectEqual(error.code, wanted.code, "seed \(seed), round \(round): \(error), \(write)")
            }
        }
    }
}
