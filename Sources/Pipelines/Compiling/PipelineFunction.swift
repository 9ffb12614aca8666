// Functions of pipelines.

internal import Expressions

/// A function that expressions of pipelines call.
struct PipelineFunction: Sendable {
    /// How arguments get to the body.
    enum Body: Sendable {
        /// Null if an argument is null or absent; else the body's value.
        case strict(FunctionBody)
        /// The body sees null and absent arguments.
        case total(FunctionBody)
        /// The body evaluates its arguments.
        case form(FormBody)
    }

    /// As requests write it.
    let name: String
    /// How many arguments it takes.
    let arity: ClosedRange<Int>
    let body: Body

    init(_ name: String, _ arity: ClosedRange<Int>, _ body: Body) {
        self.name = name
        self.arity = arity
        self.body = body
    }

    init(_ name: String, _ count: Int, _ body: Body) { self.init(name, count...count, body) }

    /// For functions that take any number of arguments from some number on.
    static let many = PipelineLimits.parts

    /// The operation that evaluates the arguments and calls the body.
    var form: FormBody {
        switch body {
        case .form(let form): return form
        case .total(let body):
            return { (evaluation, arguments) throws(ExpressionError) in
                try body(evaluation, try evaluation.values(of: arguments))
            }
        case .strict(let body):
            return { (evaluation, arguments) throws(ExpressionError) in
                let operands = try evaluation.values(of: arguments)
                for operand in operands where operand.isNullOrAbsent { return .null }
                return try body(evaluation, operands)
            }
        }
    }

    /// All functions by name.
    static let table: [String: PipelineFunction] = {
        let all =
            ComparisonFunctions.all + LogicFunctions.all + ArithmeticFunctions.all + MapFunctions.all
            + TypeFunctions.all + StringFunctions.all + PatternFunctions.all + ArrayFunctions.all
            + VectorFunctions.all + TimeFunctions.all + CalendarFunctions.all + GeoFunctions.all
        return Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
    }()
}

extension Operand {
    var isAbsent: Bool {
        if case .absent = self { true } else { false }
    }

    var isNullOrAbsent: Bool {
        switch self {
        case .null, .absent: true
        default: false
        }
    }

    /// The bytes of the operand itself, what it has encoded included, elements of built lists and maps not.
    var flatBytes: Int {
        switch self {
        case .encodedList(let slice), .encodedMap(let slice): slice.byteCount
        case .string(let text), .reference(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .list(let elements): 8 * elements.count
        case .map(let map): 8 * map.count
        default: 8
        }
    }

    /// The type as errors name it.
    var typeName: String { TypeFunctions.name(of: self) ?? "value" }
}

extension ExpressionError {
    /// The error for an argument of a wrong type.
    static func mismatch(_ function: String, _ expected: String, _ operand: Operand) -> ExpressionError {
        .failed("The function \(function) takes \(expected), not \(operand.typeName).")
    }
}
