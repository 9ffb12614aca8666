// Parts of values: `value.name`, `value[index]`, `value[from:to]`.

internal import Expressions

enum Subscripts {
    /// `operand.name`, and `operand['name']`.
    static func member(_ name: String, of operand: Operand) throws(ExpressionError) -> Operand {
        switch operand {
        case .null: throw .nullValue
        case .map(let map):
            guard let value = map[name] else { throw .undefinedProperty(name) }
            return value
        case .encodedMap(let slice):
            let value = slice.member(name)
            if case .absent = value { throw .undefinedProperty(name) }
            return value
        default: break
        }
        if let unproven = operand.unproven { return try unproven.member(name) }
        if let path = RulesPath.from(operand) { return try path.value(of: name) }
        throw .failed("Type error. Received: [\(RulesType(operand).rawValue)] Expected: [map,path].")
    }

    /// `operand[index]`.
    static let index: BinaryFunction = { evaluation, operand, index throws(ExpressionError) in
        if case .null = operand { throw .nullValue }
        if index.unproven != nil { throw .unproven }
        if case .string(let name) = index {
            if !operand.types.isDisjoint(with: [.map, .path, .constraint]) {
                try evaluation.spendMemberSearch(in: operand)
                return try member(name, of: operand)
            }
        } else if case .integer(let number) = index {
            switch operand {
            case .list(let elements): return elements[try check(number, elements.count)]
            case .encodedList(let slice):
                try evaluation.spendWork(slice.byteCount)
                return slice.element(at: try check(number, slice.elementCount))
            case .string(let text):
                try evaluation.spendWork(text.utf8.count)
                let at = try check(number, UTF16Text.count(text))
                return .string(UTF16Text.slice(text, at..<at + 1))
            default: break
            }
            if let path = RulesPath.from(operand) {
                try evaluation.spendMemory(path.memoryBytes)
                let values = try path.boundValues()
                return .string(values[try check(number, values.count)])
            }
        }
        if operand.unproven != nil { throw .unproven }
        throw .unsupported("\(RulesType(operand).rawValue)[\(RulesType(index).rawValue)]")
    }

    /// The index as an offset; throws if it is not one of `count` elements.
    private static func check(_ index: Int64, _ count: Int) throws(ExpressionError) -> Int {
        if index < 0 || index >= count {
            throw .failed("Index out of bound error. Index: [\(index)] , size: [\(count)].")
        }
        return Int(index)
    }

    /// `operand[from:to]`; null stands for a missing bound. Neither bound may lie outside the elements: `[0:0]` is an
    /// error, `[1:1]` is empty.
    static let slice: FunctionBody = { evaluation, operands throws(ExpressionError) in
        let operand = operands[0]
        switch operand {
        case .null: throw .nullValue
        case .list, .encodedList:
            let elements = try evaluation.elements(operand)
            return .list(Array(elements[try range(operands, elements.count)]))
        case .string(let text):
            try evaluation.spendMemory(text.utf8.count)
            return .string(UTF16Text.slice(text, try range(operands, UTF16Text.count(text))))
        default: break
        }
        if let path = RulesPath.from(operand) {
            try evaluation.spendMemory(path.memoryBytes)
            let segments = try path.boundSegments()
            return .object(RulesPath(Array(segments[try range(operands, segments.count)])))
        }
        if operand.unproven != nil { throw .unproven }
        throw .failed("Function not found error: Name: [@range].")
    }

    private static func range(_ operands: [Operand], _ count: Int) throws(ExpressionError) -> Range<Int> {
        let from = try bound(operands[1], missing: 0)
        let to = try bound(operands[2], missing: Int64(count))
        let start = try check(from, count)
        let end = try check(to == .min ? .min : to - 1, count) + 1
        if start > end { throw .failed("Illegal range error. From index: [\(from)] , To index: [\(to)].") }
        return start..<end
    }

    private static func bound(_ operand: Operand, missing: Int64) throws(ExpressionError) -> Int64 {
        switch operand {
        case .absent: return missing
        case .integer(let number): return number
        default: throw .unsupported("[\(RulesType(operand).rawValue):]")
        }
    }
}
