// Functions that evaluate an expression for each element of an array.
//
//     array_filter(array, "x", condition)           the elements on which the condition is true
//     array_transform(array, "x", "i", expression)  the values of the expression; "i" is the index, from 0

internal import Basics
internal import Expressions

/// A call of such a function. Null or absent for the array gives null.
struct ElementLambda {
    let array: PipelineValue
    /// The names of the element and, if it is wanted, of the index.
    let variables: [String]
    let result: PipelineValue
    private let filters: Bool

    /// Reads a call; nil if it calls another function.
    ///
    /// - Throws: `INVALID_ARGUMENT` for a wrong number of arguments and for names that are not distinct texts.
    init?(_ call: PipelineCall) throws(RequestError) {
        guard ElementLambda.names.contains(call.name), call.options.isEmpty else { return nil }
        guard (3...4).contains(call.arguments.count) else {
            throw .invalidArgument("The function \(call.name) takes 3 to 4 arguments, not \(call.arguments.count).")
        }
        var variables: [String] = []
        for argument in call.arguments[1..<(call.arguments.count - 1)] {
            guard let name = argument.text, !name.isEmpty, !variables.contains(name) else {
                throw .invalidArgument("The function \(call.name) takes distinct texts as names of variables.")
            }
            variables.append(name)
        }
        array = call.arguments[0]
        result = call.arguments[call.arguments.count - 1]
        self.variables = variables
        filters = call.name == "array_filter"
    }

    /// The functions of this kind.
    static let names: Set<String> = ["array_filter", "array_transform"]

    /// Takes the array and the expression of an element as operands.
    var body: FormBody {
        let (filters, passesIndex) = (filters, variables.count == 2)
        return { (evaluation, operands) throws(ExpressionError) in
            let array = try evaluation.value(of: operands[0])
            if array.isNullOrAbsent { return .null }
            let name = filters ? "array_filter" : "array_transform"
            var results: [Operand] = []
            for (index, element) in try ArrayFunctions.elements(name, array, evaluation).enumerated() {
                let variables = passesIndex ? [element, .integer(Int64(index))] : [element]
                let value = try evaluation.value(of: operands[1], adding: variables)
                if !filters {
                    if case .absent = value { results.append(.null) } else { results.append(value) }
                } else if try LogicFunctions.truth(value) == true {
                    results.append(element)
                }
            }
            return .list(results)
        }
    }
}
