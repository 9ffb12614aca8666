// Comparisons, and values that are absent, null or failed. Arguments are values or expressions.

extension Expression {
    // MARK: Comparisons

    /// Whether the values are equal.
    public func equal(_ other: any Sendable) -> any BooleanExpression { condition("equal", other) }

    /// Whether the values differ.
    public func notEqual(_ other: any Sendable) -> any BooleanExpression { condition("not_equal", other) }

    /// Whether the value is less.
    public func lessThan(_ other: any Sendable) -> any BooleanExpression { condition("less_than", other) }

    /// Whether the value is less or equal.
    public func lessThanOrEqual(_ other: any Sendable) -> any BooleanExpression {
        condition("less_than_or_equal", other)
    }

    /// Whether the value is greater.
    public func greaterThan(_ other: any Sendable) -> any BooleanExpression { condition("greater_than", other) }

    /// Whether the value is greater or equal.
    public func greaterThanOrEqual(_ other: any Sendable) -> any BooleanExpression {
        condition("greater_than_or_equal", other)
    }

    /// Whether the value lies between two others, or is equal to one of them.
    public func between(_ lowerBound: any Sendable, _ upperBound: any Sendable) -> any BooleanExpression {
        greaterThanOrEqual(lowerBound) && lessThanOrEqual(upperBound)
    }

    /// Whether the value is equal to one of several.
    public func equalAny(_ others: [any Sendable]) -> any BooleanExpression { condition("equal_any", others) }

    /// Whether the value is equal to one of several.
    public func equalAny(_ arrayExpression: any Expression) -> any BooleanExpression {
        condition("equal_any", arrayExpression)
    }

    /// Whether the value differs from all of several.
    public func notEqualAny(_ others: [any Sendable]) -> any BooleanExpression { condition("not_equal_any", others) }

    /// Whether the value differs from all of several.
    public func notEqualAny(_ arrayExpression: any Expression) -> any BooleanExpression {
        condition("not_equal_any", arrayExpression)
    }

    /// The greatest of several values; null and absent ones do not count.
    public func logicalMaximum(_ values: [any Sendable]) -> FunctionExpression { function("maximum", list: values) }

    /// The least of several values; null and absent ones do not count.
    public func logicalMinimum(_ values: [any Sendable]) -> FunctionExpression { function("minimum", list: values) }

    // MARK: Absent, null and failed values

    /// Whether the document has the field.
    public func exists() -> any BooleanExpression { condition("exists") }

    /// Whether the document lacks the field.
    public func isAbsent() -> any BooleanExpression { condition("is_absent") }

    /// Whether the expression fails.
    public func isError() -> any BooleanExpression { condition("is_error") }

    /// The value, or another if it is absent.
    public func ifAbsent(_ value: any Sendable) -> FunctionExpression { function("if_absent", value) }

    /// The value, or another if it is null.
    public func ifNull(_ value: any Sendable) -> FunctionExpression { function("if_null", value) }

    /// The value, or another if it fails.
    public func ifError(_ value: any Sendable) -> FunctionExpression { function("if_error", value) }

    /// The first value that is neither null nor absent: this one, or one of several.
    public func coalesce(_ values: [any Sendable]) -> FunctionExpression { function("coalesce", list: values) }
}
