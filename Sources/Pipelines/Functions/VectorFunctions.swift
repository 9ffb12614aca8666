// Vectors and their distances.

internal import Basics
internal import DocumentModel
internal import Expressions

enum VectorFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("vector_length", 1, .strict(length)),
        PipelineFunction("dot_product", 2, .strict(dotProduct)),
        PipelineFunction("euclidean_distance", 2, .strict(euclideanDistance)),
        PipelineFunction("cosine_distance", 2, .strict(cosineDistance)),
    ]

    private static func length(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .integer(Int64(try elements("vector_length", operands[0], evaluation).count))
    }

    private static func dotProduct(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (left, right) = try pair("dot_product", operands, evaluation)
        return .double(zip(left, right).reduce(0) { $0 + $1.0 * $1.1 })
    }

    private static func euclideanDistance(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        let (left, right) = try pair("euclidean_distance", operands, evaluation)
        return .double(zip(left, right).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot())
    }

    /// From 0 for one direction to 2 for opposite ones; not a number for a vector without a direction.
    private static func cosineDistance(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        let (left, right) = try pair("cosine_distance", operands, evaluation)
        let product = zip(left, right).reduce(0) { $0 + $1.0 * $1.1 }
        let lengths = left.reduce(0) { $0 + $1 * $1 } * right.reduce(0) { $0 + $1 * $1 }
        return .double(1 - product / lengths.squareRoot())
    }

    // MARK: Operands

    /// The elements of two vectors of one dimension.
    private static func pair(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation
    ) throws(ExpressionError) -> ([Double], [Double]) {
        let left = try elements(name, operands[0], evaluation)
        let right = try elements(name, operands[1], evaluation)
        if left.count != right.count {
            throw .failed("\(name): the vectors have \(left.count) and \(right.count) elements")
        }
        return (left, right)
    }

    /// The elements of a vector.
    static func elements(
        _ name: String, _ operand: Operand, _ evaluation: Evaluation
    ) throws(ExpressionError) -> [Double] {
        let bytes = try operand.wireBytes()
        try evaluation.spendMemory(2 * bytes.count)
        guard let vector = vector(bytes) else { throw .mismatch(name, "vectors", operand) }
        return vector
    }

    /// The elements of an encoded value that is a vector.
    static func vector(_ bytes: [UInt8]) -> [Double]? {
        guard let value = WireValue(bytes.byteSpan), value.typeClass == .vector else { return nil }
        var elements = VectorBytes.elements(mapEntries: value.payload)
        var result: [Double] = []
        while let element = elements.next() {
            guard let number = WireValue(element)?.double else { return nil }
            result.append(number)
        }
        return result
    }
}
