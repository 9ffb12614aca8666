// The functions on expressions. Arguments are values, or expressions.

extension Expression {
    /// The expression with a name.
    public func `as`(_ name: String) -> AliasedExpression { AliasedExpression(named: NamedNode(name, node)) }

    /// From small to large.
    public func ascending() -> Ordering { Ordering(node, "ascending") }

    /// From large to small.
    public func descending() -> Ordering { Ordering(node, "descending") }

    // MARK: Comparisons

    /// Whether the values are equal.
    public func equal(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("equal", [node, PipelineNode(other)])
    }

    /// Whether the values differ.
    public func notEqual(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("not_equal", [node, PipelineNode(other)])
    }

    /// Whether the value is less.
    public func lessThan(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("less_than", [node, PipelineNode(other)])
    }

    /// Whether the value is less or equal.
    public func lessThanOrEqual(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("less_than_or_equal", [node, PipelineNode(other)])
    }

    /// Whether the value is greater.
    public func greaterThan(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("greater_than", [node, PipelineNode(other)])
    }

    /// Whether the value is greater or equal.
    public func greaterThanOrEqual(_ other: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("greater_than_or_equal", [node, PipelineNode(other)])
    }

    /// Whether the value is equal to one of several.
    public func equalAny(_ others: [any Sendable]) -> BooleanFunctionExpression {
        BooleanFunctionExpression("equal_any", [node, ArrayExpression(others).node])
    }

    /// Whether the value is equal to one of several.
    public func equalAny(_ arrayExpression: any Expression) -> BooleanFunctionExpression {
        BooleanFunctionExpression("equal_any", [node, arrayExpression.node])
    }

    /// Whether the value differs from all of several.
    public func notEqualAny(_ others: [any Sendable]) -> BooleanFunctionExpression {
        BooleanFunctionExpression("not_equal_any", [node, ArrayExpression(others).node])
    }

    /// Whether the value differs from all of several.
    public func notEqualAny(_ arrayExpression: any Expression) -> BooleanFunctionExpression {
        BooleanFunctionExpression("not_equal_any", [node, arrayExpression.node])
    }

    /// Whether the document has the field.
    public func exists() -> BooleanFunctionExpression { BooleanFunctionExpression("exists", [node]) }

    /// Whether the document lacks the field.
    public func isAbsent() -> BooleanFunctionExpression { BooleanFunctionExpression("is_absent", [node]) }

    /// Whether the expression fails.
    public func isError() -> BooleanFunctionExpression { BooleanFunctionExpression("is_error", [node]) }

    // MARK: Absent and failed values

    /// The value, or another if it is absent.
    public func ifAbsent(_ value: any Sendable) -> FunctionExpression {
        FunctionExpression("if_absent", [node, PipelineNode(value)])
    }

    /// The value, or another if it fails.
    public func ifError(_ value: any Sendable) -> FunctionExpression {
        FunctionExpression("if_error", [node, PipelineNode(value)])
    }

    // MARK: Numbers

    /// The sum.
    public func add(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("add", [node, PipelineNode(other)])
    }

    /// The difference.
    public func subtract(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("subtract", [node, PipelineNode(other)])
    }

    /// The product.
    public func multiply(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("multiply", [node, PipelineNode(other)])
    }

    /// The quotient; of two integers a whole number.
    public func divide(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("divide", [node, PipelineNode(other)])
    }

    /// The remainder.
    public func mod(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("mod", [node, PipelineNode(other)])
    }

    /// The power.
    public func pow(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("pow", [node, PipelineNode(other)])
    }

    /// The logarithm to a base.
    public func log(_ other: any Sendable) -> FunctionExpression {
        FunctionExpression("log", [node, PipelineNode(other)])
    }

    /// The absolute value.
    public func abs() -> FunctionExpression { FunctionExpression("abs", [node]) }

    /// The next larger whole number.
    public func ceil() -> FunctionExpression { FunctionExpression("ceil", [node]) }

    /// The next smaller whole number.
    public func floor() -> FunctionExpression { FunctionExpression("floor", [node]) }

    /// The nearest whole number.
    public func round() -> FunctionExpression { FunctionExpression("round", [node]) }

    /// The square root.
    public func sqrt() -> FunctionExpression { FunctionExpression("sqrt", [node]) }

    /// The exponential.
    public func exp() -> FunctionExpression { FunctionExpression("exp", [node]) }

    /// The natural logarithm.
    public func ln() -> FunctionExpression { FunctionExpression("ln", [node]) }

    /// The logarithm to base 10.
    public func log10() -> FunctionExpression { FunctionExpression("log10", [node]) }

    // MARK: Strings

    /// The number of characters.
    public func charLength() -> FunctionExpression { FunctionExpression("char_length", [node]) }

    /// The number of bytes.
    public func byteLength() -> FunctionExpression { FunctionExpression("byte_length", [node]) }

    /// The length of a string, an array or a map.
    public func length() -> FunctionExpression { FunctionExpression("length", [node]) }

    /// The text in lower case.
    public func toLower() -> FunctionExpression { FunctionExpression("to_lower", [node]) }

    /// The text in upper case.
    public func toUpper() -> FunctionExpression { FunctionExpression("to_upper", [node]) }

    /// The text backwards.
    public func stringReverse() -> FunctionExpression { FunctionExpression("string_reverse", [node]) }

    /// The text without white space, or without the characters of `value`, at its ends.
    public func trim(_ value: (any Sendable)? = nil) -> FunctionExpression {
        FunctionExpression("trim", value == nil ? [node] : [node, PipelineNode(value)])
    }

    /// The text with others after it.
    public func stringConcat(_ strings: [any Sendable]) -> FunctionExpression {
        FunctionExpression("string_concat", [node] + strings.map { PipelineNode($0) })
    }

    /// The texts, arrays or byte strings in a row.
    public func concat(_ values: [any Sendable]) -> FunctionExpression {
        FunctionExpression("concat", [node] + values.map { PipelineNode($0) })
    }

    /// A part of the text, from a position on.
    public func substring(position: any Sendable, length: (any Sendable)? = nil) -> FunctionExpression {
        let bounds = [PipelineNode(position)] + (length == nil ? [] : [PipelineNode(length)])
        return FunctionExpression("substring", [node] + bounds)
    }

    /// The parts between the delimiters.
    public func split(delimiter: any Sendable) -> FunctionExpression {
        FunctionExpression("split", [node, PipelineNode(delimiter)])
    }

    /// The texts of an array with the delimiter between them.
    public func join(delimiter: any Sendable) -> FunctionExpression {
        FunctionExpression("join", [node, PipelineNode(delimiter)])
    }

    /// Whether the text begins with another.
    public func startsWith(_ prefix: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("starts_with", [node, PipelineNode(prefix)])
    }

    /// Whether the text ends with another.
    public func endsWith(_ suffix: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("ends_with", [node, PipelineNode(suffix)])
    }

    /// Whether the text contains another.
    public func stringContains(_ substring: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("string_contains", [node, PipelineNode(substring)])
    }

    /// Whether the text fits a pattern with `%` and `_`.
    public func like(_ pattern: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("like", [node, PipelineNode(pattern)])
    }

    /// Whether a part of the text fits a regular expression.
    public func regexContains(_ pattern: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("regex_contains", [node, PipelineNode(pattern)])
    }

    /// Whether the whole text fits a regular expression.
    public func regexMatch(_ pattern: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("regex_match", [node, PipelineNode(pattern)])
    }

    // MARK: Arrays

    /// The number of elements.
    public func arrayLength() -> FunctionExpression { FunctionExpression("array_length", [node]) }

    /// The elements backwards.
    public func arrayReverse() -> FunctionExpression { FunctionExpression("array_reverse", [node]) }

    /// The first element.
    public func arrayFirst() -> FunctionExpression { FunctionExpression("array_first", [node]) }

    /// The last element.
    public func arrayLast() -> FunctionExpression { FunctionExpression("array_last", [node]) }

    /// The element at a position, which counts from the end if it is negative.
    public func arrayGet(_ offset: any Sendable) -> FunctionExpression {
        FunctionExpression("array_get", [node, PipelineNode(offset)])
    }

    /// The first elements.
    public func arrayFirstN(_ count: any Sendable) -> FunctionExpression {
        FunctionExpression("array_first_n", [node, PipelineNode(count)])
    }

    /// The last elements.
    public func arrayLastN(_ count: any Sendable) -> FunctionExpression {
        FunctionExpression("array_last_n", [node, PipelineNode(count)])
    }

    /// Whether one element is equal to a value.
    public func arrayContains(_ element: any Sendable) -> BooleanFunctionExpression {
        BooleanFunctionExpression("array_contains", [node, PipelineNode(element)])
    }

    /// Whether the array has all of the values.
    public func arrayContainsAll(_ values: [any Sendable]) -> BooleanFunctionExpression {
        BooleanFunctionExpression("array_contains_all", [node, ArrayExpression(values).node])
    }

    /// Whether the array has one of the values.
    public func arrayContainsAny(_ values: [any Sendable]) -> BooleanFunctionExpression {
        BooleanFunctionExpression("array_contains_any", [node, ArrayExpression(values).node])
    }

    /// The array with others after it.
    public func arrayConcat(_ arrays: [any Sendable]) -> FunctionExpression {
        FunctionExpression("array_concat", [node] + arrays.map { PipelineNode($0) })
    }

    /// The elements on which a condition is true. The condition knows the element as the variable of this name.
    public func arrayFilter(_ alias: String, _ filter: any BooleanExpression) -> FunctionExpression {
        FunctionExpression("array_filter", [node, .value(alias), filter.node])
    }

    /// The values of an expression for each element, which is the variable of this name there.
    public func arrayTransform(_ alias: String, _ transform: any Expression) -> FunctionExpression {
        FunctionExpression("array_transform", [node, .value(alias), transform.node])
    }

    // MARK: Maps

    /// The value of a key.
    public func mapGet(_ key: any Sendable) -> FunctionExpression {
        FunctionExpression("map_get", [node, PipelineNode(key)])
    }

    /// The map without a key.
    public func mapRemove(_ key: String) -> FunctionExpression {
        FunctionExpression("map_remove", [node, .value(key)])
    }

    /// The map with the entries of others.
    public func mapMerge(_ maps: [any Sendable]) -> FunctionExpression {
        FunctionExpression("map_merge", [node] + maps.map { PipelineNode($0) })
    }

    // MARK: Names, types, times

    /// The id of a reference.
    public func documentId() -> FunctionExpression { FunctionExpression("document_id", [node]) }

    /// The id of the collection of a reference.
    public func collectionId() -> FunctionExpression { FunctionExpression("collection_id", [node]) }

    /// The name of the type.
    public func type() -> FunctionExpression { FunctionExpression("type", [node]) }

    /// The time so many microseconds after 1970.
    public func unixMicrosToTimestamp() -> FunctionExpression { FunctionExpression("unix_micros_to_timestamp", [node]) }

    /// The time so many milliseconds after 1970.
    public func unixMillisToTimestamp() -> FunctionExpression { FunctionExpression("unix_millis_to_timestamp", [node]) }

    /// The time so many seconds after 1970.
    public func unixSecondsToTimestamp() -> FunctionExpression {
        FunctionExpression("unix_seconds_to_timestamp", [node])
    }

    /// Microseconds since 1970.
    public func timestampToUnixMicros() -> FunctionExpression { FunctionExpression("timestamp_to_unix_micros", [node]) }

    /// Milliseconds since 1970.
    public func timestampToUnixMillis() -> FunctionExpression { FunctionExpression("timestamp_to_unix_millis", [node]) }

    /// Seconds since 1970.
    public func timestampToUnixSeconds() -> FunctionExpression {
        FunctionExpression("timestamp_to_unix_seconds", [node])
    }

    /// The time later by a number of units.
    public func timestampAdd(amount: any Sendable, unit: TimeUnit) -> FunctionExpression {
        FunctionExpression("timestamp_add", [node, .value(unit.rawValue), PipelineNode(amount)])
    }

    /// The time earlier by a number of units.
    public func timestampSubtract(amount: any Sendable, unit: TimeUnit) -> FunctionExpression {
        FunctionExpression("timestamp_subtract", [node, .value(unit.rawValue), PipelineNode(amount)])
    }

    /// The beginning of the hour, day, week, month that the time is in, in a zone.
    public func timestampTruncate(granularity: String, timezone: (any Sendable)? = nil) -> FunctionExpression {
        let zone = timezone == nil ? [] : [PipelineNode(timezone)]
        return FunctionExpression("timestamp_trunc", [node, .value(granularity)] + zone)
    }

    /// A part of the time in a zone: `"year"`, `"dayofweek"`.
    public func timestampExtract(part: String, timezone: (any Sendable)? = nil) -> FunctionExpression {
        let zone = timezone == nil ? [] : [PipelineNode(timezone)]
        return FunctionExpression("timestamp_extract", [node, .value(part)] + zone)
    }

    // MARK: Vectors

    /// The number of dimensions.
    public func vectorLength() -> FunctionExpression { FunctionExpression("vector_length", [node]) }

    /// The cosine distance.
    public func cosineDistance(_ vector: any Sendable) -> FunctionExpression {
        FunctionExpression("cosine_distance", [node, PipelineNode(vector)])
    }

    /// The dot product.
    public func dotProduct(_ vector: any Sendable) -> FunctionExpression {
        FunctionExpression("dot_product", [node, PipelineNode(vector)])
    }

    /// The Euclidean distance.
    public func euclideanDistance(_ vector: any Sendable) -> FunctionExpression {
        FunctionExpression("euclidean_distance", [node, PipelineNode(vector)])
    }

    // MARK: Totals

    /// The sum of the numbers.
    public func sum() -> AggregateFunction { AggregateFunction("sum", [node]) }

    /// The mean of the numbers.
    public func average() -> AggregateFunction { AggregateFunction("average", [node]) }

    /// The least value.
    public func minimum() -> AggregateFunction { AggregateFunction("minimum", [node]) }

    /// The greatest value.
    public func maximum() -> AggregateFunction { AggregateFunction("maximum", [node]) }

    /// How many documents have a value that is not null.
    public func count() -> AggregateFunction { AggregateFunction("count", [node]) }

    /// The number of different values.
    public func countDistinct() -> AggregateFunction { AggregateFunction("count_distinct", [node]) }

    /// The value of the first document.
    public func first() -> AggregateFunction { AggregateFunction("first", [node]) }

    /// The value of the last document.
    public func last() -> AggregateFunction { AggregateFunction("last", [node]) }

    /// All values.
    public func arrayAgg() -> AggregateFunction { AggregateFunction("array_agg", [node]) }

    /// All different values.
    public func arrayAggDistinct() -> AggregateFunction { AggregateFunction("array_agg_distinct", [node]) }

}

extension BooleanExpression {
    /// How many documents the condition is true on.
    public func countIf() -> AggregateFunction { AggregateFunction("count_if", [node]) }

    /// One value if the condition is true, else another.
    public func then(_ value: any Sendable, else other: any Sendable) -> FunctionExpression {
        FunctionExpression("conditional", [node, PipelineNode(value), PipelineNode(other)])
    }

    /// Whether both are true.
    public static func && (left: Self, right: @autoclosure () throws -> some BooleanExpression) rethrows
        -> BooleanFunctionExpression
    {
        BooleanFunctionExpression("and", [left.node, try right().node])
    }

    /// Whether one of them is true.
    public static func || (left: Self, right: @autoclosure () throws -> some BooleanExpression) rethrows
        -> BooleanFunctionExpression
    {
        BooleanFunctionExpression("or", [left.node, try right().node])
    }

    /// Whether it is not true.
    public static prefix func ! (condition: Self) -> BooleanFunctionExpression {
        BooleanFunctionExpression("not", [condition.node])
    }
}
