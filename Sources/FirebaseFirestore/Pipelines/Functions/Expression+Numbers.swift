// Functions on numbers and vectors. Arguments are values or expressions.

public import DocumentCoding

extension Expression {
    // MARK: Numbers

    /// The sum.
    public func add(_ other: any Sendable) -> FunctionExpression { function("add", other) }

    /// The difference.
    public func subtract(_ other: any Sendable) -> FunctionExpression { function("subtract", other) }

    /// The product.
    public func multiply(_ other: any Sendable) -> FunctionExpression { function("multiply", other) }

    /// The quotient; of two integers a whole number.
    public func divide(_ other: any Sendable) -> FunctionExpression { function("divide", other) }

    /// The remainder.
    public func mod(_ other: any Sendable) -> FunctionExpression { function("mod", other) }

    /// The power.
    public func pow(_ exponent: any Sendable) -> FunctionExpression { function("pow", exponent) }

    /// The logarithm to a base.
    public func log(_ base: any Sendable) -> FunctionExpression { function("log", base) }

    /// The absolute value.
    public func abs() -> FunctionExpression { function("abs") }

    /// The next larger whole number.
    public func ceil() -> FunctionExpression { function("ceil") }

    /// The next smaller whole number.
    public func floor() -> FunctionExpression { function("floor") }

    /// The nearest whole number.
    public func round() -> FunctionExpression { function("round") }

    /// The whole number without its fraction.
    public func trunc() -> FunctionExpression { function("trunc") }

    /// The number with so many decimal places; a negative count makes digits before the point 0.
    public func truncToPrecision(_ decimalPlace: any Sendable) -> FunctionExpression { function("trunc", decimalPlace) }

    /// The square root.
    public func sqrt() -> FunctionExpression { function("sqrt") }

    /// The exponential.
    public func exp() -> FunctionExpression { function("exp") }

    /// The natural logarithm.
    public func ln() -> FunctionExpression { function("ln") }

    /// The logarithm to base 10.
    public func log10() -> FunctionExpression { function("log10") }

    // MARK: Vectors

    /// The number of dimensions.
    public func vectorLength() -> FunctionExpression { function("vector_length") }

    /// The cosine distance.
    public func cosineDistance(_ expression: any Expression) -> FunctionExpression {
        function("cosine_distance", expression)
    }

    /// The cosine distance.
    public func cosineDistance(_ vector: VectorValue) -> FunctionExpression { function("cosine_distance", vector) }

    /// The cosine distance.
    public func cosineDistance(_ vector: [Double]) -> FunctionExpression { cosineDistance(VectorValue(vector)) }

    /// The dot product.
    public func dotProduct(_ expression: any Expression) -> FunctionExpression { function("dot_product", expression) }

    /// The dot product.
    public func dotProduct(_ vector: VectorValue) -> FunctionExpression { function("dot_product", vector) }

    /// The dot product.
    public func dotProduct(_ vector: [Double]) -> FunctionExpression { dotProduct(VectorValue(vector)) }

    /// The Euclidean distance.
    public func euclideanDistance(_ expression: any Expression) -> FunctionExpression {
        function("euclidean_distance", expression)
    }

    /// The Euclidean distance.
    public func euclideanDistance(_ vector: VectorValue) -> FunctionExpression {
        function("euclidean_distance", vector)
    }

    /// The Euclidean distance.
    public func euclideanDistance(_ vector: [Double]) -> FunctionExpression { euclideanDistance(VectorValue(vector)) }
}
