// Writes applied the obvious way, on value trees: the reference for `WriteApplication`.

package import Basics
package import DocumentModel

/// A write as the tests build it.
package struct TestWrite: Sendable {
    package var kind = Write.Kind.update
    package var fields = MapValue()
    package var mask: [FieldPath]?
    package var precondition: Precondition?
    package var transforms: [FieldTransform] = []

    package init(
        kind: Write.Kind = .update, fields: MapValue = MapValue(), mask: [FieldPath]? = nil,
        precondition: Precondition? = nil, transforms: [FieldTransform] = []
    ) {
        self.kind = kind
        self.fields = fields
        self.mask = mask
        self.precondition = precondition
        self.transforms = transforms
    }
}

/// The state of one document.
package struct TestState: Equatable, Sendable {
    package var fields: MapValue
    package var createMicroseconds: UInt64
    package var updateMicroseconds: UInt64

    package init(fields: MapValue, createMicroseconds: UInt64, updateMicroseconds: UInt64) {
        self.fields = fields
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
    }
}

/// What the naive application makes of a write.
package struct NaiveOutcome: Equatable {
    package var state: TestState?
    package var updateMicroseconds: UInt64?
    package var transformResults: [Value]
}

package enum NaiveWrites {
    /// Applies a write that breaks no limit.
    ///
    /// - Throws: a code for a failed precondition.
    package static func apply(
        _ write: TestWrite, to current: TestState?, at commit: UInt64
    ) throws(RequestError) -> NaiveOutcome {
        switch write.precondition {
        case nil: break
        case .exists(let wanted):
            if wanted, current == nil { throw RequestError(.notFound, "") }
            if !wanted, current != nil { throw RequestError(.alreadyExists, "") }
        case .updateTime(let time):
            if time.nanoseconds % 1000 != 0 || time.microseconds > Int64(commit) { throw .invalidArgument("") }
            // The epoch stands for a document that is not there.
            if (current.map { Int64($0.updateMicroseconds) } ?? 0) != time.microseconds {
                throw RequestError(.failedPrecondition, "")
            }
        }
        switch write.kind {
        case .verify: return NaiveOutcome(state: current, updateMicroseconds: nil, transformResults: [])
        case .delete: return NaiveOutcome(state: nil, updateMicroseconds: nil, transformResults: [])
        case .update, .transform: break
        }
        var fields = current?.fields ?? MapValue()
        if write.kind == .update {
            if let mask = write.mask {
                for path in mask {
                    if let value = get(path.segments[...], write.fields) {
                        set(value, path.segments[...], &fields)
                    } else {
                        remove(path.segments[...], &fields)
                    }
                }
            } else {
                fields = write.fields
            }
        }
        var results: [Value] = []
        for transform in write.transforms {
            let path = transform.path.segments[...]
            let value = transformed(get(path, fields), transform.operation, commit)
            set(value, path, &fields)
            switch transform.operation {
            case .appendMissingElements, .removeAllFromArray: results.append(.null)
            default: results.append(value)
            }
        }
        if let current, current.fields == fields {
            return NaiveOutcome(
                state: current, updateMicroseconds: current.updateMicroseconds, transformResults: results)
        }
        return NaiveOutcome(
            state: TestState(
                fields: fields, createMicroseconds: current?.createMicroseconds ?? commit, updateMicroseconds: commit),
            updateMicroseconds: commit, transformResults: results)
    }

    package static func isVector(_ map: MapValue) -> Bool { map.entries.contains { $0.key == "__type__" } }

    package static func get(_ path: ArraySlice<String>, _ map: MapValue) -> Value? {
        guard let first = path.first else { return .none }
        guard path.count > 1 else { return map[first] }
        guard case .map(let inner)? = map[first], !isVector(inner) else { return .none }
        return get(path.dropFirst(), inner)
    }

    package static func set(_ value: Value, _ path: ArraySlice<String>, _ map: inout MapValue) {
        guard let first = path.first else { return }
        if path.count == 1 {
            map[first] = value
            return
        }
        var inner = MapValue()
        if case .map(let existing)? = map[first], !isVector(existing) { inner = existing }
        set(value, path.dropFirst(), &inner)
        map[first] = .map(inner)
    }

    package static func remove(_ path: ArraySlice<String>, _ map: inout MapValue) {
        guard let first = path.first else { return }
        if path.count == 1 {
            map[first] = .none
        } else if case .map(var inner)? = map[first], !isVector(inner) {
            remove(path.dropFirst(), &inner)
            map[first] = .map(inner)
        }
    }

    package static func transformed(_ stored: Value?, _ operation: FieldTransform.Operation, _ commit: UInt64) -> Value
    {
        switch operation {
        case .requestTime: return .timestamp(TimestampValue(microseconds: Int64(commit)))
        case .increment(let operand):
            switch (stored, operand) {
            case (.integer(let left)?, .integer(let right)):
                let exact = Int128(left) + Int128(right)
                return .integer(Int64(clamping: exact))
            case (.integer(let left)?, .double(let right)): return .double(normal(Double(left) + right))
            case (.double(let left)?, .integer(let right)): return .double(normal(left + Double(right)))
            case (.double(let left)?, .double(let right)): return .double(normal(left + right))
            default: return operand.value
            }
        case .maximum(let operand): return extreme(stored, operand.value) { $0 == .greater }
        case .minimum(let operand): return extreme(stored, operand.value) { $0 == .less }
        case .appendMissingElements(let elements):
            var array: [Value] = []
            if case .array(let existing)? = stored { array = existing }
            for element in elements.compactMap({ try? Value(wire: $0.span) })
            where !array.contains(where: { ValueOrder.equal($0, element) }) {
                array.append(element)
            }
            return .array(array)
        case .removeAllFromArray(let elements):
            var array: [Value] = []
            if case .array(let existing)? = stored { array = existing }
            let unwanted = elements.compactMap { try? Value(wire: $0.span) }
            return .array(array.filter { kept in !unwanted.contains { ValueOrder.equal($0, kept) } })
        }
    }

    private static func normal(_ number: Double) -> Double { number.isNaN ? .nan : number }

    private static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    /// NaN wins; of equal numbers the stored one stays; a value that is not a number is replaced.
    private static func extreme(_ stored: Value?, _ operand: Value, _ wins: (Ordering) -> Bool) -> Value {
        switch stored {
        case .integer?, .double?: break
        default: return operand
        }
        guard let stored, !isNaN(stored) else { return .double(.nan) }
        if isNaN(operand) { return operand }
        return wins(ValueOrder.compare(operand, stored)) ? operand : stored
    }
}

extension WriteList {
    /// Adds a test's write to the document `name`.
    package mutating func add(_ write: TestWrite, to name: [UInt8]) throws(RequestError) {
        let fields = write.fields.documentBytes
        switch write.kind {
        case .update:
            try update(
                name.byteSpan, fields: fields.byteSpan, mask: write.mask.map(DocumentMask.init),
                precondition: write.precondition, transforms: write.transforms)
        case .delete: try delete(name.byteSpan, precondition: write.precondition)
        case .verify: try verify(name.byteSpan, precondition: write.precondition ?? .exists(true))
        case .transform:
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 6) { writer in
                writer.appendField(1, bytes: name)
                for transform in write.transforms { writer.withLengthPrefix(field: 2) { transform.encode(into: &$0) } }
            }
            if let precondition = write.precondition {
                writer.withLengthPrefix(field: 4) { precondition.encode(into: &$0) }
            }
            try append(wire: writer.bytes)
        }
    }
}
