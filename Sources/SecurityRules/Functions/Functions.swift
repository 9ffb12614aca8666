// How functions of the rules language are declared.

internal import Expressions

/// Signatures of functions, with the messages of the language.
enum Functions {
    /// A function of one signature or of several.
    static func function(_ name: String, _ overloads: ExpressionFunction.Overload...) -> ExpressionFunction {
        ExpressionFunction(name, overloads, mismatch: mismatch)
    }

    /// A method: the receiver is the first operand.
    static func method(_ name: String, _ overloads: ExpressionFunction.Overload...) -> ExpressionFunction {
        ExpressionFunction(name, overloads, mismatch: methodMismatch)
    }

    static func overload(
        _ parameters: OperandTypes..., body: @escaping FunctionBody
    ) -> ExpressionFunction.Overload {
        ExpressionFunction.Overload(parameters, body)
    }

    /// The names of operands' types, as in `int, string`.
    static func names(_ operands: some Sequence<Operand>) -> String {
        operands.map { RulesType($0).rawValue }.joined(separator: ", ")
    }

    private static let mismatch: ExpressionFunction.Mismatch = { function, operands in
        if operands.contains(where: { $0.types == .constraint }) { return .unproven }
        if !function.overloads.contains(where: { $0.parameters.count == operands.count }) {
            return .failed("Incorrect number of arguments for \(function.name). Received: \(operands.count).")
        }
        return .failed("Unsupported operation error. Received: \(function.name)(\(names(operands))).")
    }

    private static let methodMismatch: ExpressionFunction.Mismatch = { function, operands in
        let receiver = operands[0]
        if operands.contains(where: { $0.types == .constraint }) { return .unproven }
        if case .null = receiver { return .nullValue }
        let candidates = function.overloads.filter { !$0.parameters[0].isDisjoint(with: receiver.types) }
        if candidates.isEmpty { return .failed("Function not found error: Name: [\(function.name)].") }
        let call = "\(RulesType(receiver).rawValue).\(function.name)"
        if !candidates.contains(where: { $0.parameters.count == operands.count }) {
            return .failed("Incorrect number of arguments for \(call). Received: \(operands.count - 1).")
        }
        return .failed("Unsupported operation error. Received: \(call)(\(names(operands.dropFirst()))).")
    }

    /// The functions that are called by their names or by the names of a namespace and a function.
    static let table = FunctionTable(
        conversions + mathematics + timestamps + durations + places + hashes + DocumentFunctions.all)

    /// The functions that are called on a value.
    static let methods = FunctionTable(
        textMethods + listMethods + mapMethods + timeMethods + placeMethods)

    /// Names before a point that are not variables.
    static let namespaces: Set<String> = ["duration", "hashing", "latlng", "math", "timestamp"]
}

extension ExpressionError {
    /// The conditions of a query do not settle the value.
    static let unproven = ExpressionError.failed("The conditions of the query do not determine the value.")

    static func unsupported(_ description: String) -> ExpressionError {
        .failed("Unsupported operation error. Received: \(description).")
    }
}

extension Evaluation {
    /// Work of an element or entry that is looked at or made an operand, beside its memory: as long as it takes to copy
    /// so many bytes.
    static let elementWork = 96
    /// The same for an element that is found by its hash.
    static let hashWork = 128

    /// The elements of a list, paid for.
    func elements(_ operand: Operand) throws(ExpressionError) -> [Operand] {
        if case .list(let elements) = operand {
            try spendWork((32 + Self.elementWork) * elements.count)
            return elements
        }
        guard case .encodedList(let slice) = operand else { return [] }
        let count = slice.elementCount
        try spendMemory(slice.byteCount + 32 * count)
        try spendWork(Self.elementWork * count)
        return slice.elements
    }

    /// The entries of a map, paid for.
    func entries(_ operand: Operand) throws(ExpressionError) -> OperandMap {
        if case .map(let map) = operand {
            try spendWork((48 + Self.elementWork) * map.count)
            return map
        }
        guard case .encodedMap(let slice) = operand else { return [:] }
        let count = slice.entryCount
        try spendMemory(slice.byteCount + 48 * count)
        try spendWork(Self.elementWork * count)
        return slice.entries
    }

    /// Pays for reading everything that an operand has encoded or copied.
    func spendReading(_ operand: Operand) throws(ExpressionError) {
        switch operand {
        case .encodedList(let slice), .encodedMap(let slice): try spendWork(8 * slice.byteCount)
        // The same part may occur many times, and is read each time, an empty one too.
        case .list(let elements):
            try spendWork(operand.memoryBytes)
            for element in elements { try spendReading(element) }
        case .map(let map):
            try spendWork(operand.memoryBytes)
            for entry in map.entries { try spendReading(entry.value) }
        case .object(let object as RulesSet):
            try spendWork(64 * object.members.count)
            for member in object.members { try spendReading(member.operand) }
        default: try spendWork(operand.memoryBytes)
        }
    }
}
