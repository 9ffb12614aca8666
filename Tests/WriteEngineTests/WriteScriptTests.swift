// Runs the write scripts: one document, changed write by write; each block prints what the write did.

import Basics
import DocumentModel
import StoreTestSupport
import Testing
import WriteEngine

@Suite(.timeLimit(.minutes(20)))
struct WriteScriptTests {
    @Test(arguments: ["sets", "masks", "preconditions", "transforms", "limits"])
    func `Scripts print what they say`(name: String) throws {
        var session = WriteSession()
        try GoldenScript("WriteScripts/\(name)", besides: #filePath).run { try session.execute($0) }
    }
}

/// One document and a clock that moves on ten microseconds with every block.
private struct WriteSession: ~Copyable {
    private var application = WriteApplication()
    private var current: TestState?
    private var commit: UInt64 = 1000

    mutating func execute(_ commands: [String]) throws -> [String] {
        commit += 10
        if commands == ["forget"] {
            current = nil
            return []
        }
        do {
            return try apply(commands)
        } catch let error as RequestError {
            return ["\(error.code): \(error.message)"]
        }
    }

    private mutating func apply(_ commands: [String]) throws -> [String] {
        var write = TestWrite()
        for command in commands { try write.read(command, updated: current?.updateMicroseconds, commit: commit) }
        let (state, result, effect) = try WriteEngineTests.apply(
            write, to: current, at: commit, with: &application)
        current = state
        var lines = [state.map { "\(effect) \($0.fields.literal)" } ?? "\(effect)"]
        let times = state.map { "created \($0.createMicroseconds), updated \($0.updateMicroseconds)" } ?? "absent"
        lines.append("\(times), answered \(result.updateMicroseconds.map { "\($0)" } ?? "nothing")")
        if !result.transformResults.isEmpty {
            lines.append(
                "results "
                    + (try result.transformResults.map { try Value(wire: $0.span).literal }).joined(separator: ", "))
        }
        return lines
    }
}

extension TestWrite {
    /// Reads one line of a block.
    fileprivate mutating func read(_ line: String, updated: UInt64?, commit: UInt64) throws {
        var parser = LiteralParser(line)
        switch try parser.word() {
        case "set": fields = try parser.map()
        case "mask":
            var paths: [FieldPath] = []
            while !parser.isAtEnd {
                paths.append(try FieldPath(try parser.word()))
                _ = parser.take(",")
            }
            mask = paths
        case "delete": kind = .delete
        case "verify": kind = .verify
        case "transform": kind = .transform
        case "if":
            switch try parser.word() {
            case "exists": precondition = .exists(true)
            case "absent": precondition = .exists(false)
            case "updated": precondition = .updateTime(TimestampValue(microseconds: Int64(updated ?? 0)))
            case "updated-at": precondition = .updateTime(TimestampValue(microseconds: Int64(try parser.word()) ?? 0))
            case "updated-in-future":
                precondition = .updateTime(TimestampValue(microseconds: Int64(commit) + 1))
            case "updated-nanoseconds": precondition = .updateTime(TimestampValue(seconds: 0, nanoseconds: 1))
            case let other: throw ScriptError("unknown precondition \(other)")
            }
        case let operation: transforms.append(try transform(operation, &parser))
        }
    }

    private func transform(_ operation: String, _ parser: inout LiteralParser) throws -> FieldTransform {
        let path = try FieldPath(ofTransform: try parser.word())
        func number() throws -> FieldTransform.Number {
            switch try parser.value() {
            case .integer(let number): .integer(number)
            case .double(let number): .double(number)
            case let other: throw ScriptError("not a number: \(other)")
            }
        }
        let operation: FieldTransform.Operation =
            switch operation {
            case "request-time": .requestTime
            case "increment": .increment(try number())
            case "maximum": .maximum(try number())
            case "minimum": .minimum(try number())
            case "append": .appendMissingElements(try parser.listToEnd().map { EncodedValue($0) })
            case "remove": .removeAllFromArray(try parser.listToEnd().map { EncodedValue($0) })
            default: throw ScriptError("unknown command \(operation)")
            }
        return FieldTransform(path: path, operation: operation)
    }
}
