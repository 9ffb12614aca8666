// Functions on arrays and maps. Arguments are values or expressions.

extension Expression {
    // MARK: Arrays

    /// The number of elements.
    public func arrayLength() -> FunctionExpression { function("array_length") }

    /// The elements backwards.
    public func arrayReverse() -> FunctionExpression { function("array_reverse") }

    /// The first element.
    public func arrayFirst() -> FunctionExpression { function("array_first") }

    /// The last element.
    public func arrayLast() -> FunctionExpression { function("array_last") }

    /// The element at a position, which counts from the end if it is negative.
    public func arrayGet(_ offset: any Sendable) -> FunctionExpression { function("array_get", offset) }

    /// The first elements.
    public func arrayFirstN(_ count: any Sendable) -> FunctionExpression { function("array_first_n", count) }

    /// The last elements.
    public func arrayLastN(_ count: any Sendable) -> FunctionExpression { function("array_last_n", count) }

    /// The elements from a position on, all or so many.
    public func arraySlice(offset: any Sendable, length: (any Sendable)? = nil) -> FunctionExpression {
        function("array_slice", offset, optional: length)
    }

    /// Whether one element is equal to a value.
    public func arrayContains(_ element: any Sendable) -> any BooleanExpression { condition("array_contains", element) }

    /// Whether the array has all of the values.
    public func arrayContainsAll(_ values: [any Sendable]) -> any BooleanExpression {
        condition("array_contains_all", values)
    }

    /// Whether the array has all elements of another.
    public func arrayContainsAll(_ arrayExpression: any Expression) -> any BooleanExpression {
        condition("array_contains_all", arrayExpression)
    }

    /// Whether the array has one of the values.
    public func arrayContainsAny(_ values: [any Sendable]) -> any BooleanExpression {
        condition("array_contains_any", values)
    }

    /// Whether the array has one of the elements of another.
    public func arrayContainsAny(_ arrayExpression: any Expression) -> any BooleanExpression {
        condition("array_contains_any", arrayExpression)
    }

    /// The array with others after it.
    public func arrayConcat(_ arrays: [any Expression]) -> FunctionExpression { function("array_concat", list: arrays) }

    /// The array with others after it.
    public func arrayConcat(_ arrays: [[any Sendable]]) -> FunctionExpression { function("array_concat", list: arrays) }

    /// The position of the first element that is equal to a value; -1 if there is none.
    public func arrayIndexOf(_ value: any Sendable) -> FunctionExpression { function("array_index_of", value, "first") }

    /// The position of the last element that is equal to a value; -1 if there is none.
    public func arrayLastIndexOf(_ value: any Sendable) -> FunctionExpression {
        function("array_index_of", value, "last")
    }

    /// The positions of all elements that are equal to a value.
    public func arrayIndexOfAll(_ value: any Sendable) -> FunctionExpression { function("array_index_of_all", value) }

    /// The greatest element; null does not count.
    public func arrayMaximum() -> FunctionExpression { function("maximum") }

    /// The least element; null does not count.
    public func arrayMinimum() -> FunctionExpression { function("minimum") }

    /// The greatest elements, the greatest one first.
    public func arrayMaximumN(_ count: any Sendable) -> FunctionExpression { function("maximum_n", count) }

    /// The least elements, the least one first.
    public func arrayMinimumN(_ count: any Sendable) -> FunctionExpression { function("minimum_n", count) }

    /// The elements on which a condition is true. The condition knows the element as the variable of this name.
    public func arrayFilter(alias: String, filter: any BooleanExpression) -> FunctionExpression {
        function("array_filter", alias, filter)
    }

    /// The values of an expression for each element, which is the variable of this name there.
    public func arrayTransform(elementAlias: String, transform: any Expression) -> FunctionExpression {
        function("array_transform", elementAlias, transform)
    }

    /// The values of an expression for each element, which is a variable there, as its position is.
    public func arrayTransformWithIndex(
        elementAlias: String, indexAlias: String, transform: any Expression
    ) -> FunctionExpression {
        function("array_transform", elementAlias, indexAlias, transform)
    }

    // MARK: Maps

    /// The value of a key.
    public func mapGet(_ key: any Sendable) -> FunctionExpression { function("map_get", key) }

    /// The value of a key.
    public func getField(_ key: any Sendable) -> FunctionExpression { function("get_field", key) }

    /// The map with a value at a key, and so on: further keys, each with its value after it.
    public func mapSet(
        _ key: any Sendable, _ value: any Sendable, _ moreKeyValues: any Sendable...
    ) -> FunctionExpression {
        function("map_set", list: [key, value] + moreKeyValues)
    }

    /// The map without a key.
    public func mapRemove(_ key: any Sendable) -> FunctionExpression { function("map_remove", key) }

    /// The map with the entries of others.
    public func mapMerge(_ maps: [any Expression]) -> FunctionExpression { function("map_merge", list: maps) }

    /// The map with the entries of others.
    public func mapMerge(_ maps: [[String: any Sendable]]) -> FunctionExpression { function("map_merge", list: maps) }

    /// The keys.
    public func mapKeys() -> FunctionExpression { function("map_keys") }

    /// The values.
    public func mapValues() -> FunctionExpression { function("map_values") }

    /// The entries: maps with a key `k` and a value `v`.
    public func mapEntries() -> FunctionExpression { function("map_entries") }
}
